// TPART*: two sources of which one may be valid for less than dst; where only one is, it is copied.
#include <algorithm>

#include "isa/vector_unit.hpp"
#include "steps.hpp"

namespace insight_trace::engine {

namespace {

class Partial {
  public:
    Partial(Core &core, const char *op, Instr instr, const TileRef &dst, const TileRef &whole,
            const TileRef &part)
        : core_(core), instr_(instr), type_(dst.type), dst_(lines_of(core, op, dst)),
          whole_(lines_of(core, op, whole, dst_)), part_(lines_of(core, op, part)) {
        if (part_.lines > dst_.lines || part_.width > dst_.width)
            core.kernel_error("%s: a source has %d x %d valid elements, the destination only %d x %d", op,
                              part_.lines, part_.width, dst_.lines, dst_.width);
        // only as far as both are valid
        both_ = dst_;
        both_.lines = part_.lines;
        both_.width = part_.width;
    }

    void issue_all() {
        bool fewer_columns = part_.width < dst_.width;
        if (fewer_columns) {
            copy(0);
            if (part_.width <= 0 || part_.lines <= 0) return;
            core_.barrier(PipeId::V);
            operate(dst_, part_, dst_);
        } else {
            if (part_.lines > 0) operate(dst_, whole_, part_);
            if (part_.lines < dst_.lines) copy(part_.lines);
        }
    }

  private:
    void copy(int first) {
        auto at = [&](const Lines &tile, int line) {
            return tile.address + static_cast<uint32_t>(line * tile.pitch * tile.size);
        };
        if (dst_.pitch == whole_.pitch && !core_.register_based()) {
            int64_t elements = int64_t(dst_.lines - first) * dst_.pitch;
            count_elements(core_, elements);
            copy_lines(core_, type_, {at(dst_, first)}, {at(whole_, first)}, 1, elements * dst_.size);
        } else {
            count_elements(core_, dst_.width);
            for (int line = first; line < dst_.lines; ++line)
                copy_lines(core_, type_, {at(dst_, line)}, {at(whole_, line)}, 1,
                           int64_t(dst_.width) * dst_.size);
        }
        count_off(core_);
    }

    void operate(Lines to, Lines a, Lines b) {
        for (Lines *tile : {&to, &a, &b}) {
            tile->lines = both_.lines;
            tile->width = both_.width;
        }
        auto one = [&](const Step &step) { issue(core_, executed(instr_), type_, step); };
        int per_repeat = 256 / to.size;
        int most = std::max({to.blocks(), a.blocks(), b.blocks()});
        int groups = (to.width + per_repeat - 1) / per_repeat, stacks = (to.lines + 254) / 255;
        if (most > 255 || to.lines < groups * stacks) return walk_counted_lines(core_, to, &a, &b, one);
        walk_column_groups(core_, to, a, b, one);
    }

