#include "order.hpp"

#include <algorithm>

namespace insight_trace::engine::check {

constexpr uint32_t kFlips = 3;  // a unit flag that the instruction flips when it has ended
constexpr uint64_t kUnit = 512; // bytes of the accumulator under one flag

void join(Time &into, const Time &other) {
    for (size_t i = 0; i < into.size(); ++i) into[i] = std::max(into[i], other[i]);
}

Order::Order(const std::vector<CoreIdentity> &cores, Visit work)
    : cores_(cores), work_(std::move(work)), pipes_(cores.size() * kPipesPerCore), issued_(cores.size()) {
    for (Pipe &each : pipes_) each.time.assign(pipes_.size(), 0);
}

const Order::Shared &Order::scalar_time(uint16_t core) {
    if (!issued_[core]) issued_[core] = std::make_shared<const Time>(pipe(core, PipeId::S).time);
    return issued_[core];
}

// What the scalar unit has waited for holds for everything that it issues from now on.
void Order::learn_by_scalar(uint16_t core, const Time &time) {
    join(pipe(core, PipeId::S).time, time);
    issued_[core] = nullptr;
}

// The time at which everything that the pipe took up so far has ended.
Order::Shared Order::ended(const Pipe &on, size_t which) const {
    Time time = on.time;
    time[which] = on.count;
    return std::make_shared<const Time>(std::move(time));
}

void Order::visit(Pipe &on, const Step &step) {
    ++on.count;
    work_(step, on.count, on.time);
}

void Order::add(const Step &step) {
    const bool all = step.kind == StepKind::Barrier && step.pipe == PipeId::ALL;
    if (step.pipe == PipeId::S || all) {
        Pipe &scalar = pipe(step.core, PipeId::S);
        if (all) {
            Time time = scalar.time;
            for (int i = 0; i < kPipesPerCore; ++i) {
                const Pipe &each = pipe(step.core, static_cast<PipeId>(i));
                join(time, each.time);
                time[thread(step.core, static_cast<PipeId>(i))] = each.count;
            }
            learn_by_scalar(step.core, time);
            return;
        }
        take_up(scalar, {step, nullptr, scalar.count});
        return;
    }
    pipe(step.core, step.pipe)
        .pending.push_back({step, scalar_time(step.core), pipe(step.core, PipeId::S).count});
    drain(step.core, step.pipe);
}

void Order::drain(uint16_t core, PipeId id) {
    Pipe &on = pipe(core, id);
    while (!on.pending.empty()) {
        // off the queue first: a set may come back here through another pipe
        Pending next = on.pending.front();
        on.pending.pop_front();
        if (!take_up(on, next)) {
            on.pending.push_front(next);
            return;
        }
    }
}

std::deque<Order::Raised> *Order::crossing(const Step &step) {
    auto found = crossed_.find({step.core, step.event});
    return found == crossed_.end() || found->second.empty() ? nullptr : &found->second;
}

bool Order::take_up(Pipe &on, const Pending &next) {
    const Step &step = next.step;
    if (next.issued && next.issued != on.seen) {
        join(on.time, *next.issued);
        on.seen = next.issued;
    }
    auto learn = [&](const Time &time) {
        if (step.pipe == PipeId::S)
            learn_by_scalar(step.core, time);
        else
            join(on.time, time);
    };
    switch (step.kind) {
    case StepKind::Nothing:
        ++on.count;
        return true;
    case StepKind::Work:
        if (step.unit_flag) wait_for_unit(on, step);
        visit(on, step);
        if (step.unit_flag == kFlips) flip_unit(on, step);
        return true;
    case StepKind::Set:
        set(on, next);
        return true;
    case StepKind::Wait: {
        FlagState &flag = flags_[{step.core, step.from, step.to, step.event}];
        if (flag.raised.empty()) return false;
        Raised first = flag.raised.front();
        flag.raised.pop_front();
        learn(*first.time);
        visit(on, step);
        flag.waited = flag.raised.empty();
        flag.wait_number = on.count;
        return true;
    }
    case StepKind::Barrier:
        on.time[thread(step.core, step.pipe)] = on.count;
        return true;
    case StepKind::CrossSet:
    case StepKind::IntraSet:
        cross_set(on, step);
        return true;
    case StepKind::CrossWait:
    case StepKind::IntraWait: {
        std::deque<Raised> *raised = crossing(step);
        if (!raised) return false;
        const Raised first = raised->front();
        raised->pop_front();
        learn(*first.time);
        return true;
    }
    case StepKind::Publish: {
        visit(on, step);
        Time &place = published_[step.address];
        Time mine = *ended(on, thread(step.core, step.pipe));
        if (place.empty())
            place = std::move(mine);
        else
            join(place, mine);
        return true;
    }
    case StepKind::Observe: {
        auto found = published_.find(step.address);
        if (found != published_.end()) learn(found->second);
        visit(on, step);
        return true;
    }
    }
    return true;
}

// Every block of the accumulator has a flag: the cube unit waits while it is full, FIXPIPE while it is not.
void Order::wait_for_unit(Pipe &on, const Step &step) {
    const Time *last = nullptr;
    for (uint64_t b = step.address / kUnit; b * kUnit < step.address + step.unit_bytes; ++b) {
        auto found = units_.find({step.core, b});
        if (found == units_.end() || found->second.full == (step.pipe == PipeId::M)) continue;
        if (found->second.time.get() != last) join(on.time, *found->second.time);
        last = found->second.time.get();
    }
}

// It flips when the instruction has ended, and with it those before it on its pipe.
void Order::flip_unit(const Pipe &on, const Step &step) {
    const Shared time = ended(on, thread(step.core, step.pipe));
    for (uint64_t b = step.address / kUnit; b * kUnit < step.address + step.unit_bytes; ++b)
        units_[{step.core, b}] = {step.pipe == PipeId::M, time};
}

void Order::set(Pipe &on, const Pending &next) {
    const Step &step = next.step;
    FlagState &flag = flags_[{step.core, step.from, step.to, step.event}];
    if (flag.ever_set) {
        const size_t waiter = thread(step.core, step.to);
        const bool certain = !flag.raised.empty();
        // the scalar unit issues nothing before its own wait is over
        const uint32_t known = step.to == PipeId::S ? next.after : on.time[waiter];
        if (certain || known < flag.wait_number) double_sets_.push_back({flag.last_set, step.row, certain});
    }
    flag.ever_set = true;
    flag.last_set = step.row;
    flag.raised.push_back({ended(on, thread(step.core, step.pipe)), step.row});
    if (step.to != PipeId::S) drain(step.core, step.to);
}

// The counter of a flag between cores has four bits. That this many were under way in one order that the
// flags allow is enough: the chip may do it in that order, too.
void Order::deliver(uint16_t core, int flag, const Raised &raised) {
    constexpr size_t kMost = 15;
    std::deque<Raised> &waiting = crossed_[{core, flag}];
    waiting.push_back(raised);
    if (waiting.size() == kMost + 1)
        cross_faults_.push_back({raised.row, static_cast<uint32_t>(waiting.size()), true});
}

void Order::cross_set(Pipe &on, const Step &step) {
    const CoreIdentity &me = cores_[step.core];
    on.time[thread(step.core, step.pipe)] = on.count; // the signal waits for its pipe, as a barrier does
    Shared time = ended(on, thread(step.core, step.pipe));
    std::vector<uint16_t> senders, receivers;
    for (uint16_t i = 0; i < cores_.size(); ++i) {
        const CoreIdentity &other = cores_[i];
        const bool same_block = other.block == me.block, same_kind = other.cube == me.cube;
        if (step.kind == StepKind::IntraSet) {
            if (!same_block || same_kind) continue;
            if (me.cube && other.sub_block == step.event / 16) deliver(i, step.event % 16, {time, step.row});
            if (!me.cube) deliver(i, step.event % 16 + 16 * me.sub_block, {time, step.row});
            continue;
        }
        if (step.mode == 2 && me.cube) {
            if (!other.cube && same_block) deliver(i, step.event, {time, step.row});
            continue;
        }
        const bool sends = same_kind && (step.mode == 0 || same_block);
        if (sends) senders.push_back(i);
        if (step.mode == 2 ? (other.cube && same_block) : sends) receivers.push_back(i);
    }
    const bool alone = step.kind == StepKind::IntraSet || (step.mode == 2 && me.cube);
    if (!alone) {
        const int group = step.mode == 0 ? (me.cube ? -1 : -2) : me.block;
        arrived_[{group, step.event, step.core}].push_back({time, step.row});
        Time all(pipes_.size(), 0);
        for (uint16_t sender : senders) {
            auto found = arrived_.find({group, step.event, sender});
            if (found == arrived_.end() || found->second.empty()) return;
            join(all, *found->second.front().time);
        }
        for (uint16_t sender : senders) arrived_[{group, step.event, sender}].pop_front();
        Shared last = std::make_shared<const Time>(std::move(all));
        for (uint16_t receiver : receivers) deliver(receiver, step.event, {last, step.row});
    }
    for (uint16_t i = 0; i < cores_.size(); ++i)
        for (int id = 0; id < kPipesPerCore; ++id)
            if (!pipe(i, static_cast<PipeId>(id)).pending.empty()) drain(i, static_cast<PipeId>(id));
}

void Order::finish() {
    for (uint16_t i = 0; i < cores_.size(); ++i)
        for (int id = 0; id < kPipesPerCore; ++id) drain(i, static_cast<PipeId>(id));
    auto left_over = [&](const std::deque<Raised> &raised) {
        if (!raised.empty())
            cross_faults_.push_back({raised.back().row, static_cast<uint32_t>(raised.size()), false});
    };
    for (const auto &[key, raised] : crossed_) left_over(raised);
    for (const auto &[key, raised] : arrived_) left_over(raised);
}

} // namespace insight_trace::engine::check
