// Element by element: one tile in, one out; and a scalar into every element.
#include "steps.hpp"

namespace insight_trace::engine {

TILE_OP_BODY(TEXP) { unary(core, operands, "TEXP", Instr::VEXP); }
TILE_OP_BODY(TLOG) { unary(core, operands, "TLOG", Instr::VLN); }
TILE_OP_BODY(TSQRT) { unary(core, operands, "TSQRT", Instr::VSQRT); }
TILE_OP_BODY(TABS) { unary(core, operands, "TABS", Instr::VABS); }

// --- TEXPANDS

// The whole tile in L1, valid or not, block by block.
static void fill_l1(Core &core, const TileRef &dst, const Operand &value) {
    if (!is_number(dst.type)) core.unsupported("TEXPANDS of %s tiles", type_name(dst.type));
    const int64_t bytes = int64_t(dst.rows) * dst.cols * type_size(dst.type);
    fill_matrix(core, dst.type, dst.address, 1, bytes, 0, scalar_bits(value, dst.type), bytes / 32);
}

TILE_OP_BODY(TEXPANDS) {
    const TileRef &dst = tile_operand(core, "TEXPANDS", operands, 0);
    if (dst.space == Space::L1) return fill_l1(core, dst, operands[1]);
    Lines to = lines_of(core, "TEXPANDS", dst);
    if (!is_number(dst.type)) core.unsupported("TEXPANDS of %s tiles", type_name(dst.type));
    const bool pairs = to.size == 1; // bytes are filled in pairs
    Type type = pairs ? Type::I16 : dst.type;
    uint64_t bits = scalar_bits(operands[1], dst.type);
    if (pairs) bits |= bits << 8;
    auto one = [&](const Step &step) { issue(core, executed(Instr::MOVEV, bits), type, step); };
    walk_fill(core, pairs ? to.as(2) : to, one);
}

FUNCTION_OP_BODY(TEXPANDS) {
    const TileRef &dst = tile_operand(core, "TEXPANDS", operands, 0);
    if (dst.space == Space::L1) return fill_l1(core, dst, operands[1]);
    Lines to = lines_of(core, "TEXPANDS", dst);
    if (!is_number(dst.type)) core.unsupported("TEXPANDS of %s tiles", type_name(dst.type));
    const Operation fill = executed(Instr::MOVEV, scalar_bits(operands[1], dst.type));
    auto one = [&](const Step &step) { issue(core, fill, dst.type, step); };
    walk_counted_lines(core, to, nullptr, nullptr, one);
}

} // namespace insight_trace::engine
