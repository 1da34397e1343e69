// The same for a cube core: loads to L1, moves to L0, products and stores, counted by arguments; alone or with vector cores
// that take its tiles. args: 0 a, 1 out, 2 steps, 3 loads, 4 moves, 5 products, 6 stores, 7 form, 8 additions of a vector core.
#include <cstdint>
#include <pto/pto-inst.hpp>

#include "intrinsic.h"
#include "tensor.h"

using namespace pto;

namespace {

enum Form { kOneBuffer = 1, kHandOver = 2, kBothWays = 4 };
constexpr int N = 64;
constexpr int kReady = 1, kTaken = 2;

template <class T> T *data(int64_t slot) {
    auto *tensor = reinterpret_cast<ChipTensor *>(slot);
    return reinterpret_cast<T *>(tensor->buffer.addr) + tensor->start_offset;
}
using Square = Shape<1, 1, 1, N, N>;
using Rows = pto::Stride<N * N, N * N, N * N, N, 1>;

#if defined(__DAV_CUBE__)
void multiply(int64_t *args) {
    half *a = data<half>(args[0]);
    float *out = data<float>(args[1]);
    int steps = args[2], loads = args[3], moves = args[4], products = args[5], stores = args[6], form = args[7];
    using Mat = Tile<TileType::Mat, half, N, N, BLayout::ColMajor, N, N, SLayout::RowMajor, 512>;
    Mat mat;
    TileLeft<half, N, N> left;
    TileRight<half, N, N> right;
    TileAcc<float, N, N> acc;
    for (int i = 0; i < 2; ++i) {
        set_flag(PIPE_MTE1, PIPE_MTE2, event_t(i));
        set_flag(PIPE_M, PIPE_MTE1, event_t(i));
        set_flag(PIPE_FIX, PIPE_M, event_t(i));
    }
    for (int step = 0; step < steps; ++step) {
        int place = form & kOneBuffer ? 0 : step & 1;
        auto event = event_t(place);
        TASSIGN(mat, place * 0x8000);
        TASSIGN(left, place * 0x4000);
        TASSIGN(right, place * 0x4000);
        TASSIGN(acc, place * 0x8000);
        wait_flag(PIPE_MTE1, PIPE_MTE2, event);
        for (int i = 0; i < loads; ++i) {
            GlobalTensor<half, Square, Rows> from(a + int64_t(step * loads + i) * N * N);
            TLOAD(mat, from); // loads
        }
        set_flag(PIPE_MTE2, PIPE_MTE1, event);
        wait_flag(PIPE_MTE2, PIPE_MTE1, event);
        wait_flag(PIPE_M, PIPE_MTE1, event);
        for (int i = 0; i < moves; ++i) {
            TMOV(left, mat); // moves
            TMOV(right, mat);
        }
        set_flag(PIPE_MTE1, PIPE_MTE2, event);
        set_flag(PIPE_MTE1, PIPE_M, event);
        wait_flag(PIPE_MTE1, PIPE_M, event); // products wait for moves
        wait_flag(PIPE_FIX, PIPE_M, event);
        for (int i = 0; i < products; ++i) TMATMUL(acc, left, right); // products
        set_flag(PIPE_M, PIPE_MTE1, event);
        set_flag(PIPE_M, PIPE_FIX, event);
        wait_flag(PIPE_M, PIPE_FIX, event);
        for (int i = 0; i < stores; ++i) {
            GlobalTensor<float, Square, Rows> to(out + i * N * N);
            TSTORE(to, acc); // stores
        }
        set_flag(PIPE_FIX, PIPE_M, event);
        if (form & kHandOver) ffts_cross_core_sync(PIPE_FIX, 1 | 2 << 4 | kReady << 8); // hands over
        if (form & kBothWays) wait_flag_dev(kTaken);                                    // until it is taken
    }
    for (int i = 0; i < 2; ++i) {
        wait_flag(PIPE_MTE1, PIPE_MTE2, event_t(i));
        wait_flag(PIPE_M, PIPE_MTE1, event_t(i));
        wait_flag(PIPE_FIX, PIPE_M, event_t(i));
    }
    pipe_barrier(PIPE_ALL);
}
#else
void take(int64_t *args) {
    float *out = data<float>(args[1]);
    int steps = args[2], form = args[7], additions = args[8];
    Tile<TileType::Vec, float, N, N, BLayout::RowMajor, N, N> tile, sum;
    TASSIGN(tile, 0x0);
    TASSIGN(sum, 0x8200);
    for (int step = 0; step < steps; ++step) {
        if (form & kHandOver) wait_flag_dev(kReady); // waits for the cube core
        if (additions) {
            GlobalTensor<float, Square, Rows> from(out);
            TLOAD(tile, from);
            set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
            wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
            for (int i = 0; i < additions; ++i) TADD(sum, tile, tile); // additions
            set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
            wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
            set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
            wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
        }
        if (form & kBothWays) ffts_cross_core_sync(PIPE_MTE3, 1 | 2 << 4 | kTaken << 8);
    }
    pipe_barrier(PIPE_ALL);
}
#endif

} // namespace

extern "C" void kernel_entry(int64_t *args) {
#if defined(__DAV_CUBE__)
    multiply(args);
#else
    take(args);
#endif
}
