#include "vector_walk.hpp"

#include <algorithm>

#include "isa/scalar_unit.hpp"
#include "vector_function.hpp"

namespace insight_trace::engine {

constexpr int kRepeatMost = 255, kStrideMost = 255;
// below this many repeats the library prefers count mode
constexpr int kFewRepeats = 4;

Lines Lines::as(int other) const {
    Lines seen = *this;
    seen.width = (width * size + other - 1) / other;
    seen.pitch = pitch * size / other;
    seen.size = other;
    return seen;
}

Lines lines_of(Core &core, const TileRef &tile) {
    if (tile.space != Space::UB) core.kernel_error("%s works on Vec tiles, in UB", core.op);
    if (tile.inner != 0) core.unsupported("%s of tiles with inner boxes (NZ, ZN)", core.op);
    bool rows = tile.row_major;
    Lines seen{};
    seen.rows = rows;
    seen.address = tile.address;
    seen.lines = rows ? tile.valid_rows : tile.valid_cols;
    seen.width = rows ? tile.valid_cols : tile.valid_rows;
    seen.tile_lines = rows ? tile.rows : tile.cols;
    seen.pitch = rows ? tile.cols : tile.rows;
    seen.fixed_width = !(tile.dynamic & (rows ? 2 : 1));
    seen.size = type_size(tile.type);
    if (seen.width > seen.pitch || seen.lines > seen.tile_lines)
        core.kernel_error("%s: a tile of %d x %d cannot have %d x %d valid elements", core.op, tile.rows,
                          tile.cols, tile.valid_rows, tile.valid_cols);
    return seen;
}

Lines lines_of(Core &core, const TileRef &tile, const Lines &valid) {
    Lines seen = lines_of(core, tile);
    if (seen.rows != valid.rows) core.kernel_error("%s mixes row-major and column-major tiles", core.op);
    if (valid.lines > seen.tile_lines || valid.width > seen.pitch)
        core.kernel_error("%s: the destination has %d x %d valid elements, a source tile only %d x %d",
                          core.op, valid.lines, valid.width, seen.tile_lines, seen.pitch);
    seen.lines = valid.lines;
    seen.width = valid.width;
    return seen;
}

void mask_elements(Core &core, int elements) {
    core.set_register(PipeId::V, elements >= 64 ? ~0ull : (1ull << elements) - 1);
}
void mask_all(Core &core) { core.set_register(PipeId::V, ~0ull); }
void count_elements(Core &core, int64_t elements) {
    core.set_register(PipeId::V, 1);
    core.set_register(PipeId::V, static_cast<uint64_t>(elements));
}
void count_off(Core &core) {
    core.set_register(PipeId::V, 0);
    mask_all(core);
}

void handshake(Core &core, PipeId from, PipeId to) {
    if (core.silent) return;
    if (core.function) {
        if (core.function->replaces_body()) return;
        core.function->flush(core);
    }
    constexpr int event = 0;
    Record set = core.record(Instr::SET_FLAG, from, Form::Flag);
    set.a = uint64_t(from) | uint64_t(to) << 8;
    core.clock.set_flag(from, to, event, set, core.at);
    Record wait = core.record(Instr::WAIT_FLAG, to, Form::Flag);
    wait.a = set.a;
    core.clock.wait_flag(from, to, event, wait, core.at);
}

void scalar_loop(Core &core, Instr instr, Type type, const Lines &dst, const Lines &a, const Lines *b,
                 uint64_t number, bool number_first) {
    auto at = [](const Lines &tile, int line, int i) {
        return tile.address + (uint64_t(line) * uint64_t(tile.pitch) + uint64_t(i)) * uint64_t(tile.size);
    };
    handshake(core, PipeId::V, PipeId::S);
    for (int line = 0; line < dst.lines; ++line)
        for (int i = 0; i < dst.width; ++i) {
            const uint64_t x = scalar_load(core, at(a, line, i), dst.size),
                           y = b ? scalar_load(core, at(*b, line, i), dst.size) : number;
            scalar_store(core, at(dst, line, i),
                         scalar_result(core, instr, type, number_first ? y : x, number_first ? x : y),
                         dst.size);
        }
    handshake(core, PipeId::S, PipeId::V);
}

void issue(Core &core, const Operation &instr, Type type, const Step &step, const VectorOperand &dst,
           const VectorOperand &src0, const VectorOperand &src1) {
    if (step.counted)
        core.vector_counted(instr, type, step.elements, dst, src0, src1);
    else
        core.vector(instr, type, step.repeat, step.elements, dst, src0, src1);
}
void issue(Core &core, const Operation &instr, Type type, const Step &step) {
    issue(core, instr, type, step, step.dst, step.src0, step.src1);
}

namespace {

// The tiles of one op and the shapes its instructions can take.
class Walk {
  public:
    Walk(Core &core, const Lines &dst, const Lines *src0, const Lines *src1, Issue body)
        : core_(core), dst_(dst), src0_(src0), src1_(src1), body_(body),
          per_repeat_(kRepeatBytes / dst.size) {}

