// Sums that are rectified and narrowed in one go, and quantised numbers to and from floats.
#include <algorithm>

#include "compose.hpp"
#include "isa/composites.hpp"
#include "steps.hpp"

namespace insight_trace::engine {

namespace {

// Repeats of a conversion: as many elements as the wider type has in 256 bytes. `body(line, column, repeat,
// width)`.
template <class Body> void walk_conversion(Core &core, const Lines &dst, int source_size, Body body) {
    int per_repeat = 256 / std::max(dst.size, source_size);
    int head = dst.width / per_repeat, tail = dst.width % per_repeat;
    for (int line = 0; line < dst.lines; ++line)
        for (int done = 0; done < head; done += 255)
            body(line, done * per_repeat, std::min(255, head - done), per_repeat);
    if (!tail || dst.lines <= 0) return;
    mask_elements(core, tail);
    for (int line = 0; line < dst.lines; ++line) body(line, head * per_repeat, 1, tail);
    mask_all(core);
}

VectorOperand place_in(const Lines &tile, int line, int column, int stride) {
    int64_t offset = (int64_t(line) * tile.pitch + column) * tile.size;
    return VectorOperand(tile.address + static_cast<uint32_t>(offset), static_cast<uint16_t>(stride));
}

void rectify_and_narrow(Core &core, const Operands &operands, const char *op, Instr instr) {
    const TileRef &dst = tile_operand(core, op, operands, 0), &a = tile_operand(core, op, operands, 1),
                  &b = tile_operand(core, op, operands, 2);
    require_type(core, op, b, a.type);
    Lines to = lines_of(core, op, dst), x = lines_of(core, op, a, to), y = lines_of(core, op, b, to);
    bool to_half = a.type == Type::F32 && dst.type == Type::F16;
    bool to_bytes = (a.type == Type::F16 || a.type == Type::I16) && dst.type == Type::I8;
    if (!to_half && !to_bytes)
        core.unsupported("%s from %s to %s", op, type_name(a.type), type_name(dst.type));
    int narrow = 8 / x.size * to.size;
    walk_conversion(core, to, x.size, [&](int line, int column, int repeat, int width) {
        core.vector(executed(instr), a.type, repeat, int64_t(repeat) * width,
                    place_in(to, line, column, narrow).of(dst.type), place_in(x, line, column, 8),
                    place_in(y, line, column, 8));
    });
}

} // namespace

TILE_OP_BODY(TADDRELUCONV) { rectify_and_narrow(core, operands, "TADDRELUCONV", Instr::VADDRELUCONV); }
TILE_OP_BODY(TSUBRELUCONV) { rectify_and_narrow(core, operands, "TSUBRELUCONV", Instr::VSUBRELUCONV); }

constexpr float kShift = 131072.0f; // large sums are scaled down first
static const Operation kRound = executed(Instr::VCONV, 0, static_cast<uint8_t>(Round::Rint));

// dst, two tiles of integers, the scale, scratch: max(0, (a + b) * scale). Both sources are overwritten on
// the way.
TILE_OP_BODY(TADDDEQRELU) {
    const char *op = "TADDDEQRELU";
    const TileRef &dst = tile_operand(core, op, operands, 0), &a = tile_operand(core, op, operands, 1),
                  &b = tile_operand(core, op, operands, 2), &tmp = tile_operand(core, op, operands, 4);
    require_type(core, op, dst, Type::F16);
    for (const TileRef *tile : {&a, &b, &tmp}) require_type(core, op, *tile, Type::I32);
    Lines to = lines_of(core, op, dst), x = lines_of(core, op, a, to), y = lines_of(core, op, b, to),
          scratch = lines_of(core, op, tmp, to);
    const float scale = bits_float(static_cast<uint32_t>(scalar_bits(operands[3], Type::F32)));
    walk_conversion(core, to, 4, [&](int line, int column, int repeat, int width) {
        VectorOperand p = place_in(x, line, column, 8), q = place_in(y, line, column, 8),
                      t = place_in(scratch, line, column, 8);
        auto then = [&](Operation instr, Type type, VectorOperand d, VectorOperand s0,
                        VectorOperand s1 = {}) {
            core.vector(instr, type, repeat, int64_t(repeat) * width, d, s0, s1);
            core.barrier(PipeId::V);
        };
        then(executed(Instr::VADD), Type::I32, t, p, q);
        then(kRound, Type::F32, p.of(Type::F32), t.of(Type::I32));
        for (float by : {1.0f / kShift, scale, kShift})
            then(executed(Instr::VMULS, float_bits(by)), Type::F32, p, p);
        then(executed(Instr::MOVEV), Type::F32, t, {});
        then(executed(Instr::VMAX), Type::F32, q, p, t);
        then(kRound, Type::F16, place_in(to, line, column, 4).of(Type::F16), q.of(Type::F32));
    });
}

// With registers the steps leave their operands as they were.
FUNCTION_OP_BODY(TADDDEQRELU) {
    const char *op = "TADDDEQRELU";
    const TileRef &dst = tile_operand(core, op, operands, 0), &a = tile_operand(core, op, operands, 1),
                  &b = tile_operand(core, op, operands, 2);
    require_type(core, op, dst, Type::F16);
    for (const TileRef *tile : {&a, &b, &tile_operand(core, op, operands, 4)})
        require_type(core, op, *tile, Type::I32);
    Lines to = lines_of(core, op, dst), x = lines_of(core, op, a, to), y = lines_of(core, op, b, to);
    const uint64_t scale = scalar_bits(operands[3], Type::F32);
    const VectorOperand held(kRegisterFile);
    for (int line = 0; line < to.lines; ++line) {
        core.vector_counted(executed(Instr::VADD), Type::I32, to.width, held, place_in(x, line, 0, 8),
                            place_in(y, line, 0, 8));
        core.vector_counted(kRound, Type::F32, to.width, held.of(Type::F32), held.of(Type::I32));
        for (uint64_t by : {uint64_t(float_bits(1.0f / kShift)), scale, uint64_t(float_bits(kShift))})
            core.vector_counted(executed(Instr::VMULS, by), Type::F32, to.width, held, held);
        core.vector_counted(executed(Instr::VMAXS), Type::F32, to.width, held, held);
        core.vector_counted(kRound, Type::F16, to.width, place_in(to, line, 0, 4).of(Type::F16),
                            held.of(Type::F32));
    }
}

// dst, src, a scale and an offset for every row: (src - offset) * scale.
TILE_OP_BODY(TDEQUANT) {
    const char *op = "TDEQUANT";
    const TileRef &dst = tile_operand(core, op, operands, 0), &src = tile_operand(core, op, operands, 1),
                  &scale = tile_operand(core, op, operands, 2), &offset = tile_operand(core, op, operands, 3);
    require_type(core, op, dst, Type::F32);
    require_type(core, op, scale, Type::F32);
    require_type(core, op, offset, Type::F32);
    Lines to = lines_of(core, op, dst), from = lines_of(core, op, src, to);
    if (!to.rows) core.unsupported("TDEQUANT of column-major tiles");
    if (src.type != Type::I8 && src.type != Type::I16)
        core.unsupported("%s of %s tiles", op, type_name(src.type));
    int pitch = scale.row_major ? scale.cols : 1;
    auto parameter = [&](const TileRef &tile, int row) {
        return scalar_load(core, tile.address + static_cast<uint32_t>(row * pitch * 4), 4);
    };
    auto at = [](const Lines &tile, int row) { return place_in(tile, row, 0, 8); };
    count_elements(core, to.width);
    for (int row = 0; row < to.lines; ++row) {
        if (src.type == Type::I8) { // over half, in every second block of dst itself
            const VectorOperand halves(at(to, row).address, 16, 2);
            core.vector_counted(kRound, Type::F16, to.width, halves.of(Type::F16),
                                place_in(from, row, 0, 4).of(src.type));
            core.barrier(PipeId::V);
            core.vector_counted(kRound, Type::F32, to.width, at(to, row).of(Type::F32),
                                VectorOperand(halves.address, 8, 2).of(Type::F16));
        } else {
            core.vector_counted(kRound, Type::F32, to.width, at(to, row).of(Type::F32),
                                place_in(from, row, 0, 4).of(src.type));
        }
        core.barrier(PipeId::V);
    }
    count_off(core);
    count_elements(core, to.width);
    for (int row = 0; row < to.lines; ++row) {
        handshake(core, PipeId::V, PipeId::S);
        const uint64_t less = parameter(offset, row) ^ 0x80000000u, by = parameter(scale, row);
        handshake(core, PipeId::S, PipeId::V);
        core.vector_counted(executed(Instr::VADDS, less), Type::F32, to.width, at(to, row), at(to, row));
        core.barrier(PipeId::V);
        core.vector_counted(executed(Instr::VMULS, by), Type::F32, to.width, at(to, row), at(to, row));
        core.barrier(PipeId::V);
    }
    count_off(core);
}

FUNCTION_OP_BODY(TDEQUANT) {
    const char *op = "TDEQUANT";
    const TileRef &dst = tile_operand(core, op, operands, 0), &src = tile_operand(core, op, operands, 1),
                  &scale = tile_operand(core, op, operands, 2), &offset = tile_operand(core, op, operands, 3);
    for (const TileRef *tile : {&dst, &scale, &offset}) require_type(core, op, *tile, Type::F32);
    Lines to = lines_of(core, op, dst), from = lines_of(core, op, src, to);
    if (!to.rows) core.unsupported("TDEQUANT of column-major tiles");
    if (src.type != Type::I8 && src.type != Type::I16)
        core.unsupported("%s of %s tiles", op, type_name(src.type));
    const VectorOperand held(kRegisterFile);
    for (int row = 0; row < to.lines; ++row) {
        auto parameter = [&](const TileRef &tile) {
            return spread_value(core, element_address(tile, int64_t(row) * row_step(scale)), 4);
        };
        core.vector_counted(kRound, Type::F32, to.width, held.of(Type::F32),
                            place_in(from, row, 0, 8).of(src.type));
        core.vector_counted(executed(Instr::VADDS, parameter(offset) ^ 0x80000000u), Type::F32, to.width,
                            held, held);
        core.vector_counted(executed(Instr::VMULS, parameter(scale)), Type::F32, to.width,
                            place_in(to, row, 0, 8), held);
    }
}

// dst, src, a scale for every row, 2 (signed) or 3 (unsigned, with an offset for every row), scratch, offset.
// src is overwritten on the way: scaled in place, and halves of it before the last step.
TILE_OP_BODY(TQUANT) {
    const char *op = "TQUANT";
    constexpr int64_t kSigned = 2, kUnsigned = 3; // pto::QuantType
    const TileRef &dst = tile_operand(core, op, operands, 0), &src = tile_operand(core, op, operands, 1);
    int64_t kind = operands.count > 3 ? operands[3].option : -1;
    if (kind != kSigned && kind != kUnsigned) return quantise_groups(core, operands);
    if (operands.count < 5) core.unsupported("TQUANT without a scratch tile");
    const TileRef &tmp = tile_operand(core, op, operands, 4);
    require_type(core, op, src, Type::F32);
    require_type(core, op, dst, kind == kSigned ? Type::I8 : Type::U8);
    const Operand &scale = operands[2];
    TileRef whole = src, halves = src;
    whole.address = tmp.address;
    whole.type = Type::I32;
    halves.type = Type::F16;
    halves.cols = (src.cols + 15) / 16 * 16;
    whole.dynamic = halves.dynamic = 3;
    constexpr int64_t kNearest = static_cast<int64_t>(Round::Rint), kSaturate = 0;
    run(core, Op::TROWEXPANDMUL, operands[1], operands[1], scale, operands[4]);
    core.barrier(PipeId::V);
    if (kind == kUnsigned) {
        run(core, Op::TROWEXPANDADD, operands[1], operands[1],
            Operand(as_operand(tile_operand(core, op, operands, 5))), operands[4]);
        core.barrier(PipeId::V);
    }
    run(core, Op::TCVT, as_operand(whole), operands[1], as_operand(kNearest));
    core.barrier(PipeId::V);
    run(core, Op::TCVT, as_operand(halves), as_operand(whole), as_operand(kNearest));
    core.barrier(PipeId::V);
    run(core, Op::TCVT, operands[0], as_operand(halves), as_operand(kNearest), as_operand(kSaturate));
    core.barrier(PipeId::V);
}

// With registers: the product, the sum, and one conversion that rounds and holds.
FUNCTION_OP_BODY(TQUANT) {
    const char *op = "TQUANT";
    constexpr int64_t kSigned = 2, kUnsigned = 3; // pto::QuantType
    const int64_t kind = operands.count > 3 ? operands[3].option : -1;
    if (kind != kSigned && kind != kUnsigned) return quantise_groups(core, operands);
    const TileRef &dst = tile_operand(core, op, operands, 0), &src = tile_operand(core, op, operands, 1),
                  &scale = tile_operand(core, op, operands, 2);
    const TileRef *offset = operands.count > 5 ? &tile_operand(core, op, operands, 5) : nullptr;
    require_type(core, op, src, Type::F32);
    require_type(core, op, dst, kind == kSigned ? Type::I8 : Type::U8);
    need_plain_rows(core, op, src, "source");
    need_plain_rows(core, op, dst, "destination");
    if (kind == kUnsigned && !offset) core.kernel_error("TQUANT to unsigned numbers needs offsets");
    const VectorOperand held(kRegisterFile);
    auto number = [&](const TileRef &tile, int row) {
        return spread_value(core, tile.address + uint32_t(row) * 4, 4);
    };
    for (int r = 0; r < src.valid_rows; ++r) {
        core.vector_counted(executed(Instr::VMULS, number(scale, r)), Type::F32, src.valid_cols, held,
                            VectorOperand(element_address(src, int64_t(r) * src.cols)));
        if (offset)
            core.vector_counted(executed(Instr::VADDS, number(*offset, r)), Type::F32, src.valid_cols, held,
                                held);
        core.vector_counted(kRound, dst.type, src.valid_cols,
                            VectorOperand(element_address(dst, int64_t(r) * dst.cols), 2).of(dst.type),
                            held.of(Type::F32));
    }
}

} // namespace insight_trace::engine
