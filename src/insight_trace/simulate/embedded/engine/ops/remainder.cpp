// Remainders: chains of instructions, line by line.
#include "isa/vector_unit.hpp"
#include "ops/steps.hpp"

namespace insight_trace::engine {

namespace {

constexpr Type F = Type::F32, I = Type::I32;

Operation to_whole(Round mode) { return executed(Instr::VCONV, 0, static_cast<uint8_t>(mode)); }
Operation below_zero() { return executed(Instr::VCMPVS, 0, static_cast<uint8_t>(Compare::LT)); }

struct Remainder {
    const char *op;
    const TileRef &dst, &a;
    const TileRef *b;      // none: a scalar
    const Operand *scalar; // none: a tile
    uint32_t tmp;

    Lines to, x, y;
    Remainder(Core &core, const char *op_, const Operands &operands, bool with_scalar, uint32_t scratch)
        : op(op_), dst(tile_operand(core, op_, operands, 0)), a(tile_operand(core, op_, operands, 1)),
          b(with_scalar ? nullptr : &tile_operand(core, op_, operands, 2)),
          scalar(with_scalar ? &operands[2] : nullptr), tmp(scratch) {
        require_type(core, op, a, dst.type);
        if (b) require_type(core, op, *b, dst.type);
        to = lines_of(core, op, dst);
        x = lines_of(core, op, a, to);
        y = b ? lines_of(core, op, *b, to) : x;
    }
    uint64_t number(Type type) const {
        return scalar ? bits_of_number(type, number_of_bits(dst.type, scalar_bits(*scalar, dst.type))) : 0;
    }
};

// One line's instructions in count mode, each followed by a barrier.
class Chain {
  public:
    Chain(Core &core, const Remainder &job, int line)
        : dst(place(job.dst, line)), a(place(job.a, line)), b(job.b ? place(*job.b, line) : VectorOperand()),
          tmp(job.tmp), core_(core), job_(job) {}
    const VectorOperand dst, a, b, tmp;

    Chain &quiet(Operation instr, Type type, VectorOperand to, VectorOperand x, VectorOperand y = {}) {
        core_.vector_counted(instr, type, job_.to.width, to, x, y);
        return *this;
    }
    Chain &then(Operation instr, Type type, VectorOperand to, VectorOperand x, VectorOperand y = {}) {
        quiet(instr, type, to, x, y);
        core_.barrier(PipeId::V);
        return *this;
    }
    // With the other tile, or with the number.
    Chain &with_other(Instr tile, Instr number, Type type, VectorOperand to, VectorOperand x) {
        return job_.b ? then(executed(tile), type, to, x, b)
                      : then(executed(number, job_.number(type)), type, to, x);
    }
    Chain &convert(Type to_type, Type from_type, VectorOperand o, Round mode, bool waits = true) {
        quiet(to_whole(mode), to_type, o.of(to_type), o.of(from_type));
        if (waits) core_.barrier(PipeId::V);
        return *this;
    }
    void fill(Type type, VectorOperand to) { then(executed(Instr::MOVEV, job_.number(type)), type, to, {}); }

