// Quotients with a scalar, reciprocals and reciprocal square roots.
#include "elementwise.hpp"

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
    const bool inverts = in_place && real && !job.scalar_first; // a product with the rounded reciprocal
    LineOp loop = line_op(core, job.op, dst.type, inverts ? Pair::Product : Pair::Quotient);
    if (core.computes) {
        uint64_t bits = scalar_bits(job.scalar, dst.type);
        if (inverts)
            bits = with_type(dst.type, [&](auto tag) {
                using T = decltype(tag);
                if constexpr (is_real<T>) return bits_of(T(1.0f / float(scalar_as<T>(job.scalar))));
                return uint64_t(0);
            });
        map_number(core, to, from, bits, job.scalar_first, loop);
    }
    if (to.lines <= 0 || to.width <= 0) return;
    if (!real) return scalar_loop(core, to, 1);
    auto one = [&](const Step &step) {
        if (in_place) return issue(core, Instr::VMULS, dst.type, step, step.dst, step.dst);
        issue(core, Instr::MOVEV, dst.type, step, step.dst);
        core.barrier(PipeId::V);
        if (job.scalar_first)
            issue(core, Instr::VDIV, dst.type, step, step.dst, step.dst, step.src0);
        else
            issue(core, Instr::VDIV, dst.type, step, step.dst, step.src0, step.dst);
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

// One divided by the rounded square root.
static void inverse_root(Core &core, const Operands &operands) {
    const char *op = "TRSQRT";
    const TileRef &dst = tile_operand(core, op, operands, 0), &src = tile_operand(core, op, operands, 1);
    require_type(core, op, src, dst.type);
    Lines to = lines_of(core, op, dst), from = lines_of(core, op, src, to);
    with_type_of(core, op, dst.type, Floats(), [&](auto tag) {
        using T = decltype(tag);
        if (core.computes) map_one<T>(core, to, from, [](float x) { return 1.0f / float(T(std::sqrt(x))); });
    });
    auto one = [&](const Step &step) { issue(core, Instr::VRSQRT, dst.type, step); };
    walk_unary(core, to, from, one);
}

// With a third tile: square root, then one divided by it, line by line.
TILE_OP_BODY(TRSQRT) {
    if (core.register_based()) return inverse_root(core, operands);
    if (operands.count < 3)
        return unary(core, operands, "TRSQRT", Instr::VRSQRT, Floats(),
                     [](float x) { return float(1.0 / std::sqrt(double(x))); });
    const char *op = "TRSQRT";
    const TileRef &dst = tile_operand(core, op, operands, 0), &src = tile_operand(core, op, operands, 1),
                  &tmp = tile_operand(core, op, operands, 2);
    require_type(core, op, src, dst.type);
    Lines to = lines_of(core, op, dst), from = lines_of(core, op, src, to);
    int block = 32 / to.size;
    with_type_of(core, op, dst.type, Floats(), [&](auto tag) {
        using T = decltype(tag);
        if (!core.computes) return;
        T *ones = core.local_as<T>(Space::UB, tmp.address, uint64_t(block));
        map_one<T>(core, to, from, [](float x) { return 1.0f / float(T(std::sqrt(x))); });
        for (int i = 0; i < block; ++i) ones[i] = T(1.0f);
    });
    count_elements(core, block);
    core.vector_counted(Instr::MOVEV, dst.type, block, VectorOperand(tmp.address, 0, 0));
    core.set_register(PipeId::V, static_cast<uint64_t>(to.width));
    auto at = [](const Lines &tile, int line) {
        return VectorOperand(tile.address + static_cast<uint32_t>(line * tile.pitch * tile.size));
    };
    for (int line = 0; line < to.lines; ++line)
        core.vector_counted(Instr::VSQRT, dst.type, to.width, at(to, line), at(from, line));
    core.barrier(PipeId::V);
    for (int line = 0; line < to.lines; ++line)
        core.vector_counted(Instr::VDIV, dst.type, to.width, at(to, line), VectorOperand(tmp.address, 0, 0),
                            at(to, line));
    count_off(core);
}

} // namespace insight_trace::engine
