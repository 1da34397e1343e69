// Remainders: chains of instructions, line by line.
#include "ops/steps.hpp"

namespace insight_trace::engine {

namespace {

constexpr Type F = Type::F32, I = Type::I32;

Operation below_zero() { return Operation(Instr::VCMPVS, 0, Compare::LT); }

struct Remainder {
    const TileRef &dst, &a;
    const TileRef *b;      // none: a scalar
    const Operand &second; // the same, or the scalar
    Lines to, x, y;

    Remainder(Core &core, const Operands &operands, bool with_scalar)
        : dst(tile_operand(core, operands, 0)), a(tile_operand(core, operands, 1)),
          b(with_scalar ? nullptr : &tile_operand(core, operands, 2)), second(operands[2]) {
        require_type(core, a, dst.type);
        if (b) require_type(core, *b, dst.type);
        to = lines_of(core, dst);
        x = lines_of(core, a, to);
        y = b ? lines_of(core, *b, to) : x;
    }
    uint64_t number(Type type) const {
        return b ? 0 : bits_of_number(type, number_of_bits(dst.type, scalar_bits(second, dst.type)));
    }
};

// One line's instructions in count mode, each followed by a barrier.
class Chain {
  public:
    Chain(Core &core, const Remainder &job, int line, uint32_t scratch)
        : dst(row_of(job.dst, line)), a(row_of(job.a, line)),
          b(job.b ? row_of(*job.b, line) : VectorOperand()), tmp(scratch), core_(core), job_(job) {}
    const VectorOperand dst, a, b, tmp;

    Chain &quiet(Operation instr, Type type, VectorOperand to, VectorOperand x, VectorOperand y = {}) {
        core_.vector_counted(instr, type, job_.to.width, to, x, y);
        return *this;
    }
    Chain &then(Operation instr, Type type, VectorOperand to, VectorOperand x, VectorOperand y = {}) {
        quiet(instr, type, to, x, y);
        barrier(core_);
        return *this;
    }
    // With the other tile, or with the number.
    Chain &with_other(Instr tile, Instr number, Type type, VectorOperand to, VectorOperand x) {
        return job_.b ? then(tile, type, to, x, b) : then({number, job_.number(type)}, type, to, x);
    }
    Chain &convert(Type to_type, Type from_type, VectorOperand o, Round mode, bool waits = true) {
        quiet(rounding(mode), to_type, o.of(to_type), o.of(from_type));
        if (waits) barrier(core_);
        return *this;
    }
    void fill(Type type, VectorOperand to) { then({Instr::MOVEV, job_.number(type)}, type, to, {}); }

