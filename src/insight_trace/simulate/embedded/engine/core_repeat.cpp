// Tile ops that come back as they were. Without arithmetic an op is the instructions that it issues, and
// those follow from its operands alone: in loops they are issued again without running the op.
#include <cstddef>
#include <cstring>

#include "core.hpp"

namespace insight_trace::engine {

namespace {

// Where in a row of L2 an access begins decides its time; nothing else about its address does.
constexpr uint64_t kAlike = 512;

bool same(const Operand &a, const Operand &b) {
    if (a.kind != b.kind) return false;
    switch (a.kind) {
    case Operand::Tile:
        return memcmp(&a.tile, &b.tile, sizeof a.tile) == 0;
    case Operand::Global:
        return memcmp(&a.global.shape, &b.global.shape,
                      offsetof(GlobalRef, layout) + 1 - offsetof(GlobalRef, shape)) == 0 &&
               a.global.address % kAlike == b.global.address % kAlike;
    case Operand::Scalar:
        return a.scalar.bits == b.scalar.bits && a.scalar.type == b.scalar.type;
    case Operand::Option:
        return a.option == b.option;
    default:
        return true;
    }
}

} // namespace

bool Core::Repeated::is(const Core &core, Op other, const Operands &others) const {
    if (op != other || at.file != core.at.file || at.line != core.at.line || control != core.control ||
        atomic_type != core.atomic_type || operands.size() != others.count)
        return false;
    for (uint32_t i = 0; i < others.count; ++i)
        if (!same(operands[i], others[i])) return false;
    return true;
}

bool Core::repeat(Op op, const Operands &operands) {
    repeating_ = nullptr;
    if (computes || function || late) return false;
    uint64_t hash = reinterpret_cast<uint64_t>(at.file) + at.line;
    for (uint32_t i = 0; i < operands.count; ++i) {
        const uint64_t word = operands[i].kind == Operand::Tile ? operands[i].tile.address : i;
        hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
        hash ^= hash >> 32;
    }
    Repeated &known = repeated_[hash * 0xff51afd7ed558ccdull >> 56];
    if (!known.is(*this, op, operands)) {
        // kept when it comes a second time: most ops of a long kernel do
        known.op = op;
        known.at = at;
        known.control = control;
        known.atomic_type = atomic_type;
        known.operands.assign(operands.list, operands.list + operands.count);
        known.state = Repeated::Seen;
        return false;
    }
    if (known.state == Repeated::Kept) {
        issue_again(known, operands);
        return true;
    }
    if (known.state == Repeated::Refused) return false;
    known.operands.assign(operands.list, operands.list + operands.count); // where its tensor lies now
    repeating_ = &known;
    first_row_ = records_.size();
    first_step_ = clock.steps().list.size();
    work_before_ = clock.work();
    placings_ = clock.placings();
    looked_ = false;
    return false;
}

// What the op issued since repeat(), if nothing but its operands decided on it.
void Core::keep_issued() {
    Repeated *known = repeating_;
    repeating_ = nullptr;
    if (!known || placings_ != clock.placings()) return; // its steps are gone: the next time
    known->state = Repeated::Refused;
    const CoreSteps &steps = clock.steps();
    const uint32_t count = records_.size() - first_row_;
    if (looked_ || steps.list.size() - first_step_ != count) return;
    known->issued.clear();
    known->rows.clear();
    known->accesses.clear();
    known->global = -1;
    int globals = 0;
    for (size_t i = 0; i < known->operands.size(); ++i)
        if (known->operands[i].kind == Operand::Global) {
            known->global = static_cast<int>(i);
            ++globals;
        }
    if (globals > 1) return;
    int64_t before = work_before_;
    for (uint32_t i = 0; i < count; ++i) {
        Issued one{records_[first_row_ + i], steps.list[first_step_ + i], 0, false};
        if (!Clock::can_repeat(one.step) || one.record.form == static_cast<uint8_t>(Form::Scalar)) return;
        const uint32_t end = i + 1 < count ? records_[first_row_ + i + 1].operands : records_.operand_count();
        for (uint32_t row = one.record.operands; row < end; ++row) {
            const OperandRow &operand = records_.operand(row);
            const bool global =
                records_.footprints.rows()[operand.footprint].memory == static_cast<uint8_t>(Space::GM);
            if (global && globals == 0) return;
            known->rows.push_back({operand, global});
        }
        one.operands = end - one.record.operands;
        one.has_access = one.step.kind == StepKind::Transfer ||
                         (one.step.kind == StepKind::Scalar && one.step.link != kNone);
        if (one.has_access) known->accesses.push_back(steps.accesses[one.step.link]);
        one.step.before -= static_cast<uint32_t>(before);
        before = 0;
        // what the timeline fills in
        one.record.issue = one.record.start = one.record.end = 0;
        one.record.stall = 0;
        one.record.partner = kNoPartner;
        if (one.record.form == static_cast<uint8_t>(Form::Transfer)) one.record.a = 0;
        known->issued.push_back(one);
    }
    known->rest = clock.work() - before;
    known->state = Repeated::Kept;
}

void Core::issue_again(const Repeated &known, const Operands &operands) {
    uint64_t moved = 0;
    uint32_t tile = kNoTile;
    if (known.global >= 0) {
        const auto place = static_cast<uint32_t>(known.global);
        moved = operands[place].global.address - known.operands[place].global.address;
        size_t tiles = 0; // before it
        for (uint32_t i = 0; i < place; ++i) tiles += operands[i].kind == Operand::Tile;
        if (detailed_) tile = (*call_tiles_)[tiles].tile;
    }
    const Repeated::Row *row = known.rows.data();
    const Access *next = known.accesses.data();
    for (const Issued &one : known.issued) {
        Record &record = records_.next();
        record = one.record;
        record.call = call_;
        record.operands = records_.operand_count();
        for (uint32_t i = 0; i < one.operands; ++i, ++row) {
            const OperandRow &operand = row->operand;
            const bool moves = row->global && operand.tile != kNoTile;
            records_.operand(operand.address + (row->global ? moved : 0), operand.footprint,
                             moves ? tile : operand.tile);
        }
        clock.repeat(record, one.step, one.has_access ? next++ : nullptr, moved, at);
    }
    clock.scalar_work(known.rest);
}

} // namespace insight_trace::engine