    Core &core_;
    Instr instr_;
    Type type_;
    Lines dst_, whole_, part_, both_;
};

void partial(Core &core, const Operands &operands, const char *op, Instr instr) {
    const TileRef &dst = tile_operand(core, op, operands, 0), &a = tile_operand(core, op, operands, 1),
                  &b = tile_operand(core, op, operands, 2);
    require_type(core, op, a, dst.type);
    require_type(core, op, b, dst.type);
    if (dst.valid_rows == 0 || dst.valid_cols == 0) return;
    auto whole = [&](const TileRef &tile) {
        return tile.valid_rows == dst.valid_rows && tile.valid_cols == dst.valid_cols;
    };
    if (!whole(a) && !whole(b))
        core.kernel_error("%s: one of the sources must be valid wherever the destination is", op);
    Partial job(core, op, instr, dst, whole(a) ? a : b, whole(a) ? b : a);
    if (!arithmetic(instr, dst.type)) core.unsupported("%s of %s tiles", op, type_name(dst.type));
    job.issue_all();
}

// The values, and the indices that go with them. With equal values the first source's index stays.
void partial_index(Core &core, const Operands &operands, const char *op, Compare better) {
    const TileRef &values = tile_operand(core, op, operands, 0), &a = tile_operand(core, op, operands, 1),
                  &b = tile_operand(core, op, operands, 2), &indices = tile_operand(core, op, operands, 3),
                  &of_a = tile_operand(core, op, operands, 4), &of_b = tile_operand(core, op, operands, 5);
    for (const TileRef *tile : {&a, &b}) require_type(core, op, *tile, values.type);
    for (const TileRef *tile : {&of_a, &of_b}) require_type(core, op, *tile, indices.type);
    auto same = [](const TileRef &x, const TileRef &y) {
        return x.valid_rows == y.valid_rows && x.valid_cols == y.valid_cols;
    };
    if (!same(values, indices) || !same(a, of_a) || !same(b, of_b))
        core.kernel_error("%s: values and indices must have the same valid size", op);
    if (values.valid_rows == 0 || values.valid_cols == 0)
        core.kernel_error("%s: the destination has no valid elements", op);
    if (!same(a, values) && !same(b, values))
        core.kernel_error("%s: one of the sources must be valid wherever the destination is", op);
    if (type_size(indices.type) != type_size(values.type) && type_size(indices.type) != 4)
        core.unsupported("%s of %s values with %s indices", op, type_name(values.type),
                         type_name(indices.type));
    if (!is_number(values.type)) core.unsupported("%s of %s tiles", op, type_name(values.type));
    // what only one source has is copied, before the rest where that lies beside it
    const int64_t rows = std::min(a.valid_rows, b.valid_rows), cols = std::min(a.valid_cols, b.valid_cols);
    const bool whole_a = same(a, values), beside = cols < values.valid_cols;
    auto copy = [&](const TileRef &to, const TileRef &from, int64_t first) {
        const int64_t size = type_size(to.type), to_step = to.cols * size, from_step = from.cols * size;
        copy_lines(core, to.type, {to.address + uint32_t(first * to_step), to_step},
                   {from.address + uint32_t(first * from_step), from_step}, to.valid_rows - first,
                   to.valid_cols * size);
    };
    auto copy_both = [&](int64_t first) {
        copy(values, whole_a ? a : b, first);
        copy(indices, whole_a ? of_a : of_b, first);
        core.barrier(PipeId::V);
    };
    if (beside) copy_both(0);
    // per row and repeat: a comparison into a mask, and two selections by it
    const int per_repeat = 256 / std::max(type_size(values.type), type_size(indices.type));
    const bool registers = core.register_based();
    const Operation compare =
                        executed(registers ? Instr::VCMPV : Instr::VCMP, 0, static_cast<uint8_t>(better)),
                    choose = registers ? selected_by(kRegisterFile) : executed(Instr::VSEL);
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < cols; c += per_repeat) {
            const int64_t count = std::min<int64_t>(per_repeat, cols - c);
            auto at = [&](const TileRef &tile) {
                return VectorOperand(tile.address + uint32_t((r * tile.cols + c) * type_size(tile.type)));
            };
            const VectorOperand bits = registers ? VectorOperand(kRegisterFile) : VectorOperand();
            core.vector(compare, values.type, 1, count, bits, at(a), at(b));
            core.vector(choose, values.type, 1, count, at(values), at(a), at(b));
            core.vector(choose, indices.type, 1, count, at(indices), at(of_a), at(of_b));
        }
    if (!beside && rows < values.valid_rows) copy_both(rows);
}

} // namespace

TILE_OP_BODY(TPARTARGMAX) { partial_index(core, operands, "TPARTARGMAX", Compare::GE); }
TILE_OP_BODY(TPARTARGMIN) { partial_index(core, operands, "TPARTARGMIN", Compare::LE); }
TILE_OP_BODY(TPARTADD) { partial(core, operands, "TPARTADD", Instr::VADD); }
TILE_OP_BODY(TPARTMUL) { partial(core, operands, "TPARTMUL", Instr::VMUL); }
TILE_OP_BODY(TPARTMAX) { partial(core, operands, "TPARTMAX", Instr::VMAX); }
TILE_OP_BODY(TPARTMIN) { partial(core, operands, "TPARTMIN", Instr::VMIN); }

} // namespace insight_trace::engine
