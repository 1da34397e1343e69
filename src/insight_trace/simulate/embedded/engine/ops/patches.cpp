// TIMG2COL: one instruction.
#include "isa/moves.hpp"

namespace insight_trace::engine {

TILE_OP_BODY(TIMG2COL) { load_patches(core, operands); }

} // namespace insight_trace::engine
