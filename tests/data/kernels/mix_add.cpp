// out[i] = a[i] @ b + c[i] for each of `tiles` blocks of 64 rows: the cube core multiplies, the vector cores add.
// One source for both kinds of core; rows are split when two vector cores take part.
#include <cstdint>
#include <pto/pto-inst.hpp>

#include "intrinsic.h"
#include "tensor.h"

using namespace pto;

namespace {

constexpr int N = 64;
using Ring = TPipe<0, Direction::DIR_C2V, N * N * sizeof(float), 4>;
using Square = Shape<1, 1, 1, N, N>;
using Rows = pto::Stride<N * N, N * N, N * N, N, 1>;

template <class T> T *data(int64_t slot) {
    auto *tensor = reinterpret_cast<ChipTensor *>(slot);
    return reinterpret_cast<T *>(tensor->buffer.addr) + tensor->start_offset;
}

#if defined(__DAV_CUBE__)
template <TileSplitAxis split> void multiply(int64_t *args, int tiles) {
    half *a = data<half>(args[0]), *b = data<half>(args[1]);
    Ring ring(data<float>(args[4]), 0, 0);
    using Mat = Tile<TileType::Mat, half, N, N, BLayout::ColMajor, N, N, SLayout::RowMajor, 512>;
    Mat a_mat, b_mat;
    TileLeft<half, N, N> left;
    TileRight<half, N, N> right;
    using Acc = TileAcc<float, N, N>;
    Acc acc;
    TASSIGN(a_mat, 0x0);
    TASSIGN(b_mat, 0x10000);
    TASSIGN(left, 0x0);
    TASSIGN(right, 0x0);
    TASSIGN(acc, 0x0);
    GlobalTensor<half, Square, Rows> b_global(b);
    TLOAD(b_mat, b_global);
    for (int i = 0; i < tiles; ++i) {
        GlobalTensor<half, Square, Rows> a_global(a + i * N * N);
        TLOAD(a_mat, a_global);
        set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
        wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
        TMOV(left, a_mat);
        TMOV(right, b_mat);
        set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
        wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
        TMATMUL(acc, left, right);
        set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
        wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
        TPUSH<Ring, Acc, split>(ring, acc);
        pipe_barrier(PIPE_ALL);
    }
}
#else
template <TileSplitAxis split> void add(int64_t *args, int tiles) {
    constexpr int R = split == TileSplitAxis::TILE_UP_DOWN ? N / 2 : N;
    float *c = data<float>(args[2]), *out = data<float>(args[3]);
    Ring ring(data<float>(args[4]), 0x0, 0);
    using Vec = Tile<TileType::Vec, float, R, N>;
    using Part = Shape<1, 1, 1, R, N>;
    Vec product, bias;
    TASSIGN(bias, 0x10000);
    for (int i = 0; i < tiles; ++i) {
        const int offset = i * N * N + static_cast<int>(get_sub_block_id(args)) * R * N;
        GlobalTensor<float, Part, Rows> c_global(c + offset), out_global(out + offset);
        TPOP<Ring, Vec, split>(ring, product);
        TLOAD(bias, c_global);
        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        TADD(product, product, bias);
        set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        TSTORE(out_global, product);
        pipe_barrier(PIPE_ALL); // the store reads the slot too, and a free slot is filled again
        TFREE<Ring, split>(ring);
    }
}
#endif

} // namespace

extern "C" void kernel_entry(int64_t *args) {
    const int tiles = static_cast<int>(args[5]);
    const bool both = get_subblockdim() == 2;
#if defined(__DAV_CUBE__)
    both ? multiply<TileSplitAxis::TILE_UP_DOWN>(args, tiles) : multiply<TileSplitAxis::TILE_NO_SPLIT>(args, tiles);
#else
    both ? add<TileSplitAxis::TILE_UP_DOWN>(args, tiles) : add<TileSplitAxis::TILE_NO_SPLIT>(args, tiles);
#endif
}
