// Marks that take time, as where a kernel is compiled with ASCENDC_TRACE_ON: a write of the scalar unit that
// names the mark, and a NOP for each pipe of the core that it hands out, a cycle of issue each (a vector
// core: VEC, MTE2, MTE3; a cube core: CUBE, MTE1, MTE2, MTE3). What a NOP takes on its pipe is not modelled.
#pragma once

namespace insight_trace {
inline void mark_with_cost(uint64_t code, INSIGHT_TRACE_AT) {
    mark(code, at);
#ifdef __DAV_CUBE__
    constexpr int instructions = 1 + 4;
#else
    constexpr int instructions = 1 + 3;
#endif
    for (int i = 0; i < instructions; ++i) INSIGHT_TRACE_CALL(Nop, 0, 0, 0);
}
} // namespace insight_trace

#undef TRACE_START
#undef TRACE_STOP
#define TRACE_START(number)                                                                                  \
    ::insight_trace::mark_with_cost(0x80000000ull | (static_cast<uint64_t>(number) & 0xfffffff))
#define TRACE_STOP(number)                                                                                   \
    ::insight_trace::mark_with_cost(0xc0000000ull | (static_cast<uint64_t>(number) & 0xfffffff))