    bool empty() const { return dst_.lines <= 0 || dst_.width <= 0; }
    int per_repeat() const { return per_repeat_; }
    int64_t elements() const { return int64_t(dst_.lines) * dst_.width; }
    int64_t repeats(int64_t elements) const { return (elements + per_repeat_ - 1) / per_repeat_; }
    bool ragged(int width) const { return width > per_repeat_ && width % per_repeat_ != 0; }
    bool strides_fit() const { return most_blocks() <= kStrideMost; }

    // Everything is one run of consecutive elements.
    void run() {
        int head = static_cast<int>(elements() / per_repeat_),
            tail = static_cast<int>(elements() % per_repeat_);
        // without full repeats, too: what an op does between its instructions is done all the same
        emit(head, per_repeat_, 0, 0, 8);
        if (tail) {
            mask_elements(core_, tail);
            step(1, tail, 0, int64_t(head) * per_repeat_, 8);
            mask_all(core_);
        }
    }
    void counted_run() {
        count_elements(core_, elements());
        counted(0, elements());
        count_off(core_);
    }
    void counted_lines() {
        count_elements(core_, dst_.width);
        for (int line = 0; line < dst_.lines; ++line) counted(line, dst_.width);
        count_off(core_);
    }
    // Full repeats of every line; `width` elements of it are left over.
    void full_repeats(int width) {
        int head = width / per_repeat_;
        for (int line = 0; line < dst_.lines; ++line)
            for (int done = 0; done < head; done += kRepeatMost)
                repeats_at(line, int64_t(done) * per_repeat_, std::min(kRepeatMost, head - done));
    }
    // One repeat per line for the elements from `column` on.
    void line_repeats(int column, int width, bool masked) {
        if (masked) mask_elements(core_, width);
        if (!strides_fit())
            for (int line = 0; line < dst_.lines; ++line) step(1, width, line, column, 1);
        else
            for (int line = 0; line < dst_.lines; line += kRepeatMost)
                step(std::min(kRepeatMost, dst_.lines - line), width, line, column, -1);
        if (masked) mask_all(core_);
    }
    // Column group by column group; or, when lines are too many or too far apart for one instruction, line by
    // line.
    void column_groups(int tile_lines) {
        int tail = dst_.width % per_repeat_;
        if (tile_lines <= kRepeatMost && strides_fit()) {
            for (int column = 0; column + per_repeat_ <= dst_.width; column += per_repeat_)
                line_repeats(column, per_repeat_, false);
        } else {
            full_repeats(dst_.width);
        }
        if (tail) line_repeats(dst_.width - tail, tail, true);
    }
    // Lines that are not consecutive. `choosing` and `stacked`: how many lines the whole tile has, for the
    // choice and for the repeats of one instruction.
    void lines(int choosing, int stacked) {
        int groups = dst_.pitch / per_repeat_;
        if (groups > 1 && choosing * groups < kFewRepeats)
            counted_lines();
        else if (choosing < groups + 1)
            dst_.width % per_repeat_ ? counted_lines() : full_repeats(dst_.width);
        else
            column_groups(stacked);
    }

  private:
    int most_blocks() const {
        int most = dst_.blocks();
        for (const Lines *source : {src0_, src1_})
            if (source) most = std::max(most, source->blocks());
        return most;
    }
    VectorOperand operand(const Lines *tile, int line, int64_t column, int stride) const {
        if (!tile) return {};
        int64_t offset = (int64_t(line) * tile->pitch + column) * tile->size;
        int repeat_stride = stride < 0 ? tile->blocks() : stride;
        return VectorOperand(tile->address + static_cast<uint32_t>(offset),
                             static_cast<uint16_t>(repeat_stride));
    }
    // `stride` in blocks; negative: from line to line.
    void step(int repeat, int64_t width, int line, int64_t column, int stride) {
        if (repeat > 0) emit(repeat, width, line, column, stride);
    }
    void emit(int repeat, int64_t width, int line, int64_t column, int stride) {
        body_({repeat, repeat * width, false, operand(&dst_, line, column, stride),
               operand(src0_, line, column, stride), operand(src1_, line, column, stride)});
    }
    void repeats_at(int line, int64_t column, int repeat) { step(repeat, per_repeat_, line, column, 8); }
    void counted(int line, int64_t width) {
        body_({static_cast<int>(repeats(width)), width, true, operand(&dst_, line, 0, 8),
               operand(src0_, line, 0, 8), operand(src1_, line, 0, 8)});
    }

