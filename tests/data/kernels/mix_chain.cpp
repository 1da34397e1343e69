// out[i] = half(relu(a[i] @ b)) @ w for each of `tiles` blocks of 64 rows: from the cube core to the vector cores, back
// to the cube core, and out through the vector cores. Each block of a launch has its own rows and its own rings. Of
// a long run `held` tiles stand for all: it comes back to the first behind the last of them.
#include <cstdint>
#include <pto/pto-inst.hpp>

#include "intrinsic.h"
#include "tensor.h"

using namespace pto;

namespace {

constexpr int N = 64, kBoth = 8 * N * N, kLast = 4 * N * N; // elements of a block's rings
using Both = TPipe<0, Direction::DIR_BOTH, N * N * sizeof(float), 2>;
using Last = TPipe<4, Direction::DIR_C2V, N * N * sizeof(float), 2>;
using Square = Shape<1, 1, 1, N, N>;
using Rows = pto::Stride<N * N, N * N, N * N, N, 1>;

template <class T> T *data(int64_t slot) {
    auto *tensor = reinterpret_cast<ChipTensor *>(slot);
    return reinterpret_cast<T *>(tensor->buffer.addr) + tensor->start_offset;
}

#if defined(__DAV_CUBE__)
using Mat = Tile<TileType::Mat, half, N, N, BLayout::ColMajor, N, N, SLayout::RowMajor, 512>;
using Acc = TileAcc<float, N, N>;

void product(Acc &acc, Mat &a, Mat &b) {
    TileLeft<half, N, N> left;
    TileRight<half, N, N> right;
    TASSIGN(left, 0x0);
    TASSIGN(right, 0x0);
    TASSIGN(acc, 0x0);
    set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    TMOV(left, a);
    TMOV(right, b);
    set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    TMATMUL(acc, left, right);
    set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
}

template <TileSplitAxis split> void cube(int64_t *args, int block, int tiles, int held) {
    Both both(data<float>(args[4]) + block * kBoth, 0, 0x20000);
    Last last(data<float>(args[5]) + block * kLast, 0x8000, 0);
    Mat a, b, w, p;
    Acc acc;
    TASSIGN(a, 0x0);
    TASSIGN(b, 0x8000);
    TASSIGN(w, 0x10000);
    GlobalTensor<half, Square, Rows> b_global(data<half>(args[1])), w_global(data<half>(args[2]));
    TLOAD(b, b_global);
    TLOAD(w, w_global);
    for (int i = 0; i < tiles; ++i) {
        GlobalTensor<half, Square, Rows> a_global(data<half>(args[0]) + (block * held + i % held) * N * N);
        TLOAD(a, a_global);
        product(acc, a, b);
        TPUSH<Both, Acc, split>(both, acc);
        pipe_barrier(PIPE_ALL);
        TPOP<Both, Mat, split>(both, p);
        product(acc, p, w);
        TFREE<Both, split>(both);
        TPUSH<Last, Acc, split>(last, acc);
        pipe_barrier(PIPE_ALL);
    }
}
#else
template <TileSplitAxis split> void vector(int64_t *args, int block, int tiles, int held) {
    constexpr int R = split == TileSplitAxis::TILE_UP_DOWN ? N / 2 : N;
    Both both(data<float>(args[4]) + block * kBoth, 0, 0x20000);
    Last last(data<float>(args[5]) + block * kLast, 0x8000, 0);
    using Vec = Tile<TileType::Vec, float, R, N>;
    using Narrow = Tile<TileType::Vec, half, R, N>;
    Vec s, o;
    Narrow p;
    TASSIGN(p, 0x18000);
    for (int i = 0; i < tiles; ++i) {
        TPOP<Both, Vec, split>(both, s);
        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        TMAXS(s, s, 0.0f);
        pipe_barrier(PIPE_V);
        TCVT(p, s, RoundMode::CAST_RINT);
        TFREE<Both, split>(both);
        set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        TPUSH<Both, Narrow, split>(both, p);
        TPOP<Last, Vec, split>(last, o);
        set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
        wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
        GlobalTensor<float, Shape<1, 1, 1, R, N>, Rows> out(data<float>(args[3]) + (block * held + i % held) * N * N +
                                                            static_cast<int>(get_sub_block_id(args)) * R * N);
        TSTORE(out, o);
        TFREE<Last, split>(last);
        pipe_barrier(PIPE_ALL);
    }
}
#endif

} // namespace

extern "C" void kernel_entry(int64_t *args) {
    const int tiles = static_cast<int>(args[6]);
    const int block = static_cast<int>(get_block_idx(args));
    const int held = args[8] ? static_cast<int>(args[8]) : tiles;
    const bool one = args[7] != 0; // one of two vector cores has all the work
    const bool two = get_subblockdim() == 2 && !one;
    if (one && get_sub_block_id(args) == 1) return;
#if defined(__DAV_CUBE__)
    two ? cube<TileSplitAxis::TILE_UP_DOWN>(args, block, tiles, held) : cube<TileSplitAxis::TILE_NO_SPLIT>(args, block, tiles, held);
#else
    two ? vector<TileSplitAxis::TILE_UP_DOWN>(args, block, tiles, held) : vector<TileSplitAxis::TILE_NO_SPLIT>(args, block, tiles, held);
#endif
}
