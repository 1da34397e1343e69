#include "order.hpp"

#include <algorithm>

namespace insight_trace::engine::check {

void join(Time &into, const Time &other) {
    for (size_t i = 0; i < into.size(); ++i) into[i] = std::max(into[i], other[i]);
}

Order::Order(const std::vector<CoreIdentity> &cores, const SignalBlocks &signals, Visit work)
    : cores_(cores), signals_(signals), work_(std::move(work)), pipes_(cores.size() * kPipes) {
    for (Pipe &each : pipes_) each.time.assign(pipes_.size(), 0);
    for (size_t i = 0; i < cores.size(); ++i) networks_.push_back(std::make_unique<Core>(*this));
}

const Order::Shared &Order::scalar_time(uint16_t core) {
    Shared &issued = networks_[core]->issued;
    if (!issued) issued = std::make_shared<const Time>(pipe(core, PipeId::S).time);
    return issued;
}

// What the scalar unit has waited for holds for everything that it issues from now on.
void Order::learn_by_scalar(uint16_t core, const Time &time) {
    join(pipe(core, PipeId::S).time, time);
    networks_[core]->issued = nullptr;
}

void Order::learn(const Step &step, const Time &time) {
    if (step.pipe == PipeId::S)
        learn_by_scalar(step.core, time);
    else
        join(pipe(step.core, step.pipe).time, time);
}

// The time at which everything that the pipe took up so far has ended.
Order::Shared Order::ended(const Pipe &on, size_t which) const {
    Time time = on.time;
    time[which] = on.count;
    return std::make_shared<const Time>(std::move(time));
}

// Who finds what was left here knows of everything up to now.
void Order::publish(Time &place, const Pipe &on, size_t which) {
    if (place.empty()) place.assign(pipes_.size(), 0);
    join(place, *ended(on, which));
}

void Order::visit(Pipe &on, const Step &step) {
    const Signals *signals = signals_.empty() ? nullptr : signals_.of(step.row);
    if (signals)
        for (uint64_t block : signals->seen)
            if (const auto found = sent_.find(block); found != sent_.end()) learn(step, found->second);
    ++on.count;
    work_(step, on.count, on.time);
    if (signals)
        for (uint64_t block : signals->sent) publish(sent_[block], on, thread(step.core, step.pipe));
}

void Order::add(const Step &step) {
    Core &core = *networks_[step.core];
    Pipe &scalar = pipe(step.core, PipeId::S);
    if (step.kind == StepKind::Barrier && step.pipe == PipeId::ALL) {
        Time time = scalar.time;
        for (int i = 0; i < kPipes; ++i) {
            const Pipe &each = pipe(step.core, static_cast<PipeId>(i));
            join(time, each.time);
            time[thread(step.core, static_cast<PipeId>(i))] = each.count;
        }
        learn_by_scalar(step.core, time);
        return;
    }
    const bool by_scalar = step.pipe == PipeId::S;
    Pending item{step, by_scalar ? nullptr : scalar_time(step.core), scalar.count};
    const int pipe = static_cast<int>(step.pipe);
    if (step.unit) item.handed = core.network.reserve(pipe, step.unit);
    // what a scalar unit waits for was raised before: it is never kept
    if (by_scalar)
        core.network.take_up(core, item);
    else
        core.network.give(core, item, pipe);
}

PipeStep Order::Core::step_of(const Pending &item) const {
    const Step &step = item.step;
    PipeStep sync;
    sync.pipe = static_cast<uint8_t>(step.pipe);
    sync.from = static_cast<uint8_t>(step.from);
    sync.to = static_cast<uint8_t>(step.to);
    sync.event = static_cast<uint8_t>(step.event);
    sync.unit = step.unit;
    sync.after = item.handed;
    switch (step.kind) {
    case StepKind::Set:
        sync.kind = Sync::Set;
        break;
    case StepKind::Wait:
        sync.kind = Sync::Wait;
        break;
    case StepKind::Barrier:
        sync.kind = Sync::Barrier;
        break;
    case StepKind::CrossWait:
    case StepKind::IntraWait:
        sync.kind = Sync::CoreWait;
        break;
    default:
        break;
    }
    return sync;
}

bool Order::Core::ready(const Pending &item) {
    Pipe &on = order.pipe(item.step.core, item.step.pipe);
    if (item.issued && item.issued != on.seen) {
        join(on.time, *item.issued);
        on.seen = item.issued;
    }
    return true;
}

bool Order::Core::work(const Pending &item) {
    const Step &step = item.step;
    Pipe &on = order.pipe(step.core, step.pipe);
    const size_t which = thread(step.core, step.pipe);
    switch (step.kind) {
    case StepKind::Nothing:
        ++on.count;
        return true;
    case StepKind::CrossSet:
    case StepKind::IntraSet:
        order.core_set(on, step);
        return true;
    case StepKind::Publish: {
        order.visit(on, step);
        order.publish(order.published_[step.address], on, which);
        return true;
    }
    case StepKind::Observe: {
        auto found = order.published_.find(step.address);
        if (found != order.published_.end()) order.learn(step, found->second);
        order.visit(on, step);
        return true;
    }
    default:
        break;
    }
    const PipeStep sync = step_of(item);
    if (sync.unit)
        network.each_handed(sync,
                            [&](const UnitUse &, const Raised &raised) { join(on.time, *raised.time); });
    order.visit(on, step);
    // it hands over when it has ended, and with it those before it on its pipe
    if (sync.unit.flips) network.flip(*this, sync.pipe, sync.unit, {order.ended(on, which), step.row});
    return true;
}

bool Order::Core::set(const Pending &item, Raised &raised) {
    const Step &step = item.step;
    const Pipe &on = order.pipe(step.core, step.pipe);
    FlagState &flag = order.flags_[{step.core, step.from, step.to, step.event}];
    if (flag.ever_set && step.event < kEvents) { // releases of a buffer add up
        const bool certain =
            network.raised(static_cast<int>(step.from), static_cast<int>(step.to), step.event) > 0;
        // the scalar unit issues nothing before its own wait is over
        const uint32_t known = step.to == PipeId::S ? item.after : on.time[thread(step.core, step.to)];
        if (certain || known < flag.wait_number)
            order.double_sets_.push_back({flag.last_set, step.row, certain});
    }
    flag.ever_set = true;
    flag.last_set = step.row;
    raised = {order.ended(on, thread(step.core, step.pipe)), step.row};
    return true;
}

void Order::Core::waited(const Pending &item, const Raised &raised) {
    const Step &step = item.step;
    order.learn(step, *raised.time);
    if (step.kind != StepKind::Wait) return;
    Pipe &on = order.pipe(step.core, step.pipe);
    order.visit(on, step);
    order.flags_[{step.core, step.from, step.to, step.event}].wait_number = on.count;
}

bool Order::Core::barrier(const Pending &item) {
    Pipe &on = order.pipe(item.step.core, item.step.pipe);
    on.time[thread(item.step.core, item.step.pipe)] = on.count;
    return true;
}

void Order::core_set(Pipe &on, const Step &step) {
    // The counter of a flag between cores has four bits. That this many were under way in one order that the
    // flags allow is enough: the chip may do it in that order, too.
    constexpr size_t kMost = 15;
    on.time[thread(step.core, step.pipe)] = on.count; // the signal waits for its pipe, as a barrier does
    between_cores_.set(
        cores_, step.core, step.kind == StepKind::IntraSet ? kOneToOne : step.mode, step.event,
        {ended(on, thread(step.core, step.pipe)), step.row},
        [&](const std::vector<Raised> &all) {
            Time time(pipes_.size(), 0);
            for (const Raised &one : all) join(time, *one.time);
            return Raised{std::make_shared<const Time>(std::move(time)), step.row};
        },
        [&](size_t core, int flag, const Raised &raised) {
            Core &to = *networks_[core];
            to.network.from_cores(flag).push(raised);
            if (to.network.from_cores(flag).size() == kMost + 1)
                cross_faults_.push_back({raised.row, uint32_t(kMost + 1), true});
        });
    for (const auto &core : networks_) core->network.go_on(*core);
}

void Order::finish() {
    for (const auto &core : networks_) core->network.go_on(*core);
    auto left_over = [&](const Fifo<Raised> &raised) {
        if (!raised.empty())
            cross_faults_.push_back({raised.back().row, static_cast<uint32_t>(raised.size()), false});
    };
    for (const auto &core : networks_)
        for (int flag = 0; flag < kCoreFlags; ++flag) left_over(core->network.from_cores(flag));
    between_cores_.each_left(left_over);
}

} // namespace insight_trace::engine::check
