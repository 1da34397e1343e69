// Element by element on bits: and, or, xor, not, shifts.
#include "compose.hpp"
#include "isa/vector_unit.hpp"
#include "steps.hpp"

namespace insight_trace::engine {

namespace {

// The instructions know only 16-bit elements; bits do not care. With functions they know every size.
struct BitLines {
    Type type;
    Lines lines;
};
BitLines bit_lines(const Core &core, const Lines &lines) {
    if (!core.register_based()) return {Type::U16, lines.as(2)};
    const Type types[] = {Type::U8, Type::U16, Type::U32, Type::U64};
    return {types[lines.size == 8 ? 3 : lines.size / 2], lines};
}

void bitwise(Core &core, const Operands &operands, const char *op, Instr instr) {
    const TileRef &dst = tile_operand(core, op, operands, 0), &a = tile_operand(core, op, operands, 1),
                  &b = tile_operand(core, op, operands, 2);
    require_type(core, op, a, dst.type);
    require_type(core, op, b, dst.type);
    Lines to = lines_of(core, op, dst), x = lines_of(core, op, a, to), y = lines_of(core, op, b, to);
    const bool bits = core.register_based() || dst.type == Type::F16;
    if (!bits && (dst.type == Type::F32 || dst.type == Type::BF16 || !is_number(dst.type)))
        core.unsupported("%s of %s tiles", op, type_name(dst.type));
    const BitLines into = bit_lines(core, to), first = bit_lines(core, x), second = bit_lines(core, y);
    auto one = [&](const Step &step) { issue(core, executed(instr), into.type, step); };
    walk_binary(core, into.lines, first.lines, second.lines, to.size != 2, one);
}

// A number has bits of its own only in an integer's type.
void require_integers(Core &core, const char *op, const TileRef &tile) {
    if (tile.type == Type::F16) core.unsupported("%s of %s tiles", op, type_name(tile.type));
}

// Counts that differ by element are the scalar unit's work. Counts past the width of the type leave nothing,
// or the sign; of 64-bit elements the low six bits count.
void shift_each(Core &core, const Operands &operands, const char *op, Instr instr) {
    const TileRef &dst = tile_operand(core, op, operands, 0), &a = tile_operand(core, op, operands, 1),
                  &b = tile_operand(core, op, operands, 2);
    require_type(core, op, a, dst.type);
    require_type(core, op, b, dst.type);
    Lines to = lines_of(core, op, dst), x = lines_of(core, op, a, to), y = lines_of(core, op, b, to);
    if (!arithmetic(instr, dst.type)) core.unsupported("%s of %s tiles", op, type_name(dst.type));
    scalar_loop(core, instr, dst.type, to, x, &y);
}

} // namespace

TILE_OP_BODY(TAND) { bitwise(core, operands, "TAND", Instr::VAND); }
TILE_OP_BODY(TOR) { bitwise(core, operands, "TOR", Instr::VOR); }
TILE_OP_BODY(TNOT) {
    const char *op = "TNOT";
    const TileRef &dst = tile_operand(core, op, operands, 0), &src = tile_operand(core, op, operands, 1);
    require_type(core, op, src, dst.type);
    Lines to = lines_of(core, op, dst), from = lines_of(core, op, src, to);
    if (dst.type == Type::F32 || dst.type == Type::F16 || dst.type == Type::BF16 || !is_number(dst.type))
        core.unsupported("%s of %s tiles", op, type_name(dst.type));
    const BitLines into = bit_lines(core, to), source = bit_lines(core, from);
    auto one = [&](const Step &step) { issue(core, executed(Instr::VNOT), into.type, step); };
    walk_unary(core, into.lines, source.lines, one);
}

// (a or b) without (a and b): a2a3 has no instruction for it.
TILE_OP_BODY(TXOR) {
    const TileRef &dst = tile_operand(core, "TXOR", operands, 0),
                  &tmp = tile_operand(core, "TXOR", operands, 3);
    for (uint32_t i = 1; i < 4; ++i)
        require_apart(core, "TXOR", dst, tile_operand(core, "TXOR", operands, i));
    for (uint32_t i = 1; i < 3; ++i) require_apart(core, "TXOR", tmp, operands[i].tile);
    const Operand &to = operands[0], &a = operands[1], &b = operands[2], &scratch = operands[3];
    run(core, Op::TOR, scratch, a, b);
    core.barrier(PipeId::V);
    run(core, Op::TAND, to, a, b);
    core.barrier(PipeId::V);
    run(core, Op::TNOT, to, to);
    core.barrier(PipeId::V);
    run(core, Op::TAND, to, to, scratch);
}

// On a2a3 the scalar fills dst first.
TILE_OP_BODY(TANDS) {
    require_integers(core, "TANDS", tile_operand(core, "TANDS", operands, 0));
    require_apart(core, "TANDS", tile_operand(core, "TANDS", operands, 0),
                  tile_operand(core, "TANDS", operands, 1));
    run(core, Op::TEXPANDS, operands[0], operands[2]);
    core.barrier(PipeId::V);
    run(core, Op::TAND, operands[0], operands[1], operands[0]);
}
TILE_OP_BODY(TORS) {
    require_integers(core, "TORS", tile_operand(core, "TORS", operands, 0));
    require_apart(core, "TORS", tile_operand(core, "TORS", operands, 0),
                  tile_operand(core, "TORS", operands, 1));
    run(core, Op::TEXPANDS, operands[0], operands[2]);
    core.barrier(PipeId::V);
    run(core, Op::TOR, operands[0], operands[1], operands[0]);
}
TILE_OP_BODY(TXORS) {
    const Operand &dst = operands[0], &src = operands[1], &scalar = operands[2], &tmp = operands[3];
    require_apart(core, "TXORS", tile_operand(core, "TXORS", operands, 0),
                  tile_operand(core, "TXORS", operands, 3));
    run(core, Op::TORS, tmp, src, scalar);
    core.barrier(PipeId::V);
    run(core, Op::TANDS, dst, src, scalar);
    core.barrier(PipeId::V);
    run(core, Op::TNOT, dst, dst);
    core.barrier(PipeId::V);
    run(core, Op::TAND, dst, dst, tmp);
}

FUNCTION_OP_BODY(TXOR) { bitwise(core, operands, "TXOR", Instr::VXOR); }
FUNCTION_OP_BODY(TANDS) { with_scalar(core, operands, "TANDS", Instr::VAND); }
FUNCTION_OP_BODY(TORS) { with_scalar(core, operands, "TORS", Instr::VOR); }
FUNCTION_OP_BODY(TXORS) { with_scalar(core, operands, "TXORS", Instr::VXOR); }

TILE_OP_BODY(TSHL) { shift_each(core, operands, "TSHL", Instr::VSHL); }
TILE_OP_BODY(TSHR) { shift_each(core, operands, "TSHR", Instr::VSHR); }
FUNCTION_OP_BODY(TSHL) { binary(core, operands, "TSHL", Instr::VSHL); }
FUNCTION_OP_BODY(TSHR) { binary(core, operands, "TSHR", Instr::VSHR); }
TILE_OP_BODY(TSHLS) { with_scalar(core, operands, "TSHLS", Instr::VSHL); }
TILE_OP_BODY(TSHRS) { with_scalar(core, operands, "TSHRS", Instr::VSHR); }

} // namespace insight_trace::engine
