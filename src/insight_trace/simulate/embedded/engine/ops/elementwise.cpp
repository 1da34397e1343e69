// Element by element: tiles and numbers in, one tile of the same size out.
#include "ops/steps.hpp"

namespace insight_trace::engine {

TILE_OP_BODY(TADD) { binary(core, operands, Instr::VADD); }
TILE_OP_BODY(TSUB) { binary(core, operands, Instr::VSUB); }
TILE_OP_BODY(TMUL) { binary(core, operands, Instr::VMUL); }
TILE_OP_BODY(TDIV) { binary(core, operands, Instr::VDIV); }
TILE_OP_BODY(TMAX) { binary(core, operands, Instr::VMAX); }
TILE_OP_BODY(TMIN) { binary(core, operands, Instr::VMIN); }
TILE_OP_BODY(TSUBRELU) { binary(core, operands, Instr::VSUBRELU); }
// The result is an input, too.
TILE_OP_BODY(TMULADDDST) { binary(core, operands, Instr::VMLA); }
TILE_OP_BODY(TFUSEDMULADD) { binary(core, operands, Instr::VMADD); }
TILE_OP_BODY(TFUSEDMULADDRELU) { binary(core, operands, Instr::VMADDRELU); }

TILE_OP_BODY(TEXP) { unary(core, operands, Instr::VEXP); }
TILE_OP_BODY(TLOG) { unary(core, operands, Instr::VLN); }
TILE_OP_BODY(TSQRT) { unary(core, operands, Instr::VSQRT); }
TILE_OP_BODY(TABS) { unary(core, operands, Instr::VABS); }
TILE_OP_BODY(TRELU) { unary(core, operands, Instr::VRELU); }

TILE_OP_BODY(TADDS) { with_scalar(core, operands, Instr::VADDS); }
TILE_OP_BODY(TMULS) { with_scalar(core, operands, Instr::VMULS); }
TILE_OP_BODY(TMAXS) { with_scalar(core, operands, Instr::VMAXS); }
TILE_OP_BODY(TMINS) { with_scalar(core, operands, Instr::VMINS); }
TILE_OP_BODY(TLRELU) { with_scalar(core, operands, Instr::VLRELU); }

static void with_number(Core &core, const Operands &operands, Instr instr, uint64_t bits, Type type) {
    Operand list[3] = {operands[0], operands[1], {}};
    list[2].kind = Operand::Scalar;
    list[2].scalar = {bits, type};
    with_scalar(core, {list, 3}, instr);
}

// The library hands the instruction that adds the negated scalar, and negates it as a float; unsigned numbers
// wrap.
TILE_OP_BODY(TSUBS) {
    const Type type = tile_operand(core, operands, 0).type;
    const uint64_t bits = scalar_bits(operands[2], type);
    const bool wraps = type == Type::U32 || type == Type::U16 || type == Type::U8 || type == Type::U64;
    with_number(core, operands, Instr::VADDS, wraps ? 0 - bits : negated_bits(type, bits), type);
}
// A product with -1.
TILE_OP_BODY(TNEG) { with_number(core, operands, Instr::VMULS, ~0ull, Type::I64); }

// --- sums of three, made of two steps

static void two_steps(Core &core, const Operands &operands, Op first) {
    run_then(core, first, operands[0], operands[1], operands[2]);
    run(core, Op::TADD, operands[0], operands[0], operands[3]);
}
TILE_OP_BODY(TADDC) { two_steps(core, operands, Op::TADD); }
TILE_OP_BODY(TSUBC) { two_steps(core, operands, Op::TSUB); }
TILE_OP_BODY(TADDSC) { two_steps(core, operands, Op::TADDS); }
TILE_OP_BODY(TSUBSC) { two_steps(core, operands, Op::TSUBS); }

// --- TPRELU: where the source is not positive, its product with a slope of its own

TILE_OP_BODY(TPRELU) {
    TileRef scratch = tile_operand(core, operands, 3); // the row behind the mask
    scratch.address = address_of(scratch, tile_operand(core, operands, 0).valid_rows);
    const Operand &to = operands[0], &src = operands[1], &slope = operands[2], &mask = operands[3];
    constexpr int64_t kGreater = 4; // pto::CmpMode::GT
    run_then(core, Op::TMUL, to, src, slope);
    run_then(core, Op::TCMPS, mask, src, as_operand(int64_t(0)), as_operand(kGreater));
    barrier(core);
    run(core, Op::TSEL, to, mask, src, to, as_operand(scratch));
}
FUNCTION_OP_BODY(TPRELU) { binary(core, operands, Instr::VLRELU); }

// --- TAXPY: dst + src * scalar; half may be added to float

static void axpy_mixed(Core &core, const Lines &to, const Lines &from, const Operand &scalar) {
    const Operation add(Instr::VAXPY, scalar_bits(scalar, Type::F16));
    if (to.lines <= 0 || to.width <= 0) return;
    constexpr int lanes = 64;
    if (std::max(to.blocks(), from.blocks()) > kMostRepeats || to.width / lanes > to.lines) {
        auto one = [&](const Step &step) {
            issue(core, add, Type::F32, step, step.dst, VectorOperand(step.src0.address, 4).of(Type::F16));
        };
        return walk_counted_lines(core, to, &from, nullptr, one);
    }
    portions(to.lines, kMostRepeats, [&](int first, int lines) {
        column_repeats(core, to.width, lanes, [&](int column, int width) {
            core.vector(add, Type::F32, lines, int64_t(lines) * width, to.at(first, column, to.blocks()),
                        from.at(first, column, from.blocks()).of(Type::F16));
        });
    });
}

TILE_OP_BODY(TAXPY) {
    const TileRef &dst = tile_operand(core, operands, 0), &src = tile_operand(core, operands, 1);
    require_valid(core, src, dst);
    Lines to = lines_of(core, dst), from = lines_of(core, src, to);
    if (dst.type == Type::F32 && src.type == Type::F16) return axpy_mixed(core, to, from, operands[2]);
    require_type(core, src, dst.type);
    require_instruction(core, Instr::VAXPY, dst.type);
    const Operation add(Instr::VAXPY, scalar_bits(operands[2], dst.type), core.register_based());
    walk_scalar(core, to, from, each(core, add, dst.type));
}

// --- quotients with a scalar, reciprocals and reciprocal square roots

static void divide(Core &core, const TileRef &dst, const TileRef &src, const Operand &scalar,
                   bool scalar_first) {
    const Type type = dst.type;
    require_type(core, src, type);
    require_valid(core, src, dst);
    const Lines to = lines_of(core, dst), from = lines_of(core, src, to);
    const uint64_t number = scalar_bits(scalar, type);
    if (!is_real_type(type)) { // the scalar unit's work
        require_instruction(core, Instr::VDIV, type);
        if (to.lines > 0 && to.width > 0)
            scalar_loop(core, Instr::VDIV, type, to, from, nullptr, number, scalar_first);
        return;
    }
    if (core.register_based())
        return walk_scalar(core, to, from, each(core, {Instr::VDIV, number, scalar_first}, type));
    // dst is filled with the scalar first
    if (scalar_first) require_apart(core, dst, src);
    if (dst.address == src.address) { // in place: a product with the rounded inverse
        const double inverse = double(1.0f / float(number_of_bits(type, number)));
        const Operation times(Instr::VMULS, bits_of_number(type, inverse));
        auto one = [&](const Step &step) { issue(core, times, type, step, step.dst, step.dst); };
        return walk_scalar(core, to, from, one);
    }
    auto one = [&](const Step &step) {
        issue(core, {Instr::MOVEV, number}, type, step, step.dst);
        barrier(core);
        issue(core, Instr::VDIV, type, step, step.dst, scalar_first ? step.dst : step.src0,
              scalar_first ? step.src0 : step.dst);
    };
    walk_scalar(core, to, from, one);
}

TILE_OP_BODY(TDIVS) {
    const bool scalar_first = operands[1].kind != Operand::Tile;
    divide(core, tile_operand(core, operands, 0), tile_operand(core, operands, scalar_first ? 2 : 1),
           operands[scalar_first ? 1 : 2], scalar_first);
}
TILE_OP_BODY(TRECIP) {
    divide(core, tile_operand(core, operands, 0), tile_operand(core, operands, 1), as_operand(int64_t(1)),
           true);
}

// With a third tile: square root, then one divided by it, line by line.
TILE_OP_BODY(TRSQRT) {
    if (operands.count < 3) return unary(core, operands, Instr::VRSQRT);
    const Unary t(core, operands);
    if (!is_real_type(t.type)) refuse_type(core, t.type);
    const VectorOperand ones(tile_operand(core, operands, 2).address, 0, 0);
    const int block = per_block(t.type);
    under_count(core, block, [&] {
        core.vector_counted({Instr::MOVEV, bits_of_number(t.type, 1)}, t.type, block, ones);
        mask_value(core, uint64_t(t.to.width));
        for (int line = 0; line < t.to.lines; ++line)
            core.vector_counted(Instr::VSQRT, t.type, t.to.width, t.to.at(line), t.from.at(line));
        barrier(core);
        for (int line = 0; line < t.to.lines; ++line)
            core.vector_counted(Instr::VDIV, t.type, t.to.width, t.to.at(line), ones, t.to.at(line));
    });
}
// One divided by the rounded square root, in registers.
FUNCTION_OP_BODY(TRSQRT) {
    const Unary t(core, operands);
    if (!is_real_type(t.type)) refuse_type(core, t.type);
    auto one = [&](const Step &step) {
        issue(core, Instr::VSQRT, t.type, step);
        issue(core, {Instr::VDIV, bits_of_number(t.type, 1), 1}, t.type, step, step.dst, step.dst);
    };
    walk_unary(core, t.to, t.from, one);
}

// --- on bits. The instructions know only 16-bit elements; bits do not care. With functions they know every
// size.

namespace {

struct BitLines {
    Type type;
    Lines lines;
};
BitLines bit_lines(const Core &core, Type type, const Lines &lines) {
    if (!core.register_based()) return {Type::U16, lines.as(2)};
    return {bits_of(type), lines};
}

void bitwise(Core &core, const Operands &operands, Instr instr) {
    const Binary t(core, operands);
    const bool bits = core.register_based() || t.type == Type::F16;
    if (!bits && (t.type == Type::F32 || t.type == Type::BF16 || !is_number(t.type)))
        refuse_type(core, t.type);
    const BitLines into = bit_lines(core, t.type, t.to), first = bit_lines(core, t.type, t.x),
                   second = bit_lines(core, t.type, t.y);
    walk_binary(core, into.lines, first.lines, second.lines, t.to.size != 2, each(core, instr, into.type));
}

// A number has bits of its own only in an integer's type. On a2a3 it fills dst first.
void bitwise_with_number(Core &core, const Operands &operands, Op op) {
    const TileRef &dst = tile_operand(core, operands, 0);
    if (dst.type == Type::F16) refuse_type(core, dst.type);
    require_apart(core, dst, tile_operand(core, operands, 1));
    run_then(core, Op::TEXPANDS, operands[0], operands[2]);
    run(core, op, operands[0], operands[1], operands[0]);
}

// Counts that differ by element are the scalar unit's work. Counts past the width of the type leave nothing,
// or the sign; of 64-bit elements the low six bits count.
void shift_each(Core &core, const Operands &operands, Instr instr) {
    const Binary t(core, operands);
    require_instruction(core, instr, t.type);
    scalar_loop(core, instr, t.type, t.to, t.x, &t.y);
}

// (a or b) without (a and b): a2a3 has no instruction for it.
void exclusive(Core &core, const Operands &operands, Op either, Op both) {
    const Operand &dst = operands[0], &a = operands[1], &b = operands[2], &tmp = operands[3];
    run_then(core, either, tmp, a, b);
    run_then(core, both, dst, a, b);
    run_then(core, Op::TNOT, dst, dst);
    run(core, Op::TAND, dst, dst, tmp);
}

} // namespace

TILE_OP_BODY(TAND) { bitwise(core, operands, Instr::VAND); }
TILE_OP_BODY(TOR) { bitwise(core, operands, Instr::VOR); }
TILE_OP_BODY(TNOT) {
    const Unary t(core, operands);
    if (is_real_type(t.type) || !is_number(t.type)) refuse_type(core, t.type);
    const BitLines into = bit_lines(core, t.type, t.to);
    walk_unary(core, into.lines, bit_lines(core, t.type, t.from).lines, each(core, Instr::VNOT, into.type));
}
TILE_OP_BODY(TXOR) {
    const TileRef &dst = tile_operand(core, operands, 0), &tmp = tile_operand(core, operands, 3);
    for (uint32_t i = 1; i < 4; ++i) require_apart(core, dst, tile_operand(core, operands, i));
    for (uint32_t i = 1; i < 3; ++i) require_apart(core, tmp, operands[i].tile);
    exclusive(core, operands, Op::TOR, Op::TAND);
}
TILE_OP_BODY(TXORS) {
    require_apart(core, tile_operand(core, operands, 0), tile_operand(core, operands, 3));
    exclusive(core, operands, Op::TORS, Op::TANDS);
}
TILE_OP_BODY(TANDS) { bitwise_with_number(core, operands, Op::TAND); }
TILE_OP_BODY(TORS) { bitwise_with_number(core, operands, Op::TOR); }
FUNCTION_OP_BODY(TXOR) { bitwise(core, operands, Instr::VXOR); }
FUNCTION_OP_BODY(TANDS) { with_scalar(core, operands, Instr::VAND); }
FUNCTION_OP_BODY(TORS) { with_scalar(core, operands, Instr::VOR); }
FUNCTION_OP_BODY(TXORS) { with_scalar(core, operands, Instr::VXOR); }

TILE_OP_BODY(TSHL) { shift_each(core, operands, Instr::VSHL); }
TILE_OP_BODY(TSHR) { shift_each(core, operands, Instr::VSHR); }
FUNCTION_OP_BODY(TSHL) { binary(core, operands, Instr::VSHL); }
FUNCTION_OP_BODY(TSHR) { binary(core, operands, Instr::VSHR); }
TILE_OP_BODY(TSHLS) { with_scalar(core, operands, Instr::VSHL); }
TILE_OP_BODY(TSHRS) { with_scalar(core, operands, Instr::VSHR); }

// --- TEXPANDS: a number into every element. In L1 into the whole tile, valid or not, block by block.

static bool expand_in_l1(Core &core, const Operands &operands) {
    const TileRef &dst = tile_operand(core, operands, 0);
    if (!is_number(dst.type)) refuse_type(core, dst.type);
    if (dst.space != Space::L1) return false;
    const int64_t bytes = int64_t(dst.rows) * dst.cols * type_size(dst.type);
    fill_matrix(core, dst.type, dst.address, 1, bytes, 0, scalar_bits(operands[1], dst.type), bytes / 32);
    return true;
}

TILE_OP_BODY(TEXPANDS) {
    if (expand_in_l1(core, operands)) return;
    const TileRef &dst = operands[0].tile;
    const Lines to = lines_of(core, dst);
    const bool pairs = to.size == 1; // bytes are filled in pairs
    uint64_t bits = scalar_bits(operands[1], dst.type);
    if (pairs) bits |= bits << 8;
    walk_fill(core, pairs ? to.as(2) : to, each(core, {Instr::MOVEV, bits}, pairs ? Type::I16 : dst.type));
}
FUNCTION_OP_BODY(TEXPANDS) {
    if (expand_in_l1(core, operands)) return;
    const TileRef &dst = operands[0].tile;
    const Operation fill(Instr::MOVEV, scalar_bits(operands[1], dst.type));
    walk_counted_lines(core, lines_of(core, dst), nullptr, nullptr, each(core, fill, dst.type));
}

} // namespace insight_trace::engine
