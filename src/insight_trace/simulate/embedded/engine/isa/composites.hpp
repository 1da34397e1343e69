// Composites: what the tile library for the 950 writes as a function of many register instructions, and what
// it does in loops that are not followed one by one. Each is executed as a whole, with the values that the
// library's device tests have, and priced as one step; docs/instructions.md lists them with the reason.
#pragma once

#include "core.hpp"

namespace insight_trace::engine {

// TTRANS of feature maps and filters (pto/common/forms/convolution.hpp).
void reorder_image(Core &core, const Operands &operands);
// TQUANT to groups of 32 elements that share a power of two: dst, src, exponents, kind, maxima, scalings,
// how.
void quantise_groups(Core &core, const Operands &operands);
// THISTOGRAM: dst, src, the bytes above that are wanted, which byte.
void count_bytes(Core &core, const Operands &operands);
// TRANDOM: dst, rounds, two words of key, four words of counter.
void fill_with_random_numbers(Core &core, const Operands &operands);
// TPOW and TPOWS with registers.
void raise_to_powers(Core &core, const Operands &operands, bool by_number);
// TMOV of scales of groups, packed row by row, into boxes of 16 by 2.
void scales_to_boxes(Core &core, const TileRef &dst, const TileRef &src, bool down);
} // namespace insight_trace::engine
