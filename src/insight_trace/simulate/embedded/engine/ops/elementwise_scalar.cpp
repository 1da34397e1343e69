// Element by element: one tile and a scalar in, one tile out.
#include "elementwise.hpp"

namespace insight_trace::engine {

TILE_OP_BODY(TADDS) { with_scalar(core, operands, "TADDS", Instr::VADDS); }
TILE_OP_BODY(TMULS) { with_scalar(core, operands, "TMULS", Instr::VMULS); }
TILE_OP_BODY(TMAXS) { with_scalar(core, operands, "TMAXS", Instr::VMAXS); }
TILE_OP_BODY(TMINS) { with_scalar(core, operands, "TMINS", Instr::VMINS); }

// The library hands the instruction that adds the negated scalar, and negates it as a float; unsigned numbers
// wrap.
TILE_OP_BODY(TSUBS) {
    const TileRef &dst = tile_operand(core, "TSUBS", operands, 0);
    Operand list[3] = {operands[0], operands[1], operands[2]};
    const uint64_t bits = scalar_bits(operands[2], dst.type);
    const bool wraps =
        dst.type == Type::U32 || dst.type == Type::U16 || dst.type == Type::U8 || dst.type == Type::U64;
    list[2].kind = Operand::Scalar;
    list[2].scalar = {wraps ? 0 - bits : negated_bits(dst.type, bits), dst.type};
    with_scalar(core, {list, 3}, "TSUBS", Instr::VADDS);
}
// A product with -1.
TILE_OP_BODY(TNEG) {
    Operand list[3] = {operands[0], operands[1], {}};
    list[2].kind = Operand::Scalar;
    list[2].scalar = {~0ull, Type::I64};
    with_scalar(core, {list, 3}, "TNEG", Instr::VMULS);
}

} // namespace insight_trace::engine
