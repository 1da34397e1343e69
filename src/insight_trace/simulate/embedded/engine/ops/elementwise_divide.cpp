// Quotients with a scalar, reciprocals and reciprocal square roots.
#include "elementwise.hpp"
#include "isa/vector_unit.hpp"

namespace insight_trace::engine {

namespace {

struct Division {
    const char *op;
    const TileRef &dst, &src;
    const Operand &scalar;
    bool scalar_first;
};

void divide(Core &core, const Division &job) {
    const TileRef &dst = job.dst, &src = job.src;
    require_type(core, job.op, src, dst.type);
    require_valid(core, job.op, src, dst);
    Lines to = lines_of(core, job.op, dst), from = lines_of(core, job.op, src, to);
    bool real = dst.type == Type::F32 || dst.type == Type::F16 || dst.type == Type::BF16;
    bool in_place = dst.address == src.address && !core.register_based();
    // dst is filled with the scalar first
    if (real && job.scalar_first && !core.register_based()) require_apart(core, job.op, dst, src);
    if (!real) { // the scalar unit's work
        if (!arithmetic(Instr::VDIV, dst.type))
            core.unsupported("%s of %s tiles", job.op, type_name(dst.type));
        if (to.lines > 0 && to.width > 0)
            scalar_loop(core, Instr::VDIV, dst.type, to, from, nullptr, scalar_bits(job.scalar, dst.type),
                        job.scalar_first);
        return;
    }
    const uint64_t number = scalar_bits(job.scalar, dst.type);
    // rounded: what an op in place multiplies by
    const uint64_t inverse = bits_of_number(dst.type, double(1.0f / float(number_of_bits(dst.type, number))));
    auto one = [&](const Step &step) {
        if (in_place && !job.scalar_first)
            return issue(core, executed(Instr::VMULS, inverse), dst.type, step, step.dst, step.dst);
        if (core.register_based())
            return issue(core, executed(Instr::VDIV, number, job.scalar_first), dst.type, step, step.dst,
                         step.src0);
        issue(core, executed(Instr::MOVEV, number), dst.type, step, step.dst);
        core.barrier(PipeId::V);
        if (job.scalar_first)
            issue(core, executed(Instr::VDIV), dst.type, step, step.dst, step.dst, step.src0);
        else
            issue(core, executed(Instr::VDIV), dst.type, step, step.dst, step.src0, step.dst);
    };
    walk_scalar(core, to, from, one);
}

} // namespace

TILE_OP_BODY(TDIVS) {
    const TileRef &dst = tile_operand(core, "TDIVS", operands, 0);
    bool scalar_first = operands[1].kind != Operand::Tile;
    const TileRef &src = tile_operand(core, "TDIVS", operands, scalar_first ? 2 : 1);
    divide(core, {"TDIVS", dst, src, operands[scalar_first ? 1 : 2], scalar_first});
}

TILE_OP_BODY(TRECIP) {
    Operand one{};
    one.kind = Operand::Option;
    one.option = 1;
    divide(core, {"TRECIP", tile_operand(core, "TRECIP", operands, 0),
                  tile_operand(core, "TRECIP", operands, 1), one, true});
}

// One divided by the rounded square root, in registers.
FUNCTION_OP_BODY(TRSQRT) {
    const char *op = "TRSQRT";
    const TileRef &dst = tile_operand(core, op, operands, 0), &src = tile_operand(core, op, operands, 1);
    require_type(core, op, src, dst.type);
    Lines to = lines_of(core, op, dst), from = lines_of(core, op, src, to);
    if (dst.type != Type::F32 && dst.type != Type::F16 && dst.type != Type::BF16)
        core.unsupported("%s of %s tiles", op, type_name(dst.type));
    const uint64_t number = dst.type == Type::F32 ? 0x3f800000 : dst.type == Type::F16 ? 0x3c00 : 0x3f80;
    auto one = [&](const Step &step) {
        issue(core, executed(Instr::VSQRT), dst.type, step);
        issue(core, executed(Instr::VDIV, number, 1), dst.type, step, step.dst, step.dst);
    };
    walk_unary(core, to, from, one);
}

// With a third tile: square root, then one divided by it, line by line.
TILE_OP_BODY(TRSQRT) {
    if (operands.count < 3) return unary(core, operands, "TRSQRT", Instr::VRSQRT);
    const char *op = "TRSQRT";
    const TileRef &dst = tile_operand(core, op, operands, 0), &src = tile_operand(core, op, operands, 1),
                  &tmp = tile_operand(core, op, operands, 2);
    require_type(core, op, src, dst.type);
    Lines to = lines_of(core, op, dst), from = lines_of(core, op, src, to);
    if (dst.type != Type::F32 && dst.type != Type::F16 && dst.type != Type::BF16)
        core.unsupported("%s of %s tiles", op, type_name(dst.type));
    int block = 32 / to.size;
    const uint64_t number = dst.type == Type::F32 ? 0x3f800000 : dst.type == Type::F16 ? 0x3c00 : 0x3f80;
    count_elements(core, block);
    core.vector_counted(executed(Instr::MOVEV, number), dst.type, block, VectorOperand(tmp.address, 0, 0));
    core.set_register(PipeId::V, static_cast<uint64_t>(to.width));
    auto at = [](const Lines &tile, int line) {
        return VectorOperand(tile.address + static_cast<uint32_t>(line * tile.pitch * tile.size));
    };
    for (int line = 0; line < to.lines; ++line)
        core.vector_counted(executed(Instr::VSQRT), dst.type, to.width, at(to, line), at(from, line));
    core.barrier(PipeId::V);
    for (int line = 0; line < to.lines; ++line)
        core.vector_counted(executed(Instr::VDIV), dst.type, to.width, at(to, line),
                            VectorOperand(tmp.address, 0, 0), at(to, line));
    count_off(core);
}

} // namespace insight_trace::engine
