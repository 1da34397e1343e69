// One step of a cube core, many times over: load, move to L0A or L0B, multiply or store, on tiles of 64 or 16
// rows. Slots: 0 left, 1 right [64, 64] halves, 2 out [64, 64] floats; 3 the step, 4 how often, 5 rows. Out
// is left x right.
#include <pto/pto-inst.hpp>

#include "tensor.h"

using namespace pto;

#include "pipe_sync.h"

constexpr int kSide = 64;
constexpr uint64_t kRight = 0x20000; // in L1
enum Step { kLoad, kMoveLeft, kMoveRight, kMultiply, kStore };

template <int N> struct Part {
    using Matrix = GlobalTensor<half, Shape<1, 1, 1, N, N>, Stride<1, 1, 1, kSide, 1>>;
    using Result = GlobalTensor<float, Shape<1, 1, 1, N, N>, Stride<1, 1, 1, kSide, 1>>;
    using Mat = Tile<TileType::Mat, half, N, N, BLayout::ColMajor, N, N, SLayout::RowMajor, 512>;

    Matrix left_in, right_in;
    Result out;
    Mat left_mat, right_mat;
    TileLeft<half, N, N> left;
    TileRight<half, N, N> right;
    TileAcc<float, N, N> sum;

    // `apart`: what a repeated step writes must not be what the result is made of
    __aicore__ Part(__gm__ half *a, __gm__ half *b, __gm__ float *c, bool apart)
        : left_in(a), right_in(b), out(c) {
        const uint64_t far = apart ? kSide * kSide * sizeof(half) : 0;
        TASSIGN(left_mat, far);
        TASSIGN(right_mat, kRight + far);
        TASSIGN(left, far);
        TASSIGN(right, far);
        TASSIGN(sum, 2 * far);
    }

    __aicore__ void load(int64_t times) {
        for (int64_t i = 0; i < times; ++i) {
            TLOAD(left_mat, left_in);
            TLOAD(right_mat, right_in);
            pipe_barrier(PIPE_MTE2);
        }
    }
    __aicore__ void move_left(int64_t times) {
        for (int64_t i = 0; i < times; ++i) TMOV(left, left_mat);
    }
    __aicore__ void move_right(int64_t times) {
        for (int64_t i = 0; i < times; ++i) TMOV(right, right_mat);
    }
    __aicore__ void multiply(int64_t times) {
        for (int64_t i = 0; i < times; ++i) {
            TMATMUL(sum, left, right);
            pipe_barrier(PIPE_M);
        }
    }
    __aicore__ void store(int64_t times) {
        for (int64_t i = 0; i < times; ++i) TSTORE(out, sum);
    }
};

template <int N>
inline __aicore__ void run(__gm__ half *a, __gm__ half *b, __gm__ float *c, int64_t step, int64_t times) {
    Part<kSide> whole(a, b, c, false);
    Part<N> part(a, b, c, true);
    whole.load(1);
    part.load(step == kLoad ? times : 1);
    set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    whole.move_left(1);
    whole.move_right(1);
    part.move_left(step == kMoveLeft ? times : 1);
    part.move_right(step == kMoveRight ? times : 1);
    set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    part.multiply(step == kMultiply ? times : 1);
    whole.multiply(1);
    set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    part.store(step == kStore ? times : 1);
    pipe_barrier(PIPE_FIX);
    whole.store(1);
    pipe_sync();
}

template <class T> inline __aicore__ __gm__ T *elements(int64_t slot) {
    auto *tensor = reinterpret_cast<__gm__ ChipTensor *>(slot);
    return reinterpret_cast<__gm__ T *>(tensor->buffer.addr) + tensor->start_offset;
}

extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    __gm__ half *a = elements<half>(args[0]), *b = elements<half>(args[1]);
    __gm__ float *c = elements<float>(args[2]);
    if (args[5] == 16)
        run<16>(a, b, c, args[3], args[4]);
    else
        run<kSide>(a, b, c, args[3], args[4]);
}
