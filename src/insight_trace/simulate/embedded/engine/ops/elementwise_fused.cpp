// Rectifiers, and products and sums in one instruction.
#include "compose.hpp"
#include "elementwise.hpp"
#include "isa/vector_unit.hpp"

#include <algorithm>

namespace insight_trace::engine {

TILE_OP_BODY(TRELU) { unary(core, operands, "TRELU", Instr::VRELU); }
TILE_OP_BODY(TLRELU) { with_scalar(core, operands, "TLRELU", Instr::VLRELU); }
TILE_OP_BODY(TSUBRELU) { binary(core, operands, "TSUBRELU", Instr::VSUBRELU); }
// The result is an input, too.
TILE_OP_BODY(TMULADDDST) { binary(core, operands, "TMULADDDST", Instr::VMLA); }
TILE_OP_BODY(TFUSEDMULADD) { binary(core, operands, "TFUSEDMULADD", Instr::VMADD); }
TILE_OP_BODY(TFUSEDMULADDRELU) { binary(core, operands, "TFUSEDMULADDRELU", Instr::VMADDRELU); }

// Where the source is not positive, its product with a slope of its own.
TILE_OP_BODY(TPRELU) {
    if (core.register_based()) // one instruction, without scratch
        return binary(core, operands, "TPRELU", Instr::VLRELU);
    const TileRef &dst = tile_operand(core, "TPRELU", operands, 0),
                  &tmp = tile_operand(core, "TPRELU", operands, 3);
    const Operand &to = operands[0], &src = operands[1], &slope = operands[2], &mask = operands[3];
    run(core, Op::TMUL, to, src, slope);
    core.barrier(PipeId::V);
    constexpr int64_t kGreater = 4; // pto::CmpMode::GT
    run(core, Op::TCMPS, mask, src, as_operand(int64_t(0)), as_operand(kGreater));
    core.barrier(PipeId::V);
    TileRef scratch = tmp; // the row behind the mask
    scratch.address += static_cast<uint32_t>(dst.valid_rows * tmp.cols * type_size(tmp.type));
    core.barrier(PipeId::V);
    run(core, Op::TSEL, to, mask, src, to, as_operand(scratch));
}

// --- TAXPY: dst + src * scalar; half may be added to float

static void axpy_mixed(Core &core, const Lines &to, const Lines &from, const Operand &scalar) {
    const Operation add = executed(Instr::VAXPY, scalar_bits(scalar, Type::F16));
    if (to.lines <= 0 || to.width <= 0) return;
    constexpr int per_repeat = 64;
    if (std::max(to.blocks(), from.blocks()) > 255 || to.width / per_repeat > to.lines) {
        auto one = [&](const Step &step) {
            VectorOperand source = step.src0;
            source.repeat_stride = 4;
            issue(core, add, Type::F32, step, step.dst, source.of(Type::F16));
        };
        return walk_counted_lines(core, to, &from, nullptr, one);
    }
    for (int first = 0; first < to.lines; first += 255)
        for (int column = 0; column < to.width; column += per_repeat) {
            int width = std::min(per_repeat, to.width - column), repeat = std::min(255, to.lines - first);
            auto at = [&](const Lines &tile) {
                int64_t offset = (int64_t(first) * tile.pitch + column) * tile.size;
                return VectorOperand(tile.address + static_cast<uint32_t>(offset),
                                     static_cast<uint16_t>(tile.blocks()));
            };
            if (width < per_repeat) mask_elements(core, width);
            core.vector(add, Type::F32, repeat, int64_t(repeat) * width, at(to), at(from).of(Type::F16));
            if (width < per_repeat) mask_all(core);
        }
}

TILE_OP_BODY(TAXPY) {
    const char *op = "TAXPY";
    const TileRef &dst = tile_operand(core, op, operands, 0), &src = tile_operand(core, op, operands, 1);
    require_valid(core, op, src, dst);
    Lines to = lines_of(core, op, dst), from = lines_of(core, op, src, to);
    if (dst.type == Type::F32 && src.type == Type::F16) return axpy_mixed(core, to, from, operands[2]);
    require_type(core, op, src, dst.type);
    if (!arithmetic(Instr::VAXPY, dst.type)) core.unsupported("%s of %s tiles", op, type_name(dst.type));
    const Operation add = executed(Instr::VAXPY, scalar_bits(operands[2], dst.type), core.register_based());
    auto one = [&](const Step &step) { issue(core, add, dst.type, step); };
    walk_scalar(core, to, from, one);
}

// --- sums of three, made of two steps

static void two_steps(Core &core, const Operands &operands, Op first, Op second) {
    run(core, first, operands[0], operands[1], operands[2]);
    core.barrier(PipeId::V);
    run(core, second, operands[0], operands[0], operands[3]);
}
TILE_OP_BODY(TADDC) { two_steps(core, operands, Op::TADD, Op::TADD); }
TILE_OP_BODY(TSUBC) { two_steps(core, operands, Op::TSUB, Op::TADD); }
TILE_OP_BODY(TADDSC) { two_steps(core, operands, Op::TADDS, Op::TADD); }
TILE_OP_BODY(TSUBSC) { two_steps(core, operands, Op::TSUBS, Op::TADD); }

} // namespace insight_trace::engine
