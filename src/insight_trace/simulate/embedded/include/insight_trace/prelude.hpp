// What is force-included before a kernel, in one header so that it can be precompiled.
#pragma once

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
