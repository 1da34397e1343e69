// TPART*: two sources of which one may be valid for less than dst; where only one is, it is copied.
#include <algorithm>
#include <cstring>

#include "elementwise.hpp"

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

    template <class T, class Body> void compute(Body body) {
        T *to = elements_of<T>(core_, dst_);
        const T *a = elements_of<T>(core_, whole_);
        const T *b = part_.extent() ? elements_of<T>(core_, part_) : nullptr;
        for (int line = 0; line < dst_.lines; ++line)
            for (int i = 0; i < dst_.width; ++i) {
                T x = a[int64_t(line) * whole_.pitch + i];
                bool two = line < part_.lines && i < part_.width;
                to[int64_t(line) * dst_.pitch + i] =
                    two ? T(body(Wide<T>(x), Wide<T>(b[int64_t(line) * part_.pitch + i]))) : x;
            }
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
        auto blocks = [&](int64_t elements) { return (elements * dst_.size + 31) / 32 * 32; };
        if (dst_.pitch == whole_.pitch) {
            int64_t elements = int64_t(dst_.lines - first) * dst_.pitch;
            count_elements(core_, elements);
            core_.move(Instr::MOV_UB_TO_UB, type_, at(dst_, first), at(whole_, first), 1, blocks(elements));
        } else {
            count_elements(core_, dst_.width);
            for (int line = first; line < dst_.lines; ++line)
                core_.move(Instr::MOV_UB_TO_UB, type_, at(dst_, line), at(whole_, line), 1,
                           blocks(dst_.width));
        }
        count_off(core_);
    }

    void operate(Lines to, Lines a, Lines b) {
        for (Lines *tile : {&to, &a, &b}) {
            tile->lines = both_.lines;
            tile->width = both_.width;
        }
        auto one = [&](const Step &step) { issue(core_, instr_, type_, step); };
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

template <class Body>
void partial(Core &core, const Operands &operands, const char *op, Instr instr, Body body) {
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
    with_type_of(core, op, dst.type, Numbers(), [&](auto tag) {
        if (core.computes) job.template compute<decltype(tag)>(body);
    });
    job.issue_all();
}

} // namespace

TILE_OP_BODY(TPARTADD) {
    partial(core, operands, "TPARTADD", Instr::VADD, [](auto a, auto b) { return wrap_add(a, b); });
}
TILE_OP_BODY(TPARTMUL) {
    partial(core, operands, "TPARTMUL", Instr::VMUL, [](auto a, auto b) { return wrap_mul(a, b); });
}
TILE_OP_BODY(TPARTMAX) {
    partial(core, operands, "TPARTMAX", Instr::VMAX, [](auto a, auto b) { return larger(a, b); });
}
TILE_OP_BODY(TPARTMIN) {
    partial(core, operands, "TPARTMIN", Instr::VMIN, [](auto a, auto b) { return smaller(a, b); });
}

} // namespace insight_trace::engine
