// Counts of bytes, and random numbers: what only the 950 has as ops.
#include "isa/composites.hpp"

namespace insight_trace::engine {

TILE_OP_BODY(THISTOGRAM) { count_bytes(core, operands); }
TILE_OP_BODY(TRANDOM) { fill_with_random_numbers(core, operands); }

} // namespace insight_trace::engine
