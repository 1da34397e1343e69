// What is force-included before a kernel, in one header so that it can be precompiled.
#pragma once

#include <cstdio>

#include "insight_trace/device.hpp"
#include "insight_trace/registers.hpp"
#include "insight_trace/vector_calls.hpp"
#include "pto/pto-inst.hpp"

// Templates of these names outside of pto, which no call fits: with them `TPUSH<Pipe, …>(pipe, tile)` parses
// where a kernel names only the types, and the op is found by its arguments.
#define TILE_OP(name, ...) template <int> void name();
#include "insight_trace/ops.def"
#undef TILE_OP
template <int> void TPOP();
template <int> void TFREE();
template <int> void TALLOC();

// Kernels print where the run prints, without what the device's compiler asks for (--cce-enable-print).
namespace cce {
template <class... Values> inline void printf(const char *format, Values... values) {
    if constexpr (sizeof...(values) == 0)
        std::fputs(format, stdout);
    else
        std::printf(format, values...);
}
} // namespace cce
