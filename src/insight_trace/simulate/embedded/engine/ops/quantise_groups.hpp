// TQUANT as the 950 does it: rows by a scale each, or groups of 32 elements that share a power of two.
#pragma once

#include "ops/steps.hpp"

namespace insight_trace::engine {

// Operands as TQUANT has them: dst, src, scales, kind, scratch, offsets.
void quantise_rows(Core &core, const Operands &operands);
// dst, src, exponents, kind, maxima, scalings, how.
void quantise_groups(Core &core, const Operands &operands);

} // namespace insight_trace::engine
