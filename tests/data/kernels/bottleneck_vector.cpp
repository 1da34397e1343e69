// A loop of loads, additions and stores whose counts are arguments, so that any pipe or wait can be made to hold it up.
// args: 0 in, 1 out, 2 steps, 3 loads, 4 additions, 5 stores, 6 form, 7 scalar loads, 8 how much more block 0 does.
#include <cstdint>
#include <pto/pto-inst.hpp>

#include "intrinsic.h"
#include "tensor.h"

using namespace pto;

namespace {

enum Form { kOneBuffer = 1, kBarrier = 2, kScalarWaits = 4, kConflicts = 8, kNarrow = 16, kSmall = 32, kSame = 64, kFlagEnd = 128 };

template <class T> T *data(int64_t slot) {
    auto *tensor = reinterpret_cast<ChipTensor *>(slot);
    return reinterpret_cast<T *>(tensor->buffer.addr) + tensor->start_offset;
}

constexpr int R = 32, C = 128; // 16 KB
template <int rows, int cols> using Ub = Tile<TileType::Vec, float, rows, C, BLayout::RowMajor, rows, cols>;
template <int rows, int cols>
using Gm = GlobalTensor<float, Shape<1, 1, 1, rows, cols>, pto::Stride<R * C, R * C, R * C, C, 1>>;

template <int rows, int cols> void loop(int64_t *args, int steps, int form) {
    float *in = data<float>(args[0]), *out = data<float>(args[1]);
    int loads = args[3], additions = args[4], stores = args[5], scalars = args[7];
    int block = get_block_idx(args), blocks = get_block_num(args);
    Ub<rows, cols> a, b, c;
    bool flags = !(form & kBarrier);
    for (int i = 0; i < 2 && flags; ++i) {
        set_flag(PIPE_V, PIPE_MTE2, event_t(i));
        set_flag(PIPE_MTE3, PIPE_V, event_t(i));
    }
    for (int step = 0; step < steps; ++step) {
        int place = form & kOneBuffer ? 0 : step & 1;
        auto event = event_t(place);
        uint64_t base = place * 0x10000;
        TASSIGN(a, base);
        TASSIGN(b, base + (form & kConflicts ? 0x4000 : 0x4000 + 0x100));
        TASSIGN(c, base + 0x8000 + (form & kConflicts ? 0 : 0x200));
        int64_t where = form & kSame ? 0 : int64_t(step * blocks + block) * loads * R * C;
        for (int i = 0; i < scalars; ++i) {
            dcci(out, 1); // a load that always goes to memory
            volatile float *p = out + i * 16;
            (void)*p;
        }
        if (flags) wait_flag(PIPE_V, PIPE_MTE2, event);
        for (int i = 0; i < loads; ++i) {
            Gm<rows, cols> from(in + where + i * R * C);
            TLOAD(a, from); // loads
        }
        if (flags) {
            set_flag(PIPE_MTE2, PIPE_V, event);
            wait_flag(PIPE_MTE2, PIPE_V, event); // additions wait for loads
            wait_flag(PIPE_MTE3, PIPE_V, event);
        } else {
            pipe_barrier(PIPE_ALL); // everything waits
        }
        for (int i = 0; i < additions; ++i) TADD(c, a, b); // additions
        if (flags) {
            set_flag(PIPE_V, PIPE_MTE2, event);
            set_flag(PIPE_V, PIPE_MTE3, event);
            wait_flag(PIPE_V, PIPE_MTE3, event);
        } else {
            pipe_barrier(PIPE_ALL);
        }
        if (form & kScalarWaits) {
            set_flag(PIPE_V, PIPE_S, EVENT_ID7);
            wait_flag(PIPE_V, PIPE_S, EVENT_ID7); // the scalar unit waits
        }
        for (int i = 0; i < stores; ++i) {
            Gm<rows, cols> to(out + (int64_t(block) * stores + i) * R * C);
            TSTORE(to, c); // stores
        }
        if (flags) set_flag(PIPE_MTE3, PIPE_V, event);
    }
    for (int i = 0; i < 2 && flags; ++i) {
        wait_flag(PIPE_V, PIPE_MTE2, event_t(i));
        wait_flag(PIPE_MTE3, PIPE_V, event_t(i));
    }
    if (form & kFlagEnd) { // as simpler's kernels end
        set_flag(PIPE_MTE3, PIPE_S, EVENT_ID7);
        wait_flag(PIPE_MTE3, PIPE_S, EVENT_ID7);
    } else {
        pipe_barrier(PIPE_ALL);
    }
}

} // namespace

extern "C" void kernel_entry(int64_t *args) {
    int form = args[6], steps = args[2] * (get_block_idx(args) == 0 ? args[8] : 1);
    if (form & kSmall) return loop<1, 8>(args, steps, form);
    if (form & kNarrow) return loop<R, 8>(args, steps, form);
    loop<R, C>(args, steps, form);
}