    Core &core_;
    const Lines &dst_;
    const Lines *src0_, *src1_;
    Issue body_;
    int per_repeat_;
};

} // namespace

void walk_binary(Core &core, const Lines &dst, const Lines &src0, const Lines &src1, bool reshaped,
                 Issue body) {
    Walk walk(core, dst, &src0, &src1, body);
    if (walk.empty()) return;
    if (reshaped || dst.pitch != src0.pitch || dst.pitch != src1.pitch) {
        int tail = dst.width % walk.per_repeat();
        walk.full_repeats(dst.width);
        if (tail) walk.line_repeats(dst.width - tail, tail, true);
        return;
    }
    if (dst.tile_lines <= kRepeatMost && dst.pitch < walk.per_repeat()) {
        walk.line_repeats(0, dst.width, true);
        return;
    }
    bool whole_type = dst.fixed_width && dst.whole_width(); // known when the kernel is compiled
    if (whole_type || dst.tile_lines == 1) {
        int64_t repeats = walk.repeats(int64_t(dst.tile_lines) * dst.pitch);
        walk.ragged(dst.pitch) || repeats > kRepeatMost ? walk.counted_run() : walk.run();
    } else if (dst.whole_width() || dst.lines == 1) {
        int64_t repeats = walk.repeats(walk.elements());
        walk.ragged(dst.width) || repeats > kRepeatMost ? walk.counted_run() : walk.run();
    } else {
        walk.lines(dst.tile_lines, dst.tile_lines);
    }
}

void walk_scalar(Core &core, const Lines &dst, const Lines &src, Issue body) {
    Walk walk(core, dst, &src, nullptr, body);
    if (walk.empty()) return;
    bool whole = dst.fixed_width && src.fixed_width && dst.whole_width() && src.whole_width();
    if (whole || (dst.tile_lines == 1 && src.tile_lines == 1)) {
        int64_t repeats = walk.repeats(int64_t(dst.tile_lines) * dst.pitch);
        walk.ragged(dst.pitch) || repeats > kRepeatMost ? walk.counted_run() : walk.run();
        return;
    }
    walk.lines(std::max(dst.tile_lines, src.tile_lines), dst.tile_lines);
}

void walk_unary(Core &core, const Lines &dst, const Lines &src, Issue body) {
    Walk walk(core, dst, &src, nullptr, body);
    if (walk.empty()) return;
    bool whole = dst.fixed_width && src.fixed_width && dst.whole_width() && src.whole_width();
    if (whole || (dst.tile_lines == 1 && src.tile_lines == 1)) {
        walk.repeats(int64_t(dst.tile_lines) * dst.pitch) > kRepeatMost ? walk.counted_run() : walk.run();
    } else if (dst.pitch == src.pitch && dst.tile_lines == src.tile_lines &&
               (dst.whole_width() || dst.lines == 1)) {
        walk.repeats(walk.elements()) > kRepeatMost ? walk.counted_run() : walk.run();
    } else {
        walk.lines(dst.tile_lines, std::max(dst.tile_lines, src.tile_lines));
    }
}

void walk_fill(Core &core, const Lines &dst, Issue body) {
    Walk walk(core, dst, nullptr, nullptr, body);
    if (walk.empty()) return;
    // a width that is part of the type always takes the first shape
    if (dst.tile_lines == 1 || dst.lines == 1 || dst.fixed_width)
        walk.counted_run();
    else
        walk.counted_lines();
}

void walk_column_groups(Core &core, const Lines &dst, const Lines &src0, const Lines &src1, Issue body) {
    Walk walk(core, dst, &src0, &src1, body);
    if (!walk.empty()) walk.column_groups(1);
}

void walk_counted_lines(Core &core, const Lines &dst, const Lines *src0, const Lines *src1, Issue body) {
    Walk walk(core, dst, src0, src1, body);
    if (!walk.empty()) walk.counted_lines();
}

} // namespace insight_trace::engine
