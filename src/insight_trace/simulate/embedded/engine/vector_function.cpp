#include "vector_function.hpp"

#include <algorithm>

#include "lowering.hpp"
#include "elements.hpp"

namespace insight_trace::engine {

namespace {

constexpr int64_t kLoopBytes = 256;
constexpr int64_t kSpecial =
    1500; // thousandths: what one unit of the two does (exponentials, roots, quotients)

bool is_vector_tile(const Operand &operand) {
    return operand.kind == Operand::Tile && operand.tile.space == Space::UB && operand.tile.inner == 0;
}

// One run of elements as far as the compiler can see: the valid width is part of the type.
bool is_run(const TileRef &tile) {
    int32_t width = tile.row_major ? tile.cols : tile.rows, lines = tile.row_major ? tile.rows : tile.cols;
    int32_t valid = tile.row_major ? tile.valid_cols : tile.valid_rows;
    bool fixed = !(tile.dynamic & (tile.row_major ? 2 : 1));
    return lines == 1 || (fixed && valid == width);
}

int64_t loops_for(int64_t elements, int size, int64_t loop_bytes) {
    return (elements * size + loop_bytes - 1) / loop_bytes;
}

} // namespace

VectorFunction::VectorFunction(const Parameters &parameters)
    : parameters_(parameters), startup_(parameters.function_startup), load_(parameters.function_load),
      shared_(parameters.function_shared), step_(parameters.function_step) {}

void VectorFunction::open(Op op, const Operands &operands) {
    open_ = true;
    lowered_ = nested_ = false;
    outer_ = 1;
    as_one_run_ = 0;
    lower(op, operands);
}

void VectorFunction::lower(Op op, const Operands &operands) {
    const Lowering *row = find_lowering(op);
    if (!row || operands.count == 0 || !is_vector_tile(operands[0])) return;
    const TileRef &dst = operands[0].tile;
    const Shape shape = row->shape;
    const bool reduces = shape == Shape::Rows || shape == Shape::Columns || shape == Shape::Folded;
    const bool over_source = reduces || shape == Shape::Source || shape == Shape::Scattered;
    if ((over_source || shape == Shape::Convert) && (operands.count < 2 || !is_vector_tile(operands[1])))
        return;
    if (shape == Shape::Real && dst.type != Type::F32 && dst.type != Type::F16 && dst.type != Type::BF16)
        return;
    if (shape == Shape::Counted && (operands.count < 4 || !is_vector_tile(operands[3]))) return;
    if (shape == Shape::Scattered && (operands.count < 3 || !is_vector_tile(operands[2]))) return;
    const TileRef &walked = over_source ? operands[1].tile : dst;
    int64_t rows = shape == Shape::Counted ? 1 : walked.valid_rows, cols = walked.valid_cols;
    if (!walked.row_major) std::swap(rows, cols);
    int size = type_size(walked.type);
    Type type = walked.type;
    Instr first = row->steps[0].instr;
    if (shape == Shape::Convert) {
        const TileRef &src = operands[1].tile;
        size = std::max(type_size(dst.type), type_size(src.type));
        // narrowing and widening cost differently, and the narrow type says how much
        const bool narrows = type_size(dst.type) < type_size(src.type);
        if (type_size(dst.type) > type_size(src.type) || (is_nibble(src.type) && !is_nibble(dst.type)))
            first = Instr::VCONV_WIDE;
        else if (type_size(src.type) == 2 && !is_nibble(dst.type))
            first = Instr::VCONV_HALF;
        type = narrows ? dst.type : src.type;
    }
    lowered_ = true;
    if (rows <= 0 || cols <= 0) return;
    bool run = !reduces && shape != Shape::Spread && shape != Shape::Scattered;
    for (uint32_t i = 0; i < operands.count; ++i) {
        if (!is_vector_tile(operands[i])) continue;
        const TileRef &tile = operands[i].tile;
        bool walked_too = tile.valid_rows == dst.valid_rows && tile.valid_cols == dst.valid_cols;
        if (walked_too && !is_run(tile)) run = false;
    }
    nested_ = !run;
    outer_ = nested_ ? rows : 1;
    // A conversion that goes row by row packs two registers of floats into one loop, and one that unpacks
    // four bits fills two.
    int64_t loop_bytes = kLoopBytes;
    if (shape == Shape::Convert) {
        const Type from = operands[1].tile.type;
        const bool packs = nested_ && type_size(from) == 4 && type_size(dst.type) < 4;
        if (packs || is_nibble(from)) loop_bytes = 2 * kLoopBytes;
    }
    int64_t inner = loops_for(nested_ ? cols : rows * cols, size, loop_bytes), loops = inner * outer_;
    if (shape == Shape::Convert && nested_ && inner == 1)
        // to bytes a loop ends with a barrier between its stores, however much it packs
        as_one_run_ = rows * (type_size(dst.type) == 1 ? 1 : loops_for(cols, size, kLoopBytes));
    int64_t elements = rows * cols;
    VectorOperand to(dst.address), from, also;
    int seen = 0;
    for (uint32_t i = 1; i < operands.count && seen < row->sources; ++i) {
        if (!is_vector_tile(operands[i])) continue;
        const TileRef &tile = operands[i].tile;
        (seen++ ? also : from) = VectorOperand(tile.address);
        int64_t bytes = int64_t(tile.valid_rows) * tile.valid_cols * type_size(tile.type);
        const bool as_result = !over_source && shape != Shape::Spread;
        Area area = as_result ? part_of(tile, 0, 0, std::min(tile.valid_rows, dst.valid_rows),
                                        std::min(tile.valid_cols, dst.valid_cols))
                              : valid_of(tile);
        loads_.push_back({tile.address, tile.type, loops, bytes, {area}});
    }
    if (shape == Shape::Scattered)
        work_.push_back({Instr::MOVEV,
                         dst.type,
                         loops_for(int64_t(dst.rows) * dst.cols, size, kLoopBytes),
                         int64_t(dst.rows) * dst.cols,
                         to,
                         {},
                         {}});
    for (const LoopStep &step : row->steps) {
        if (step.instr == Instr::NOP) break;
        const bool is_first = &step == row->steps;
        int64_t turns = loops * step.times, count = elements * step.times;
        if (shape == Shape::Folded && !is_first) {
            turns = rows * (size == 4 ? 6 : 7);
            count = turns * kLoopBytes / size;
        }
        work_.push_back(
            {is_first ? first : step.instr, type, turns, count, to, from, is_first ? also : VectorOperand()});
    }
    int64_t stored = reduces && shape != Shape::Columns ? rows : shape == Shape::Columns ? inner : loops;
    stores_.push_back({dst.address,
                       dst.type,
                       stored,
                       int64_t(dst.valid_rows) * dst.valid_cols * type_size(dst.type),
                       {shape == Shape::Scattered ? whole_of(dst) : valid_of(dst)}});
}

void VectorFunction::add(Instr instr, Type type, int64_t loops, int64_t elements, const VectorOperand &dst,
                         const VectorOperand &src0, const VectorOperand &src1, const std::vector<Area> &reads,
                         const std::vector<Area> &writes) {
    // a loop that has nothing to do is not entered
    if ((lowered_ && open_) || elements <= 0) return;
    int64_t bytes = elements * type_size(type);
    auto same = [&](const Work &work) { return work.instr == instr && work.type == type; };
    auto found = std::find_if(work_.begin(), work_.end(), same);
    if (found != work_.end()) {
        found->loops += loops;
        found->elements += elements;
    } else {
        work_.push_back({instr, type, loops, elements, dst, src0, src1});
    }
    auto access = [&](std::vector<Access> &list, const VectorOperand &operand,
                      const std::vector<Area> &areas) {
        if (!operand.used || operand.address >= kRegisterFile) return;
        // a function of many steps shows one load and one store for each type
        for (Access &one : list)
            if (one.type == type) {
                one.loops += loops;
                one.bytes += bytes;
                one.areas.insert(one.areas.end(), areas.begin(), areas.end());
                return;
            }
        list.push_back({operand.address, type, loops, bytes, {areas.begin(), areas.end()}});
    };
    access(loads_, src0, reads);
    access(stores_, dst, writes);
}

void VectorFunction::take(Instr instr, Type type, int64_t loops, int64_t elements) {
    work_.push_back({instr, type, loops, elements, {}, {}, {}});
}

void VectorFunction::take_access(bool stores, Type type, uint64_t address, int64_t loops, int64_t bytes,
                                 std::vector<Lines> lines) {
    // a function that only moves is a copy
    if (stores && work_.empty())
        work_.push_back({Instr::VCOPY, type, loops, bytes / type_size(type), {}, {}, {}});
    (stores ? stores_ : loads_)
        .push_back({static_cast<uint32_t>(address), type, loops, bytes, std::move(lines)});
}

// Cycles of the whole function; `latency`: of that, from a loaded register to a computed one; `alone`: of its
// start and end, what the function behind it does not wait for.
int64_t VectorFunction::cycles(int64_t &latency, int64_t &alone) const {
    int64_t head = 0, body = 0, row = 0;
    latency = 0;
    for (const Work &work : work_) {
        const VectorCost &cost = parameters_.vector(work.instr, work.type);
        bool nested = nested_ && cost.nested_slope > 0;
        int64_t own = nested ? cost.nested_head : cost.head;
        // starting, loading and storing are paid once
        head = head ? head + std::max<int64_t>(0, cost.head - shared_) : own;
        int64_t slope = nested ? cost.nested_slope : cost.slope;
        // plain arithmetic behind the first step finds an issue port free while others load and store
        if (&work != &work_.front() && slope < kSpecial) slope = std::min(slope, step_);
        body += slope * work.loops;
        // what else a loop does hides the start of the next row
        if (nested)
            row = &work == &work_.front() ? cost.nested_row : std::max<int64_t>(0, row - cost.nested_slope);
        latency += std::max<int64_t>(1000, cost.head - shared_);
    }
    int64_t whole = head + body + row * outer_;
    alone = std::max<int64_t>(0, head - parameters_.function_call);
    if (as_one_run_) { // rows of one loop follow each other as loops do
        const Work &work = work_.front();
        const VectorCost &cost = parameters_.vector(work.instr, work.type);
        whole = std::min(whole, cost.head + cost.slope * as_one_run_);
    }
    whole = std::max<int64_t>(startup_ + load_ + 2000, whole);
    alone = std::min(alone, whole - startup_);
    return whole;
}

void VectorFunction::flush(Core &core) {
    if (work_.empty()) { // nothing, or loads that nobody uses
        loads_.clear();
        return;
    }
    int64_t latency = 0, alone = 0, whole = cycles(latency, alone), loops = 0;
    for (const Work &work : work_) loops = std::max(loops, work.loops);
    Record push = core.record(Instr::VF, PipeId::V, Form::Function);
    push.a = uint64_t(std::min<int64_t>(loops, 0xffffffff)) | uint64_t(outer_) << 32;
    core.clock.issue(PipeId::V, push, {startup_, whole, 0, Stall::None}, core.at);
    // The three lanes run side by side: each starts when the first loop's value reaches it, and they end
    // one after the other.
    int64_t rest = whole - startup_;
    latency = std::min(latency, rest - load_ - 1000);
    struct Part {
        Record record;
        int64_t begin, busy;
    };
    std::vector<Part> parts;
    auto memory = [&](Instr instr, const Access &access, int64_t begin, int64_t busy) {
        Record r = core.record(instr, PipeId::V, Form::Local);
        r.geometry = core.moved_geometry(r, access.type, access.loops, access.bytes);
        const bool loads = instr == Instr::VLD;
        for (const Lines &lines : access.areas)
            core.operand(loads ? 1 : 0, loads ? kReads : kWrites, Space::UB, access.type, lines.area, 0,
                         lines.exact);
        parts.push_back({r, begin, busy});
    };
    int64_t at = loads_.empty() ? 0 : load_, last_load = rest - latency - 1000;
    for (const Access &access : loads_) memory(Instr::VLD, access, 0, last_load);
    const int64_t count = static_cast<int64_t>(work_.size()), step = latency / count;
    for (int64_t i = 0; i < count; ++i, at += step) {
        const Work &work = work_[size_t(i)];
        Record r = core.record(work.instr, PipeId::V, Form::Vector);
        Geometry geometry;
        geometry.form = r.form;
        geometry.type = static_cast<uint8_t>(work.type);
        geometry.repeat = static_cast<uint32_t>(work.loops);
        geometry.elements = static_cast<uint32_t>(work.elements);
        r.geometry = core.geometry_of(geometry);
        // it works on registers: the operands are named, and no byte of them is touched
        const VectorOperand *const named[] = {&work.dst, &work.src0, &work.src1};
        for (int which = 0; which < 3; ++which)
            if (which == 0 || named[which]->used)
                core.operand(which, which ? kReads : kWrites, Space::UB, work.type,
                             lines_at(named[which]->address, 0, 0, 0), 0);
        parts.push_back({r, at, rest - at - (stores_.empty() ? 0 : (count - 1 - i) * step + 1000)});
    }
    for (const Access &access : stores_) memory(Instr::VST, access, at, rest - at);
    for (size_t i = 0; i < parts.size(); ++i) {
        int64_t until = i + 1 < parts.size() ? parts[i + 1].begin : rest - alone;
        Cost cost{until - parts[i].begin, std::max<int64_t>(1000, parts[i].busy), 0, Stall::None};
        cost.follows = true;
        core.clock.issue(PipeId::V, parts[i].record, cost, core.at);
    }
    work_.clear();
    loads_.clear();
    stores_.clear();
}

void VectorFunction::close(Core &core) {
    flush(core);
    open_ = lowered_ = nested_ = false;
    outer_ = 1;
    as_one_run_ = 0;
}

} // namespace insight_trace::engine
