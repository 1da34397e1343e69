// Sums that are rectified and narrowed in one go, and quantised numbers to and from floats.
#include <algorithm>

#include "quantise_groups.hpp"
#include "compose.hpp"
#include "elementwise.hpp"
#include "rounding.hpp"

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

int8_t to_int8(double value) {
    if (value != value) return 0;
    return static_cast<int8_t>(std::max(-128.0, std::min(127.0, to_integral(value, Round::Rint))));
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

// dst, two tiles of integers, the scale, scratch: max(0, (a + b) * scale).
TILE_OP_BODY(TADDDEQRELU) {
    const char *op = "TADDDEQRELU";
    const TileRef &dst = tile_operand(core, op, operands, 0), &a = tile_operand(core, op, operands, 1),
                  &b = tile_operand(core, op, operands, 2), &tmp = tile_operand(core, op, operands, 4);
    require_type(core, op, dst, Type::F16);
    for (const TileRef *tile : {&a, &b, &tmp}) require_type(core, op, *tile, Type::I32);
    Lines to = lines_of(core, op, dst), x = lines_of(core, op, a, to), y = lines_of(core, op, b, to),
          scratch = lines_of(core, op, tmp, to);
    float scale = scalar_as<float>(operands[3]);
    constexpr float kShift = 131072.0f; // large sums are scaled down first
    if (core.computes) {
        half *into = elements_of<half>(core, to);
        const int32_t *first = elements_of<int32_t>(core, x), *second = elements_of<int32_t>(core, y);
        for (int line = 0; line < to.lines; ++line, into += to.pitch, first += x.pitch, second += y.pitch)
            for (int i = 0; i < to.width; ++i) {
                float sum = float(wrap_add(first[i], second[i]));
                into[i] = half(larger(sum * (1.0f / kShift) * scale * kShift, 0.0f));
            }
    }
    walk_conversion(core, to, 4, [&](int line, int column, int repeat, int width) {
        VectorOperand p = place_in(x, line, column, 8), q = place_in(y, line, column, 8),
                      t = place_in(scratch, line, column, 8);
        auto then = [&](Instr instr, Type type, VectorOperand d, VectorOperand s0, VectorOperand s1 = {}) {
            core.vector(instr, type, repeat, int64_t(repeat) * width, d, s0, s1);
            core.barrier(PipeId::V);
        };
        then(Instr::VADD, Type::I32, t, p, q);
        then(Instr::VCONV, Type::F32, p, t);
        for (int step = 0; step < 3; ++step) then(Instr::VMULS, Type::F32, p, p);
        then(Instr::MOVEV, Type::F32, t, {});
        then(Instr::VMAX, Type::F32, q, p, t);
        then(Instr::VCONV, Type::F16, place_in(to, line, column, 4), q.of(Type::F32));
    });
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
    int pitch = scale.row_major ? scale.cols : 1;
    auto parameter = [&](const TileRef &tile, int row) {
        return tile.address + static_cast<uint32_t>(row * pitch * 4);
    };
    with_type_of(core, op, src.type, Types<int8_t, int16_t>(), [&](auto tag) {
        using T = decltype(tag);
        if (!core.computes) return;
        float *into = elements_of<float>(core, to);
        const T *x = elements_of<T>(core, from);
        for (int row = 0; row < to.lines; ++row, into += to.pitch, x += from.pitch) {
            float by = *core.local_as<float>(Space::UB, parameter(scale, row), 1),
                  less = *core.local_as<float>(Space::UB, parameter(offset, row), 1);
            for (int i = 0; i < to.width; ++i) into[i] = (float(x[i]) - less) * by;
        }
    });
    auto at = [](const Lines &tile, int row) { return place_in(tile, row, 0, 8); };
    count_elements(core, to.width);
    for (int row = 0; row < to.lines; ++row) {
        if (src.type == Type::I8) { // over half, in dst itself
            core.vector_counted(Instr::VCONV, Type::F16, to.width, at(to, row).spanning(2 * to.width),
                                at(from, row).of(src.type).spanning(to.width));
            core.barrier(PipeId::V);
            core.vector_counted(Instr::VCONV, Type::F32, to.width, at(to, row).spanning(4 * to.width),
                                at(to, row).of(Type::F16).spanning(2 * to.width));
        } else {
            core.vector_counted(Instr::VCONV, Type::F32, to.width, at(to, row).spanning(4 * to.width),
                                at(from, row).of(src.type).spanning(from.size * to.width));
        }
        core.barrier(PipeId::V);
    }
    count_off(core);
    int64_t load = core.parameters.scalar_load_ub;
    count_elements(core, to.width);
    for (int row = 0; row < to.lines; ++row) {
        handshake(core, PipeId::V, PipeId::S);
        core.scalar_access(Instr::LD_XD_XN_IMM, Space::UB, parameter(offset, row), 4, load);
        core.scalar_access(Instr::LD_XD_XN_IMM, Space::UB, parameter(scale, row), 4, load);
        handshake(core, PipeId::S, PipeId::V);
        core.vector_counted(Instr::VADDS, Type::F32, to.width, at(to, row), at(to, row));
        core.barrier(PipeId::V);
        core.vector_counted(Instr::VMULS, Type::F32, to.width, at(to, row), at(to, row));
        core.barrier(PipeId::V);
    }
    count_off(core);
}

// dst, src, a scale for every row, 2 (signed) or 3 (unsigned, with an offset for every row), scratch, offset.
// src is overwritten on the way: scaled in place, and halves of it before the last step.
TILE_OP_BODY(TQUANT) {
    const char *op = "TQUANT";
    constexpr int64_t kSigned = 2, kUnsigned = 3; // pto::QuantType
    const TileRef &dst = tile_operand(core, op, operands, 0), &src = tile_operand(core, op, operands, 1);
    int64_t kind = operands.count > 3 ? operands[3].option : -1;
    if (kind != kSigned && kind != kUnsigned) return quantise_groups(core, operands);
    if (core.register_based()) return quantise_rows(core, operands);
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

} // namespace insight_trace::engine
