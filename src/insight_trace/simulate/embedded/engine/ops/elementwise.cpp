// Element by element: two tiles in, one out.
#include "elementwise.hpp"

namespace insight_trace::engine {

TILE_OP_BODY(TADD) {
    binary(core, operands, Instr::VADD, [](auto a, auto b) { return wrap_add(a, b); });
}

} // namespace insight_trace::engine