  private:
    Core &core_;
    const Remainder &job_;
};

// Where the rest and the divisor have different signs, the divisor is added. Of a number the bits of the
// first 64 elements choose in every repeat; of a tile they lie behind a line of the scratch tile.
void same_sign(Core &core, const Remainder &job, Chain &line) {
    const int width = job.to.width, repeats = static_cast<int>(ceil_div(width, 64));
    if (!job.b) {
        core.vector(below_zero(), F, 1, 64, line.tmp, line.tmp);
        barrier(core);
        load_compare_mask(core, line.tmp.address);
        barrier(core);
    } else {
        const VectorOperand bits(line.tmp.address + static_cast<uint32_t>(job.dst.cols * 4));
        const Operation fill(Instr::MOVEV, bits.address);
        const bool counts = job.dst.type == I; // of integers as many as a line has
        if (counts) {
            line.then(fill, Type::U32, bits, {});
        } else {
            count_off(core);
            core.vector(fill, Type::U32, 1, 64, bits);
            barrier(core);
        }
        load_compare_mask(core, bits.address);
        barrier(core);
        if (counts) count_off(core);
        core.vector(below_zero(), F, repeats, width, bits, line.tmp);
        barrier(core);
        count_elements(core, width);
    }
    line.with_other(Instr::VADD, Instr::VADDS, F, line.tmp, line.dst);
    line.then({Instr::VSEL, 0, job.b ? 2 : 0}, F, line.dst, line.tmp, line.dst);
}

void rem_floats(Core &core, const Remainder &job, Chain &line) {
    if (job.b)
        count_elements(core, job.to.width);
    else
        line.fill(F, line.tmp);
    line.then(Instr::VDIV, F, line.tmp, line.a, job.b ? line.b : line.tmp);
    line.convert(F, F, line.tmp, Round::Floor).with_other(Instr::VMUL, Instr::VMULS, F, line.dst, line.tmp);
    line.then(Instr::VSUB, F, line.dst, line.a, line.dst);
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
    line.then(Instr::VDIV, F, line.tmp, line.a, tile ? line.b : line.tmp);
    if (tile)
        line.convert(I, F, line.tmp, Round::Floor)
            .convert(I, F, line.a, Round::Rint, false)
            .convert(I, F, line.b, Round::Rint);
    else
        line.convert(I, F, line.a, Round::Rint, false).convert(I, F, line.tmp, Round::Floor);
    line.with_other(Instr::VMUL, Instr::VMULS, I, line.dst, line.tmp);
    line.then(Instr::VSUB, I, line.dst, line.a, line.dst);
    line.convert(F, I, line.dst, Round::Rint, false).convert(F, I, tile ? line.b : line.tmp, Round::Rint);
    line.with_other(Instr::VMUL, Instr::VMULS, F, line.tmp, line.dst);
    same_sign(core, job, line);
    line.convert(I, F, line.dst, Round::Trunc);
}

void rem(Core &core, const Operands &operands, bool with_scalar) {
    const Remainder job(core, operands, with_scalar);
    const uint32_t tmp = tile_operand(core, operands, 3).address;
    if (job.dst.type != F && job.dst.type != I) refuse_type(core, job.dst.type);
    if (job.b)
        count_off(core);
    else
        count_elements(core, job.to.width);
    for (int i = 0; i < job.to.lines; ++i) {
        Chain line(core, job, i, tmp);
        (job.dst.type == F ? rem_floats : rem_integers)(core, job, line);
        if (job.b) count_off(core);
    }
    if (!job.b) count_off(core);
}

void fmod(Core &core, const Operands &operands, bool with_scalar) {
    const Remainder job(core, operands, with_scalar);
    if (job.dst.type != F) refuse_type(core, job.dst.type);
    under_count(core, job.to.width, [&] {
        for (int i = 0; i < job.to.lines; ++i) {
            Chain line(core, job, i, 0);
            if (!job.b) line.fill(F, line.dst);
            line.then(Instr::VDIV, F, line.dst, line.a, job.b ? line.b : line.dst);
            line.convert(F, F, line.dst, Round::Trunc)
                .with_other(Instr::VMUL, Instr::VMULS, F, line.dst, line.dst)
                .then(Instr::VSUB, F, line.dst, line.a, line.dst);
        }
    });
}

// With registers there is an instruction for every type; how its quotient is rounded and whether the quotient
// is exact are its mode (isa/arithmetic.cpp). A kernel asks for that by an algorithm behind the operands.
void in_registers(Core &core, const Operands &operands, bool with_scalar, bool floors) {
    const Remainder job(core, operands, with_scalar);
    const uint32_t behind = floors ? 4 : 3;
    const bool exact =
        operands.count > behind && operands[behind].kind == Operand::Option && operands[behind].option != 0;
    const auto one =
        each(core, {Instr::VMOD, job.number(job.dst.type), (floors ? 2 : 0) | (exact ? 4 : 0)}, job.dst.type);
    if (job.b)
        walk_binary(core, job.to, job.x, job.y, false, one);
    else
        walk_scalar(core, job.to, job.x, one);
}

} // namespace

TILE_OP_BODY(TREM) { rem(core, operands, false); }
TILE_OP_BODY(TREMS) { rem(core, operands, true); }
TILE_OP_BODY(TFMOD) { fmod(core, operands, false); }
TILE_OP_BODY(TFMODS) { fmod(core, operands, true); }
FUNCTION_OP_BODY(TREM) { in_registers(core, operands, false, true); }
FUNCTION_OP_BODY(TREMS) { in_registers(core, operands, true, true); }
FUNCTION_OP_BODY(TFMOD) { in_registers(core, operands, false, false); }
FUNCTION_OP_BODY(TFMODS) { in_registers(core, operands, true, false); }

} // namespace insight_trace::engine
