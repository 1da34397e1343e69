#include "late_work.hpp"

#include <algorithm>
#include <vector>

namespace insight_trace::engine {

static uint32_t bit(PipeId pipe) { return 1u << static_cast<int>(pipe); }

bool LateWork::can_wait(Op op) {
    switch (op) {
    case Op::TCONCAT:
    case Op::MGATHER:
    case Op::MSCATTER:
    case Op::TMRGSORT:
    case Op::TPRINT:
        return false;
    default:
        return true;
    }
}

void LateWork::put(uint32_t pipes, std::function<void()> work) {
    core_.computes = true;
    // masks and modes are set where the op is issued, and are part of it
    auto later = [this, work = std::move(work), at = core_.at, control = core_.control,
                  atomic = core_.atomic_type, atomic_op = core_.atomic_op, spr = core_.spr, va = core_.va] {
        const Site here = core_.at;
        const uint64_t control_now = core_.control;
        const uint8_t atomic_now = core_.atomic_type, op_now = core_.atomic_op;
        const auto spr_now = core_.spr;
        const auto va_now = core_.va;
        core_.at = at;
        core_.control = control;
        core_.atomic_type = atomic;
        core_.atomic_op = atomic_op;
        std::copy_n(spr.begin(), kIssuedSprCount, core_.spr.begin());
        core_.va = va;
        core_.silent = true;
        work();
        core_.silent = false;
        core_.at = here;
        core_.control = control_now;
        core_.atomic_type = atomic_now;
        core_.atomic_op = op_now;
        std::copy_n(spr_now.begin(), kIssuedSprCount, core_.spr.begin());
        core_.va = va_now;
    };
    const uint32_t others = pipes & ~bit(PipeId::S);
    if (pipes & bit(PipeId::S) || !others) { // the scalar unit does its part now
        for (int i = 0; i < kPipes; ++i)
            if (others >> i & 1) drain(static_cast<PipeId>(i));
        return later();
    }
    auto item = std::make_shared<Item>(Item{Kind::Work, others, {}, std::move(later)});
    for (int i = 0; i < kPipes; ++i)
        if (others >> i & 1) queues_[size_t(i)].push_back(item);
}

void LateWork::op(uint32_t pipes, Op op, const Operands &operands) {
    core_.computes = true; // what is done from here on is work, not issue
    for (uint32_t i = 0; i < operands.count; ++i)
        if (operands[i].kind == Operand::Tile && operands[i].tile.unit_flag) wait_for_other_side(pipes);
    std::vector<Operand> kept(operands.list, operands.list + operands.count);
    put(pipes, [this, op, kept = std::move(kept)] {
        op_bodies[static_cast<int>(op)](core_, {kept.data(), static_cast<uint32_t>(kept.size())});
    });
}

// A unit flag: what the other side has of the accumulator is done first.
void LateWork::wait_for_other_side(uint32_t pipes) {
    const PipeId other = pipes & bit(PipeId::M) ? PipeId::FIX : PipeId::M;
    while (!queues_[static_cast<size_t>(other)].empty() && step_anywhere()) {
    }
}

void LateWork::raw(uint32_t pipes, Raw which, const uint64_t *values) {
    core_.computes = true;
    if ((which == Raw::Multiply && values[7] & kUnitFlagBits) ||
        (which == Raw::StoreAcc && values[4] >> 32 & kUnitFlagBits))
        wait_for_other_side(pipes);
    std::vector<uint64_t> kept(values, values + raw_values(which));
    put(pipes, [this, which, kept = std::move(kept)] { perform(core_, which, kept.data()); });
}

void LateWork::push(PipeId pipe, Kind kind, const Flag &flag) {
    queues_[static_cast<size_t>(pipe)].push_back(std::make_shared<Item>(Item{kind, bit(pipe), flag, {}}));
}

void LateWork::set(PipeId from, PipeId to, int event) {
    if (from == PipeId::S)
        ++raised_[{from, to, event}];
    else
        push(from, Kind::Set, {from, to, event});
}

void LateWork::wait(PipeId from, PipeId to, int event) {
    if (to != PipeId::S) return push(to, Kind::Wait, {from, to, event});
    int &count = raised_[{from, to, event}];
    while (!count) need_progress();
    --count;
}

void LateWork::barrier(PipeId pipe) {
    if (pipe == PipeId::ALL)
        drain();
    else if (pipe != PipeId::S)
        push(pipe, Kind::Barrier);
}

bool LateWork::overtakes(int pipe) const {
    const auto id = static_cast<PipeId>(pipe);
    if (id == PipeId::MTE2 || id == PipeId::MTE3) return true;
    return !core_.register_based() && (id == PipeId::MTE1 || id == PipeId::FIX);
}

bool LateWork::step(int pipe) {
    constexpr size_t kInFlight = 8;
    Queue &queue = queues_[size_t(pipe)];
    if (queue.empty()) return false;
    size_t pick = 0;
    if (overtakes(pipe)) {
        auto alone = [&](const Item &item) { return item.kind == Kind::Work && item.pipes == 1u << pipe; };
        size_t able = 0;
        while (able < queue.size() && able < kInFlight && alone(*queue[able])) ++able;
        if (able > 1) pick = dice_() % able;
    }
    const std::shared_ptr<Item> item = queue[pick];
    switch (item->kind) {
    case Kind::Work:
        for (int i = 0; i < kPipes; ++i)
            if ((item->pipes >> i & 1) && i != pipe && queues_[size_t(i)].front() != item) return false;
        item->work();
        for (int i = 0; i < kPipes; ++i)
            if ((item->pipes >> i & 1) && i != pipe) queues_[size_t(i)].pop_front();
        break;
    case Kind::Set:
        ++raised_[item->flag];
        break;
    case Kind::Wait:
        if (!raised_[item->flag]) return false;
        --raised_[item->flag];
        break;
    case Kind::Barrier:
        break;
    }
    queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(pick));
    return true;
}

bool LateWork::step_anywhere() {
    const int first = static_cast<int>(dice_() % kPipes);
    for (int i = 0; i < kPipes; ++i)
        if (step((first + i) % kPipes)) return true;
    return false;
}

void LateWork::need_progress() {
    if (!step_anywhere())
        fail(Fault::OurBug, core_.at, "the pipes stand still in a made-up order that their flags allow");
}

void LateWork::some() {
    for (uint64_t left = dice_() % 4; left && step_anywhere(); --left) {
    }
}

void LateWork::drain(PipeId pipe) {
    while (!queues_[static_cast<size_t>(pipe)].empty())
        if (!step(static_cast<int>(pipe))) need_progress();
}

void LateWork::drain() {
    for (int i = 0; i < kPipes; ++i) drain(static_cast<PipeId>(i));
}

} // namespace insight_trace::engine
