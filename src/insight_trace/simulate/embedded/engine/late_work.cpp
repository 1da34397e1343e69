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
    Item item{std::make_shared<Task>(Task{others, std::move(later)}), {}};
    for (int i = 0; i < kPipes; ++i) {
        if (!(others >> i & 1)) continue;
        item.sync = {};
        item.sync.pipe = static_cast<uint8_t>(i);
        if (i == static_cast<int>(PipeId::M) || i == static_cast<int>(PipeId::FIX)) {
            item.sync.unit = core_.used_unit;
            if (item.sync.unit) item.sync.after = network_.reserve(i, item.sync.unit);
        }
        network_.pending(i).push(item);
    }
}

void LateWork::op(uint32_t pipes, Op op, const Operands &operands) {
    core_.computes = true; // what is done from here on is work, not issue
    std::vector<Operand> kept(operands.list, operands.list + operands.count);
    put(pipes, [this, op, kept = std::move(kept)] {
        lower(core_, op, {kept.data(), static_cast<uint32_t>(kept.size())});
    });
}

void LateWork::raw(uint32_t pipes, Raw which, const uint64_t *values) {
    core_.computes = true;
    std::vector<uint64_t> kept(values, values + raw_values(which));
    put(pipes, [this, which, kept = std::move(kept)] { perform(core_, which, kept.data()); });
}

void LateWork::push(PipeId pipe, Sync kind, PipeId from, PipeId to, int event) {
    Item item;
    item.sync.kind = kind;
    item.sync.pipe = static_cast<uint8_t>(pipe);
    item.sync.from = static_cast<uint8_t>(from);
    item.sync.to = static_cast<uint8_t>(to);
    item.sync.event = static_cast<uint8_t>(event);
    network_.pending(static_cast<int>(pipe)).push(item);
}

void LateWork::set(PipeId from, PipeId to, int event) {
    if (from == PipeId::S)
        network_.raise(*this, kScalarPipe, static_cast<int>(to), event, {});
    else
        push(from, Sync::Set, from, to, event);
}

void LateWork::wait(PipeId from, PipeId to, int event) {
    if (to != PipeId::S) return push(to, Sync::Wait, from, to, event);
    Token raised;
    while (!network_.take(static_cast<int>(from), kScalarPipe, event, raised)) need_progress();
}

void LateWork::barrier(PipeId pipe) {
    if (pipe == PipeId::ALL)
        drain();
    else if (pipe != PipeId::S)
        push(pipe, Sync::Barrier);
}

bool LateWork::overtakes(int pipe) const {
    const auto id = static_cast<PipeId>(pipe);
    if (id == PipeId::MTE2 || id == PipeId::MTE3) return true;
    return !core_.register_based() && (id == PipeId::MTE1 || id == PipeId::FIX);
}

bool LateWork::step(int pipe) {
    Fifo<Item> &queue = network_.pending(pipe);
    if (queue.empty()) return false;
    if (overtakes(pipe)) {
        const size_t most = std::min(queue.size(), depths_[static_cast<size_t>(pipe)]);
        auto alone = [&](const Item &item) {
            return item.sync.kind == Sync::Work && !item.sync.unit && item.task->pipes == 1u << pipe;
        };
        size_t able = 0;
        while (able < most && alone(queue[able])) ++able;
        if (able > 1)
            for (size_t pick = dice_() % able; pick; --pick) std::swap(queue[pick], queue[pick - 1]);
    }
    if (!network_.take_up(*this, Item(queue.front()))) return false;
    queue.drop();
    return true;
}

bool LateWork::work(const Item &item) {
    const int pipe = item.sync.pipe;
    auto others = [&](auto &&visit) {
        for (int i = 0; i < kPipes; ++i)
            if ((item.task->pipes >> i & 1) && i != pipe) visit(i);
    };
    bool first_everywhere = true;
    others(
        [&](int i) { first_everywhere = first_everywhere && network_.pending(i).front().task == item.task; });
    if (!first_everywhere) return false;
    item.task->work();
    if (item.sync.unit.flips) network_.flip(*this, pipe, item.sync.unit, {});
    others([&](int i) { network_.pending(i).drop(); });
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
    while (!network_.pending(static_cast<int>(pipe)).empty())
        if (!step(static_cast<int>(pipe))) need_progress();
}

void LateWork::drain() {
    for (int i = 0; i < kPipes; ++i) drain(static_cast<PipeId>(i));
}

} // namespace insight_trace::engine
