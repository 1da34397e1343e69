// One step of a vector core, many times over: load, store, or an operation on tiles of 64 rows or of one.
// Slots: 0 in, 1 out [64, 64] floats; 2 the step, 3 how often, 4 rows. Out is the operation on in, however
// often.
#include <pto/pto-inst.hpp>

#include "tensor.h"

using namespace pto;

#include "pipe_sync.h"

constexpr int kRows = 64, kCols = 64, kBytes = kRows * kCols * sizeof(float);
enum Step { kLoad, kStore, kAddScalar, kExponential, kMultiply, kDivide };

template <int Rows> struct Part {
    using Matrix = GlobalTensor<float, Shape<1, 1, 1, Rows, kCols>, Stride<1, 1, 1, kCols, 1>>;
    using Values = Tile<TileType::Vec, float, Rows, kCols, BLayout::RowMajor, Rows, kCols>;

    Matrix in, out;
    Values from, to;

    __aicore__ Part(__gm__ float *read, __gm__ float *write) : in(read), out(write) {
        TASSIGN(from, 0);
        TASSIGN(to, kBytes + 256); // another group of banks
    }

    __aicore__ void operate(int64_t step) {
        if (step == kExponential)
            TEXP(to, from);
        else if (step == kMultiply)
            TMUL(to, from, from);
        else if (step == kDivide)
            TDIV(to, from, from);
        else
            TADDS(to, from, 1.0f);
    }

    __aicore__ void load(int64_t times) {
        for (int64_t i = 0; i < times; ++i) {
            TLOAD(from, in);
            pipe_barrier(PIPE_MTE2);
        }
    }
    __aicore__ void compute(int64_t step, int64_t times) {
        for (int64_t i = 0; i < times; ++i) {
            operate(step);
            pipe_barrier(PIPE_V);
        }
    }
    __aicore__ void store(int64_t times) {
        for (int64_t i = 0; i < times; ++i) {
            TSTORE(out, to);
            pipe_barrier(PIPE_MTE3);
        }
    }
};

template <int Rows>
inline __aicore__ void run(__gm__ float *in, __gm__ float *out, int64_t step, int64_t times) {
    Part<kRows> whole(in, out);
    Part<Rows> part(in, out);
    whole.load(1);
    if (step == kLoad) part.load(times);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    whole.compute(step, 1);
    if (step >= kAddScalar) part.compute(step, times);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    whole.store(1);
    if (step == kStore) part.store(times);
    pipe_sync();
}

inline __aicore__ __gm__ float *elements(int64_t slot) {
    auto *tensor = reinterpret_cast<__gm__ ChipTensor *>(slot);
    return reinterpret_cast<__gm__ float *>(tensor->buffer.addr) + tensor->start_offset;
}

extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    __gm__ float *in = elements(args[0]), *out = elements(args[1]);
    if (args[4] == 1)
        run<1>(in, out, args[2], args[3]);
    else
        run<kRows>(in, out, args[2], args[3]);
}
