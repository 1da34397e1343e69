// Tiles made from nothing: counting up or down, and triangles of ones.
#include "isa/composites.hpp"
#include "ops/steps.hpp"

namespace insight_trace::engine {

namespace {

// The numbers 0 to 63 (or 127 of 16 bits) are made from eighths: summed in groups, spread, added and rounded.
// Scratch: 512 bytes apart.
void make_first_numbers(Core &core, uint32_t tmp, bool wide, VectorOperand into, int64_t count) {
    constexpr Type F = Type::F32, H = Type::F16;
    VectorOperand eighths(tmp), sums(tmp + 512), halves(tmp + 1024), spread(tmp + 1536);
    count_elements(core, 8);
    for (int i = 0; i < 8; ++i)
        for (int half = 0; half < (wide ? 1 : 2); ++half)
            core.vector_counted({Instr::MOVEV, bits_of_number(F, (i + 8 * half) * 0.125)}, F, 8,
                                VectorOperand(tmp + uint32_t(i * 32 + half * 256)));
    barrier(core);
    core.set_register(PipeId::V, 64);
    counted_then(core, Instr::VCGADD, F, 64, VectorOperand(sums.address, 1), eighths);
    if (!wide) {
        counted_then(core, Instr::VCGADD, F, 64, VectorOperand(sums.address + 32, 1),
                     VectorOperand(tmp + 256));
        counted_then(core, rounding(Round::Rint), H, 64, halves.of(H), sums.of(F));
    }
    core.set_register(PipeId::V, 8);
    counted_then(core, {Instr::VMULS, bits_of_number(wide ? F : H, wide ? 8 : 16)}, wide ? F : H, 8,
                 wide ? eighths : spread, wide ? sums : halves);
    count_off(core);
    VectorOperand steps = wide ? eighths : spread;
    core.vector(Instr::VBRCB, wide ? Type::U32 : Type::U16, 1, 8, steps, steps);
    barrier(core);
    if (wide) {
        // each of eight blocks with the first one
        const VectorOperand first(sums.address, 0, 0);
        if (count) count_elements(core, count);
        if (count)
            core.vector_counted(Instr::VADD, F, count, sums, first, eighths);
        else
            core.vector(Instr::VADD, F, 8, 512, sums, first, eighths);
        barrier(core);
    } else {
        core.set_register(PipeId::V, 0xffff);
        for (uint32_t i = 0; i < 8; ++i)
            core.vector(Instr::VADD, H, 1, 16, VectorOperand(spread.address + 32 * i),
                        VectorOperand(spread.address + 32 * i), halves);
        barrier(core);
        if (count)
            count_elements(core, count);
        else
            mask_all(core);
    }
    const Type type = wide ? Type::I32 : Type::I16, real = wide ? F : H;
    VectorOperand from = (wide ? sums : spread).of(real);
    const Operation convert = rounding(Round::Rint);
    if (count)
        core.vector_counted(convert, type, count, into.of(type), from);
    else
        core.vector(convert, type, 1, wide ? 64 : 128, from.of(type), from);
    barrier(core);
}

} // namespace

// dst, the first number, 1 to count down; with a scratch tile the vector unit does it, else the scalar unit.
TILE_OP_BODY(TCI) {
    const TileRef &dst = tile_operand(core, operands, 0);
    if (operands.count < 3) core.kernel_error("TCI needs a first number and a direction");
    const bool down = operands[2].option != 0, scratch = operands.count > 3;
    Lines to = lines_of(core, dst);
    if (dst.valid_cols <= 0) return;
    const bool whole =
        dst.type == Type::I32 || dst.type == Type::U32 || dst.type == Type::I16 || dst.type == Type::U16;
    if (!whole && (scratch || (dst.type != Type::F32 && dst.type != Type::F16))) refuse_type(core, dst.type);
    const uint64_t start = scalar_bits(operands[1], dst.type);
    if (!scratch) { // one row, whatever the tile's height
        const double first = number_of_bits(dst.type, start);
        for (int i = 0; i < dst.valid_cols; ++i) {
            const uint64_t number =
                whole ? start + uint64_t(int64_t(down ? -i : i))
                      : bits_of_number(dst.type, double(float(first) + float(down ? -i : i)));
            scalar_store(core, dst.address + uint64_t(i) * uint64_t(to.size), number, to.size);
        }
        return;
    }
    const uint32_t tmp = tile_operand(core, operands, 3).address;
    const bool wide = to.size == 4;
    const Type type = wide ? Type::I32 : Type::I16;
    const int lanes = per_repeat(dst.type), full = dst.valid_cols / lanes, rest = dst.valid_cols % lanes;
    const Operation negate(Instr::VMULS, bits_of_number(type, -1));
    auto plus = [&](int64_t more) { return Operation(Instr::VADDS, start + uint64_t(more)); };
    VectorOperand all(dst.address);
    if (full == 0) {
        make_first_numbers(core, tmp, wide, all, dst.valid_cols);
        core.vector_counted(plus(0), type, dst.valid_cols, all, all);
        barrier(core);
        if (down) core.vector_counted(negate, type, dst.valid_cols, all, all);
        return;
    }
    make_first_numbers(core, tmp, wide, all, 0);
    VectorOperand first(wide ? tmp + 512 : tmp + 1536);
    for (int i = 0; i < full; ++i)
        core.vector(plus(int64_t(i) * lanes), type, 1, lanes, VectorOperand(dst.address + uint32_t(256 * i)),
                    first);
    barrier(core);
    if (rest) {
        if (wide) core.set_register(PipeId::V, 0);
        mask_elements(core, rest);
        core.vector(plus(int64_t(full) * lanes), type, 1, rest,
                    VectorOperand(dst.address + uint32_t(256 * full)), first);
    }
    barrier(core);
    if (!down) return;
    if (!wide) { // as a product of the whole tile
        auto one = [&](const Step &step) { issue(core, negate, type, step); };
        return walk_scalar(core, to, to, one);
    }
    count_elements(core, dst.valid_cols);
    core.vector_counted(negate, type, dst.valid_cols, all, all);
}

// With registers it is one instruction, and counting down is what it says.
FUNCTION_OP_BODY(TCI) {
    if (operands.count < 4 || operands[0].kind != Operand::Tile) return op_TCI(core, operands);
    const TileRef &dst = operands[0].tile;
    lines_of(core, dst);
    if (dst.type != Type::I32 && dst.type != Type::U32 && dst.type != Type::I16 && dst.type != Type::U16)
        refuse_type(core, dst.type);
    core.vector_counted({Instr::VCI, scalar_bits(operands[1], dst.type), operands[2].option != 0}, dst.type,
                        dst.valid_cols, VectorOperand(dst.address));
}

// dst, the diagonal, 0 for ones at and below it, 1 for ones at and above it.
TILE_OP_BODY(TTRI) {
    const TileRef &dst = tile_operand(core, operands, 0);
    if (operands.count < 3) core.kernel_error("TTRI needs a diagonal and a side");
    const auto diagonal = static_cast<int32_t>(scalar_bits(operands[1], Type::I32));
    const bool upper = operands[2].option != 0;
    Lines to = lines_of(core, dst);
    if (!to.rows) core.unsupported("TTRI of column-major tiles");
    if (!is_number(dst.type)) refuse_type(core, dst.type);
    core.set_register(PipeId::V, 1);
    for (int r = 0; r < to.lines; ++r) {
        VectorOperand row(to.address + static_cast<uint32_t>(r * to.pitch * to.size));
        auto fill = [&](int width, int number) {
            core.set_register(PipeId::V, static_cast<uint64_t>(width));
            counted_then(core, {Instr::MOVEV, bits_of_number(dst.type, number)}, dst.type, width, row);
        };
        fill(to.width, upper);
        int64_t edge = int64_t(r) + diagonal;
        if (edge >= 0) fill(static_cast<int>(std::min<int64_t>(to.width, upper ? edge : edge + 1)), !upper);
    }
    count_off(core);
}

// Counts of bytes, and random numbers: what only the 950 has as ops.
TILE_OP_BODY(THISTOGRAM) { count_bytes(core, operands); }
TILE_OP_BODY(TRANDOM) { fill_with_random_numbers(core, operands); }

} // namespace insight_trace::engine
