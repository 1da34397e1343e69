// Loads, adds and stores in marked phases: 1 holds 2 and 3 in every round, 4 stands behind them. With `quiet` it has no marks.
#include <cstdint>
#include <pto/pto-inst.hpp>

#include "intrinsic.h"
#include "tensor.h"

using namespace pto;

#ifdef QUIET
#undef TRACE_START
#undef TRACE_STOP
#define TRACE_START(number)
#define TRACE_STOP(number)
#endif

namespace {
using Line = GlobalTensor<float, Shape<1, 1, 1, 64, 64>, pto::Stride<4096, 4096, 4096, 64, 1>>;
using LineTile = Tile<TileType::Vec, float, 64, 64, BLayout::RowMajor, 64, 64>;
} // namespace

extern "C" void kernel_entry(int64_t *args) {
    auto *in = reinterpret_cast<ChipTensor *>(args[0]), *out = reinterpret_cast<ChipTensor *>(args[1]);
    Line from(reinterpret_cast<float *>(in->buffer.addr)), to(reinterpret_cast<float *>(out->buffer.addr));
    LineTile tile, sum;
    TASSIGN(tile, 0x0);
    TASSIGN(sum, 0x4100);
    for (int i = 0; i < args[2]; ++i) {
        TRACE_START(1);
        TRACE_START(2);
        TLOAD(tile, from);
        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        TRACE_STOP(2);
        TRACE_START(3);
        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        TADD(sum, tile, tile);
        set_flag(PIPE_V, PIPE_MTE2, EVENT_ID1);
        wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID1);
        TRACE_STOP(3);
        TRACE_STOP(1);
    }
#ifndef QUIET
    AscendC::MarkStamp<PIPE_V, 13>();
#endif
    TRACE_START(4);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(to, sum);
    TRACE_STOP(4);
    TRACE_START(9); // never stopped: no range
    pipe_barrier(PIPE_ALL);
}
