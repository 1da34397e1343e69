// TPART*: two sources of which one may be valid for less than dst; where only one is, it is copied.
#include "steps.hpp"

namespace insight_trace::engine {

namespace {

// What only the source that is valid everywhere has: lines from `first` on.
void copy_whole(Core &core, Type type, const Lines &dst, const Lines &whole, int first) {
    auto copy = [&](int line, int64_t elements) {
        copy_lines(core, type, {dst.at(line).address}, {whole.at(line).address}, 1, elements * dst.size);
    };
    if (dst.pitch == whole.pitch && !core.register_based()) {
        const int64_t elements = int64_t(dst.lines - first) * dst.pitch;
        return under_count(core, elements, [&] { copy(first, elements); });
    }
    under_count(core, dst.width, [&] {
        for (int line = first; line < dst.lines; ++line) copy(line, dst.width);
    });
}

// As far as both sources are valid.
void operate(Core &core, Instr instr, Type type, const Lines &part, Lines to, Lines a, Lines b) {
    for (Lines *tile : {&to, &a, &b}) {
        tile->lines = part.lines;
        tile->width = part.width;
    }
    const auto one = each(core, instr, type);
    const int most = std::max({to.blocks(), a.blocks(), b.blocks()});
    const int64_t groups = ceil_div(to.width, per_repeat(type)), stacks = ceil_div(to.lines, kMostRepeats);
    if (most > kMostRepeats || to.lines < groups * stacks) return walk_counted_lines(core, to, &a, &b, one);
    walk_column_groups(core, to, a, b, one);
}

void partial(Core &core, const Operands &operands, Instr instr) {
    const TileRef &dst = tile_operand(core, operands, 0);
    const TileRef *whole = &tile_operand(core, operands, 1), *part = &tile_operand(core, operands, 2);
    for (const TileRef *tile : {whole, part}) require_type(core, *tile, dst.type);
    if (dst.valid_rows == 0 || dst.valid_cols == 0) return;
    if (!same_valid(*whole, dst)) std::swap(whole, part);
    if (!same_valid(*whole, dst))
        core.kernel_error("%s: one of the sources must be valid wherever the destination is", core.op);
    const Lines to = lines_of(core, dst), x = lines_of(core, *whole, to), y = lines_of(core, *part);
    if (y.lines > to.lines || y.width > to.width)
        core.kernel_error("%s: a source has %d x %d valid elements, the destination only %d x %d", core.op,
                          y.lines, y.width, to.lines, to.width);
    require_instruction(core, instr, dst.type);
    if (y.width < to.width) { // fewer columns
        copy_whole(core, dst.type, to, x, 0);
        if (y.width <= 0 || y.lines <= 0) return;
        barrier(core);
        operate(core, instr, dst.type, y, to, y, to);
        return;
    }
    if (y.lines > 0) operate(core, instr, dst.type, y, to, x, y);
    if (y.lines < to.lines) copy_whole(core, dst.type, to, x, y.lines);
}

// The values, and the indices that go with them. With equal values the first source's index stays.
void partial_index(Core &core, const Operands &operands, Compare better) {
    const TileRef &values = tile_operand(core, operands, 0), &a = tile_operand(core, operands, 1),
                  &b = tile_operand(core, operands, 2), &indices = tile_operand(core, operands, 3),
                  &of_a = tile_operand(core, operands, 4), &of_b = tile_operand(core, operands, 5);
    for (const TileRef *tile : {&a, &b}) require_type(core, *tile, values.type);
    for (const TileRef *tile : {&of_a, &of_b}) require_type(core, *tile, indices.type);
    if (!same_valid(values, indices) || !same_valid(a, of_a) || !same_valid(b, of_b))
        core.kernel_error("%s: values and indices must have the same valid size", core.op);
    if (values.valid_rows == 0 || values.valid_cols == 0)
        core.kernel_error("%s: the destination has no valid elements", core.op);
    if (!same_valid(a, values) && !same_valid(b, values))
        core.kernel_error("%s: one of the sources must be valid wherever the destination is", core.op);
    if (type_size(indices.type) != type_size(values.type) && type_size(indices.type) != 4)
        core.unsupported("%s of %s values with %s indices", core.op, type_name(values.type),
                         type_name(indices.type));
    if (!is_number(values.type)) refuse_type(core, values.type);
    // what only one source has is copied, before the rest where that lies beside it
    const int64_t rows = std::min(a.valid_rows, b.valid_rows), cols = std::min(a.valid_cols, b.valid_cols);
    const bool whole_a = same_valid(a, values), beside = cols < values.valid_cols;
    const bool registers = core.register_based();
    auto copy_both = [&](int64_t first) {
        for (const auto &[to, from] :
             {std::pair(&values, whole_a ? &a : &b), {&indices, whole_a ? &of_a : &of_b}})
            copy_whole(core, to->type, lines_of(core, *to), lines_of(core, *from), static_cast<int>(first));
    };
    if (beside) copy_both(0);
    // per repeat and row: a comparison into a mask, and two selections by it
    const int lanes = kRepeatBytes / (registers ? std::max(type_size(values.type), type_size(indices.type))
                                                : type_size(values.type));
    const Operation compare(registers ? Instr::VCMPV : Instr::VCMP, 0, better),
        choose = registers ? selected_by(kRegisterFile) : Operation(Instr::VSEL);
    const VectorOperand bits = registers ? VectorOperand(kRegisterFile) : VectorOperand();
    // Indices wider than their values have 64 lanes, and the mask of a whole repeat has as many: of wider
    // rows the library leaves the others out.
    const int chosen = kRepeatBytes / std::max(type_size(values.type), type_size(indices.type));
    if (chosen < lanes && cols > chosen)
        core.remark("%s: %d of every %d columns are chosen with 32-bit indices", core.op, chosen, lanes);
    if (rows > 0 && cols > 0) {
        bit_mode(core);
        mask_elements(core, chosen);
        column_repeats(core, static_cast<int>(cols), lanes, [&](int c, int width) {
            const int count = width == lanes ? chosen : width;
            for (int64_t r = 0; r < rows; ++r) {
                auto at = [&](const TileRef &tile) { return row_of(tile, r, c); };
                core.vector(compare, values.type, 1, count, bits, at(a), at(b));
                barrier(core);
                core.vector(choose, values.type, 1, count, at(values), at(a), at(b));
                core.vector(choose, indices.type, 1, std::min(width, chosen), at(indices), at(of_a),
                            at(of_b));
                barrier(core);
            }
        });
        if (cols % lanes == 0) mask_all(core);
    }
    if (!beside && rows < values.valid_rows) copy_both(rows);
}

} // namespace

TILE_OP_BODY(TPARTARGMAX) { partial_index(core, operands, Compare::GE); }
TILE_OP_BODY(TPARTARGMIN) { partial_index(core, operands, Compare::LE); }
TILE_OP_BODY(TPARTADD) { partial(core, operands, Instr::VADD); }
TILE_OP_BODY(TPARTMUL) { partial(core, operands, Instr::VMUL); }
TILE_OP_BODY(TPARTMAX) { partial(core, operands, Instr::VMAX); }
TILE_OP_BODY(TPARTMIN) { partial(core, operands, Instr::VMIN); }

} // namespace insight_trace::engine