  private:
    static VectorOperand place(const TileRef &tile, int line) {
        return VectorOperand(element_address(tile, int64_t(line) * tile.cols));
    }
    Core &core_;
    const Remainder &job_;
};

// Where the rest and the divisor have different signs, the divisor is added. Of a number the bits of the
// first 64 elements choose in every repeat; of a tile they lie behind a line of the scratch tile.
void same_sign(Core &core, const Remainder &job, Chain &line) {
    const int width = job.to.width, repeats = static_cast<int>(ceil_div(width, 64));
    if (!job.b) {
        core.vector(below_zero(), F, 1, 64, line.tmp, line.tmp);
        core.barrier(PipeId::V);
        load_compare_mask(core, job.tmp);
        core.barrier(PipeId::V);
    } else {
        const VectorOperand bits(job.tmp + static_cast<uint32_t>(job.dst.cols * 4));
        const Operation fill = executed(Instr::MOVEV, bits.address);
        const bool counts = job.dst.type == I; // of integers as many as a line has
        if (counts) {
            line.then(fill, Type::U32, bits, {});
        } else {
            count_off(core);
            core.vector(fill, Type::U32, 1, 64, bits);
            core.barrier(PipeId::V);
        }
        load_compare_mask(core, bits.address);
        core.barrier(PipeId::V);
        if (counts) count_off(core);
        core.vector(below_zero(), F, repeats, width, bits, line.tmp);
        core.barrier(PipeId::V);
        count_elements(core, width);
    }
    line.with_other(Instr::VADD, Instr::VADDS, F, line.tmp, line.dst);
    line.then(executed(Instr::VSEL, 0, job.b ? 2 : 0), F, line.dst, line.tmp, line.dst);
}

void rem_floats(Core &core, const Remainder &job, Chain &line) {
    if (job.b)
        count_elements(core, job.to.width);
    else
        line.fill(F, line.tmp);
    line.then(executed(Instr::VDIV), F, line.tmp, line.a, job.b ? line.b : line.tmp);
    line.convert(F, F, line.tmp, Round::Floor).with_other(Instr::VMUL, Instr::VMULS, F, line.dst, line.tmp);
    line.then(executed(Instr::VSUB), F, line.dst, line.a, line.dst);
    line.with_other(Instr::VMUL, Instr::VMULS, F, line.tmp, line.dst);
    same_sign(core, job, line);
}

// The vector unit divides integers as floats; sources are converted in place and back.
void rem_integers(Core &core, const Remainder &job, Chain &line) {
    const bool tile = job.b;
    if (tile) count_elements(core, job.to.width);
    line.convert(F, I, line.a, Round::Rint, false);
    if (tile)
        line.convert(F, I, line.b, Round::Rint);
    else
        line.fill(F, line.tmp);
    line.then(executed(Instr::VDIV), F, line.tmp, line.a, tile ? line.b : line.tmp);
    if (tile)
        line.convert(I, F, line.tmp, Round::Floor)
            .convert(I, F, line.a, Round::Rint, false)
            .convert(I, F, line.b, Round::Rint);
    else
        line.convert(I, F, line.a, Round::Rint, false).convert(I, F, line.tmp, Round::Floor);
    line.with_other(Instr::VMUL, Instr::VMULS, I, line.dst, line.tmp);
    line.then(executed(Instr::VSUB), I, line.dst, line.a, line.dst);
    line.convert(F, I, line.dst, Round::Rint, false).convert(F, I, tile ? line.b : line.tmp, Round::Rint);
    line.with_other(Instr::VMUL, Instr::VMULS, F, line.tmp, line.dst);
    same_sign(core, job, line);
    line.convert(I, F, line.dst, Round::Trunc);
}

void rem(Core &core, const Remainder &job) {
    if (job.dst.type != F && job.dst.type != I)
        core.unsupported("%s of %s tiles", job.op, type_name(job.dst.type));
    if (job.b)
        count_off(core);
    else
        count_elements(core, job.to.width);
    for (int i = 0; i < job.to.lines; ++i) {
        Chain line(core, job, i);
        (job.dst.type == F ? rem_floats : rem_integers)(core, job, line);
        if (job.b) count_off(core);
    }
    if (!job.b) count_off(core);
}

void fmod(Core &core, const Remainder &job) {
    if (job.dst.type != F) core.unsupported("%s of %s tiles", job.op, type_name(job.dst.type));
    count_elements(core, job.to.width);
    for (int i = 0; i < job.to.lines; ++i) {
        Chain line(core, job, i);
        if (!job.b) line.fill(F, line.dst);
        line.then(executed(Instr::VDIV), F, line.dst, line.a, job.b ? line.b : line.dst);
        line.convert(F, F, line.dst, Round::Trunc)
            .with_other(Instr::VMUL, Instr::VMULS, F, line.dst, line.dst);
        line.then(executed(Instr::VSUB), F, line.dst, line.a, line.dst);
    }
    count_off(core);
}

// With registers there is an instruction for every type; how its quotient is rounded and whether the quotient
// is exact, as a kernel can ask for, are its mode (isa/arithmetic.cpp).
void in_registers(Core &core, const Remainder &job, bool floors, bool exact) {
    const Operation instr =
        executed(Instr::VMOD, job.number(job.dst.type), uint8_t((floors ? 2 : 0) | (exact ? 4 : 0)));
    auto one = [&](const Step &step) { issue(core, instr, job.dst.type, step); };
    if (job.b)
        walk_binary(core, job.to, job.x, job.y, false, one);
    else
        walk_scalar(core, job.to, job.x, one);
}

// An algorithm may stand behind the operands.
bool is_exact(const Operands &operands, uint32_t behind) {
    return operands.count > behind && operands[behind].kind == Operand::Option &&
           operands[behind].option != 0;
}

uint32_t scratch(Core &core, const char *op, const Operands &operands) {
    return tile_operand(core, op, operands, 3).address;
}

} // namespace

TILE_OP_BODY(TREM) { rem(core, {core, "TREM", operands, false, scratch(core, "TREM", operands)}); }
TILE_OP_BODY(TREMS) { rem(core, {core, "TREMS", operands, true, scratch(core, "TREMS", operands)}); }
TILE_OP_BODY(TFMOD) { fmod(core, {core, "TFMOD", operands, false, 0}); }
TILE_OP_BODY(TFMODS) { fmod(core, {core, "TFMODS", operands, true, 0}); }

FUNCTION_OP_BODY(TREM) {
    in_registers(core, {core, "TREM", operands, false, 0}, true, is_exact(operands, 4));
}
FUNCTION_OP_BODY(TREMS) {
    in_registers(core, {core, "TREMS", operands, true, 0}, true, is_exact(operands, 4));
}
FUNCTION_OP_BODY(TFMOD) {
    in_registers(core, {core, "TFMOD", operands, false, 0}, false, is_exact(operands, 3));
}
FUNCTION_OP_BODY(TFMODS) {
    in_registers(core, {core, "TFMODS", operands, true, 0}, false, is_exact(operands, 3));
}

} // namespace insight_trace::engine
