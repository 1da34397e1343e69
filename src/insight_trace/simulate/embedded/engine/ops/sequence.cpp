// Tiles made from nothing: counting up or down, and triangles of ones.
#include <algorithm>

#include "elementwise.hpp"

namespace insight_trace::engine {

namespace {

using Counting = Types<int32_t, uint32_t, int16_t, uint16_t>;

// The numbers 0 to 63 (or 127 of 16 bits) are made from eighths: summed in groups, spread, added and rounded.
// Scratch: 512 bytes apart.
void make_first_numbers(Core &core, uint32_t tmp, bool wide, VectorOperand into, int64_t counted) {
    constexpr Type F = Type::F32, H = Type::F16;
    VectorOperand eighths(tmp), sums(tmp + 512), halves(tmp + 1024), spread(tmp + 1536);
    count_elements(core, 8);
    for (int i = 0; i < 8; ++i)
        for (int half = 0; half < (wide ? 1 : 2); ++half)
            core.vector_counted(Instr::MOVEV, F, 8, VectorOperand(tmp + uint32_t(i * 32 + half * 256)));
    auto then = [&](Instr instr, Type type, int64_t elements, VectorOperand to, VectorOperand a,
                    VectorOperand b = {}) {
        core.vector_counted(instr, type, elements, to, a, b);
        core.barrier(PipeId::V);
    };
    core.barrier(PipeId::V);
    core.set_register(PipeId::V, 64);
    then(Instr::VCGADD, F, 64, sums, eighths);
    if (!wide) {
        then(Instr::VCGADD, F, 64, VectorOperand(sums.address + 32), VectorOperand(tmp + 256));
        then(Instr::VCONV, H, 64, halves.spanning(128), sums.of(F).spanning(256));
    }
    core.set_register(PipeId::V, 8);
    then(Instr::VMULS, wide ? F : H, 8, wide ? eighths : spread, wide ? sums : halves);
    count_off(core);
    VectorOperand steps = wide ? eighths : spread;
    core.vector(Instr::VBRCB, wide ? Type::U32 : Type::U16, 1, 8, steps, steps);
    core.barrier(PipeId::V);
    if (wide) {
        if (counted) count_elements(core, counted);
        core.vector(Instr::VADD, F, counted ? 1 : 8, counted ? counted : 512, sums, sums, eighths);
        core.barrier(PipeId::V);
    } else {
        core.set_register(PipeId::V, 0xffff);
        for (uint32_t i = 0; i < 8; ++i)
            core.vector(Instr::VADD, H, 1, 16, VectorOperand(spread.address + 32 * i),
                        VectorOperand(spread.address + 32 * i), halves);
        core.barrier(PipeId::V);
        if (counted)
            count_elements(core, counted);
        else
            mask_all(core);
    }
    Type type = wide ? Type::I32 : Type::I16;
    VectorOperand from = wide ? sums : spread;
    if (counted)
        core.vector_counted(Instr::VCONV, type, counted, into, from);
    else
        core.vector(Instr::VCONV, type, 1, wide ? 64 : 128, from, from);
    core.barrier(PipeId::V);
}

void issue_with_scratch(Core &core, const TileRef &dst, const Lines &to, uint32_t tmp, bool down) {
    bool wide = to.size == 4;
    Type type = wide ? Type::I32 : Type::I16;
    int per_repeat = 256 / to.size, full = dst.valid_cols / per_repeat, rest = dst.valid_cols % per_repeat;
    VectorOperand all(dst.address);
    if (full == 0) {
        make_first_numbers(core, tmp, wide, all, dst.valid_cols);
        core.vector_counted(Instr::VADDS, type, dst.valid_cols, all, all);
        core.barrier(PipeId::V);
        if (down) core.vector_counted(Instr::VMULS, type, dst.valid_cols, all, all);
        return;
    }
    make_first_numbers(core, tmp, wide, all, 0);
    VectorOperand first(wide ? tmp + 512 : tmp + 1536);
    for (int i = 0; i < full; ++i)
        core.vector(Instr::VADDS, type, 1, per_repeat, VectorOperand(dst.address + uint32_t(256 * i)), first);
    core.barrier(PipeId::V);
    if (rest) {
        if (wide) core.set_register(PipeId::V, 0);
        mask_elements(core, rest);
        core.vector(Instr::VADDS, type, 1, rest, VectorOperand(dst.address + uint32_t(256 * full)), first);
    }
    core.barrier(PipeId::V);
    if (!down) return;
    if (!wide) { // as a product of the whole tile
        auto one = [&](const Step &step) { issue(core, Instr::VMULS, type, step); };
        return walk_scalar(core, to, to, one);
    }
    count_elements(core, dst.valid_cols);
    core.vector_counted(Instr::VMULS, type, dst.valid_cols, all, all);
}

} // namespace

// dst, the first number, 1 to count down; with a scratch tile the vector unit does it, else the scalar unit.
TILE_OP_BODY(TCI) {
    const char *op = "TCI";
    const TileRef &dst = tile_operand(core, op, operands, 0);
    if (operands.count < 3) core.kernel_error("TCI needs a first number and a direction");
    bool down = operands[2].option != 0;
    Lines to = lines_of(core, op, dst);
    if (dst.valid_cols <= 0) return;
    const bool scratch = operands.count > 3;
    auto count = [&](auto tag) {
        using T = decltype(tag);
        if (!core.computes) return;
        // one row, whatever the tile's height
        T *into = core.local_as<T>(Space::UB, dst.address, uint64_t(dst.valid_cols));
        T start = scalar_as<T>(operands[1]);
        for (int i = 0; i < dst.valid_cols; ++i)
            if constexpr (std::is_integral_v<T>)
                into[i] = down ? wrap_sub(start, static_cast<T>(i)) : wrap_add(start, static_cast<T>(i));
            else
                into[i] = T(float(start) + float(down ? -i : i));
    };
    if (scratch)
        with_type_of(core, op, dst.type, Counting(), count);
    else // the scalar unit counts in any number
        with_type_of(core, op, dst.type, Types<int32_t, uint32_t, int16_t, uint16_t, float, half>(), count);
    if (scratch) return issue_with_scratch(core, dst, to, tile_operand(core, op, operands, 3).address, down);
    int64_t store = core.parameters.scalar_store_ub;
    for (int i = 0; i < dst.valid_cols; ++i)
        core.scalar_access(Instr::ST_XD_XN_IMM, Space::UB, dst.address + uint64_t(i) * uint64_t(to.size),
                           to.size, store);
}

// dst, the diagonal, 0 for ones at and below it, 1 for ones at and above it.
TILE_OP_BODY(TTRI) {
    const char *op = "TTRI";
    const TileRef &dst = tile_operand(core, op, operands, 0);
    if (operands.count < 3) core.kernel_error("TTRI needs a diagonal and a side");
    int diagonal = scalar_as<int32_t>(operands[1]);
    bool upper = operands[2].option != 0;
    Lines to = lines_of(core, op, dst);
    if (!to.rows) core.unsupported("TTRI of column-major tiles");
    with_type_of(core, op, dst.type, Numbers(), [&](auto tag) {
        using T = decltype(tag);
        if (!core.computes) return;
        T *row = elements_of<T>(core, to);
        for (int r = 0; r < to.lines; ++r, row += to.pitch)
            for (int c = 0; c < to.width; ++c) {
                int64_t edge = int64_t(r) + diagonal;
                row[c] = T((upper ? c >= edge : c <= edge) ? 1 : 0);
            }
    });
    core.set_register(PipeId::V, 1);
    for (int r = 0; r < to.lines; ++r) {
        VectorOperand row(to.address + static_cast<uint32_t>(r * to.pitch * to.size));
        auto fill = [&](int width) {
            core.set_register(PipeId::V, static_cast<uint64_t>(width));
            core.vector_counted(Instr::MOVEV, dst.type, width, row);
            core.barrier(PipeId::V);
        };
        fill(to.width);
        int64_t edge = int64_t(r) + diagonal;
        if (edge >= 0) fill(static_cast<int>(std::min<int64_t>(to.width, upper ? edge : edge + 1)));
    }
    count_off(core);
}

} // namespace insight_trace::engine
