// Sums that are rectified and narrowed in one go, and quantised numbers to and from floats.
#include "isa/composites.hpp"
#include "steps.hpp"

namespace insight_trace::engine {

namespace {

constexpr Type F = Type::F32, H = Type::F16, I = Type::I32;
constexpr float kShift = 131072.0f; // large sums are scaled down first
const Operation kRound = rounding(Round::Rint);

// Repeats of a conversion: as many elements as the wider type has in 256 bytes. `body(line, column, repeat,
// width)`.
template <class Body> void walk_conversion(Core &core, const Lines &dst, int source_size, Body body) {
    const int lanes = kRepeatBytes / std::max(dst.size, source_size), tail = dst.width % lanes;
    for (int line = 0; line < dst.lines; ++line)
        portions(dst.width / lanes, kMostRepeats,
                 [&](int done, int repeat) { body(line, done * lanes, repeat, lanes); });
    if (tail && dst.lines > 0)
        under_mask(core, tail, [&] {
            for (int line = 0; line < dst.lines; ++line) body(line, dst.width - tail, 1, tail);
        });
}

void rectify_and_narrow(Core &core, const Operands &operands, Instr instr) {
    const TileRef &dst = tile_operand(core, operands, 0), &a = tile_operand(core, operands, 1),
                  &b = tile_operand(core, operands, 2);
    require_type(core, b, a.type);
    const Lines to = lines_of(core, dst), x = lines_of(core, a, to), y = lines_of(core, b, to);
    const bool to_bytes = (a.type == H || a.type == Type::I16) && dst.type == Type::I8;
    if (!to_bytes && (a.type != F || dst.type != H))
        core.unsupported("%s from %s to %s", core.op, type_name(a.type), type_name(dst.type));
    walk_conversion(core, to, x.size, [&](int line, int column, int repeat, int width) {
        core.vector(instr, a.type, repeat, int64_t(repeat) * width,
                    to.at(line, column, 8 / x.size * to.size).of(dst.type), x.at(line, column),
                    y.at(line, column));
    });
}

// The operands of TADDDEQRELU, checked: dst, two tiles of integers, the scale, scratch.
struct Sums {
    Lines to, x, y;
    uint64_t factors[3];
    Sums(Core &core, const Operands &operands)
        : to(lines_of(core, tile_operand(core, operands, 0))), x(source(core, operands, 1)),
          y(source(core, operands, 2)),
          factors{float_bits(1.0f / kShift), scalar_bits(operands[3], F), float_bits(kShift)} {
        require_type(core, operands[0].tile, H);
        require_type(core, tile_operand(core, operands, 4), I);
    }
    Lines source(Core &core, const Operands &operands, uint32_t which) const {
        const TileRef &tile = tile_operand(core, operands, which);
        require_type(core, tile, I);
        return lines_of(core, tile, to);
    }
};

// The operands of TDEQUANT, checked: dst, src, a scale and an offset for every row.
struct Dequantised {
    const TileRef &src, &scale, &offset;
    Lines to, from;
    Dequantised(Core &core, const Operands &operands)
        : src(tile_operand(core, operands, 1)), scale(tile_operand(core, operands, 2)),
          offset(tile_operand(core, operands, 3)) {
        const TileRef &dst = tile_operand(core, operands, 0);
        for (const TileRef *tile : {&dst, &scale, &offset}) require_type(core, *tile, F);
        to = lines_of(core, dst);
        from = lines_of(core, src, to);
        if (!to.rows) core.unsupported("TDEQUANT of column-major tiles");
        if (src.type != Type::I8 && src.type != Type::I16) refuse_type(core, src.type);
    }
    uint32_t of_row(const TileRef &tile, int row) const {
        return element_address(tile, int64_t(row) * row_step(scale));
    }
};

constexpr uint64_t kSign = 0x80000000u;

// --- TQUANT: dst, src, a scale for every row, 2 (signed) or 3 (unsigned, with an offset for every row),
// scratch, offset. Else to groups that share a power of two.

constexpr int64_t kSigned = 2, kUnsigned = 3; // pto::QuantType

int64_t kind_of(Core &core, const Operands &operands) {
    const int64_t kind = operands.count > 3 ? operands[3].option : -1;
    if (kind != kSigned && kind != kUnsigned) return -1;
    require_type(core, tile_operand(core, operands, 1), F);
    require_type(core, tile_operand(core, operands, 0), kind == kSigned ? Type::I8 : Type::U8);
    return kind;
}

} // namespace

TILE_OP_BODY(TADDRELUCONV) { rectify_and_narrow(core, operands, Instr::VADDRELUCONV); }
TILE_OP_BODY(TSUBRELUCONV) { rectify_and_narrow(core, operands, Instr::VSUBRELUCONV); }

// max(0, (a + b) * scale). Both sources are overwritten on the way.
TILE_OP_BODY(TADDDEQRELU) {
    const Sums t(core, operands);
    const Lines scratch = t.source(core, operands, 4);
    walk_conversion(core, t.to, 4, [&](int line, int column, int repeat, int width) {
        const VectorOperand p = t.x.at(line, column), q = t.y.at(line, column), s = scratch.at(line, column);
        auto then = [&](Operation instr, Type type, VectorOperand d, VectorOperand s0,
                        VectorOperand s1 = {}) {
            core.vector(instr, type, repeat, int64_t(repeat) * width, d, s0, s1);
            barrier(core);
        };
        then(Instr::VADD, I, s, p, q);
        then(kRound, F, p.of(F), s.of(I));
        for (uint64_t by : t.factors) then({Instr::VMULS, by}, F, p, p);
        then(Instr::MOVEV, F, s, {});
        then(Instr::VMAX, F, q, p, s);
        then(kRound, H, t.to.at(line, column, 4).of(H), q.of(F));
    });
}

// With registers the steps leave their operands as they were.
FUNCTION_OP_BODY(TADDDEQRELU) {
    const Sums t(core, operands);
    const VectorOperand held(kRegisterFile);
    for (int line = 0; line < t.to.lines; ++line) {
        auto then = [&](Operation instr, Type type, VectorOperand d, VectorOperand s0,
                        VectorOperand s1 = {}) { core.vector_counted(instr, type, t.to.width, d, s0, s1); };
        then(Instr::VADD, I, held, t.x.at(line), t.y.at(line));
        then(kRound, F, held.of(F), held.of(I));
        for (uint64_t by : t.factors) then({Instr::VMULS, by}, F, held, held);
        then(Instr::VMAXS, F, held, held);
        then(kRound, H, t.to.at(line, 0, 4).of(H), held.of(F));
    }
}

// (src - offset) * scale.
TILE_OP_BODY(TDEQUANT) {
    const Dequantised t(core, operands);
    const int width = t.to.width;
    under_count(core, width, [&] {
        for (int row = 0; row < t.to.lines; ++row) {
            const VectorOperand to = t.to.at(row), from = t.from.at(row, 0, 4).of(t.src.type);
            if (t.src.type == Type::I8) { // over half, in every second block of dst itself
                const VectorOperand halves(to.address, 16, 2), again(to.address, 8, 2);
                counted_then(core, kRound, H, width, halves.of(H), from);
                core.vector_counted(kRound, F, width, to.of(F), again.of(H));
            } else {
                core.vector_counted(kRound, F, width, to.of(F), from);
            }
            barrier(core);
        }
    });
    under_count(core, width, [&] {
        for (int row = 0; row < t.to.lines; ++row) {
            const VectorOperand to = t.to.at(row);
            handshake(core, PipeId::V, PipeId::S);
            const uint64_t less = scalar_load(core, t.of_row(t.offset, row), 4) ^ kSign,
                           by = scalar_load(core, t.of_row(t.scale, row), 4);
            handshake(core, PipeId::S, PipeId::V);
            counted_then(core, {Instr::VADDS, less}, F, width, to, to);
            counted_then(core, {Instr::VMULS, by}, F, width, to, to);
        }
    });
}

FUNCTION_OP_BODY(TDEQUANT) {
    const Dequantised t(core, operands);
    const VectorOperand held(kRegisterFile);
    for (int row = 0; row < t.to.lines; ++row) {
        const uint64_t less = spread_value(core, t.of_row(t.offset, row), 4) ^ kSign,
                       by = spread_value(core, t.of_row(t.scale, row), 4);
        core.vector_counted(kRound, F, t.to.width, held.of(F), t.from.at(row).of(t.src.type));
        core.vector_counted({Instr::VADDS, less}, F, t.to.width, held, held);
        core.vector_counted({Instr::VMULS, by}, F, t.to.width, t.to.at(row), held);
    }
}

// src is overwritten on the way: scaled in place, and halves of it before the last step.
TILE_OP_BODY(TQUANT) {
    const int64_t kind = kind_of(core, operands);
    if (kind < 0) return quantise_groups(core, operands);
    if (operands.count < 5) core.unsupported("TQUANT without a scratch tile");
    const Operand &src = operands[1], &tmp = operands[4];
    TileRef whole = src.tile, halves = src.tile;
    whole.address = tile_operand(core, operands, 4).address;
    whole.type = I;
    halves.type = H;
    halves.cols = (src.tile.cols + 15) / 16 * 16;
    whole.dynamic = halves.dynamic = 3;
    const Operand nearest = as_operand(static_cast<int64_t>(Round::Rint)), saturate = as_operand(int64_t(0));
    run_then(core, Op::TROWEXPANDMUL, src, src, operands[2], tmp);
    if (kind == kUnsigned)
        run_then(core, Op::TROWEXPANDADD, src, src, as_operand(tile_operand(core, operands, 5)), tmp);
    run_then(core, Op::TCVT, as_operand(whole), src, nearest);
    run_then(core, Op::TCVT, as_operand(halves), as_operand(whole), nearest);
    run_then(core, Op::TCVT, operands[0], as_operand(halves), nearest, saturate);
}

// With registers: the product, the sum, and one conversion that rounds and holds.
FUNCTION_OP_BODY(TQUANT) {
    const int64_t kind = kind_of(core, operands);
    if (kind < 0) return quantise_groups(core, operands);
    const TileRef &dst = operands[0].tile, &src = operands[1].tile, &scale = tile_operand(core, operands, 2);
    const TileRef *offset = operands.count > 5 ? &tile_operand(core, operands, 5) : nullptr;
    need_plain_rows(core, src, "source");
    need_plain_rows(core, dst, "destination");
    if (kind == kUnsigned && !offset) core.kernel_error("TQUANT to unsigned numbers needs offsets");
    const VectorOperand held(kRegisterFile);
    const int cols = src.valid_cols;
    auto number = [&](const TileRef &tile, int row) {
        return spread_value(core, tile.address + uint32_t(row) * 4, 4);
    };
    for (int r = 0; r < src.valid_rows; ++r) {
        core.vector_counted({Instr::VMULS, number(scale, r)}, F, cols, held, row_of(src, r));
        if (offset) core.vector_counted({Instr::VADDS, number(*offset, r)}, F, cols, held, held);
        core.vector_counted(kRound, dst.type, cols, VectorOperand(address_of(dst, r), 2).of(dst.type),
                            held.of(F));
    }
}

} // namespace insight_trace::engine
