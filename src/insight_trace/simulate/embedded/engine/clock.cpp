#include "clock.hpp"

#include <algorithm>
#include <unistd.h>

#include "records.hpp"
#include "timeline.hpp"

namespace insight_trace::engine {

static const char *pipe_name(PipeId pipe) {
    static const char *names[] = {"S", "V", "M", "MTE1", "MTE2", "MTE3", "ALL", "FIX", "?"};
    return names[static_cast<int>(pipe)];
}

Clock::Clock(const Parameters &parameters, Records &records, bool cube)
    : records_(records), issue_cost_(parameters.scalar_issue), barrier_cost_(parameters.barrier_cost) {
    for (int i = 0; i < kPipes; ++i)
        depth_[static_cast<size_t>(i)] = parameters.queue_depth(static_cast<PipeId>(i), cube);
}

void Clock::keep(const CoreStep &step) {
    constexpr uint32_t kAtOnce = 512; // placed while they and their rows are in the processor's caches
    while (__builtin_expect(run_is_over.load(std::memory_order_relaxed), false))
        pause(); // somebody reads what there is
    if (work_ > UINT32_MAX) {
        steps_.list.append({kNone, 0, StepKind::Scalar, 0, 0, 0, kNone, 0, work_});
        work_ = 0;
    }
    CoreStep &kept = steps_.list[steps_.list.append(step)];
    kept.before = static_cast<uint32_t>(work_);
    work_ = 0;
    if (!timeline_ || steps_.list.size() < kAtOnce) return;
    timeline_->go_on();
    steps_.list.clear();
    steps_.accesses.clear();
    timeline_->forget_steps();
    ++placings_;
}

// The pipe itself goes on to it, and its queue knows nothing of it.
static bool follows(const CoreStep &step) { return step.kind == StepKind::Work && step.event; }

uint32_t Clock::enqueue(const Record &record, CoreStep &step, Site at) {
    Pipe &pipe = pipes_[step.pipe];
    if (pipe.queued >= depth_[step.pipe] && !follows(step)) deadlock(static_cast<PipeId>(step.pipe), at);
    step.row = records_.append(record);
    keep(step);
    if (!pipe.pending.empty() || !go_on(step)) {
        pipe.pending.push({step, at});
        pipe.queued += !follows(step);
    } else if (step.kind == StepKind::Set) {
        raise(step);
    }
    return step.row;
}

bool Clock::go_on(const CoreStep &step) {
    if (step.kind != StepKind::Wait) return true;
    Flag &waited = flag(step.to, step.pipe, step.event);
    if (!waited.count) return false;
    --waited.count;
    return true;
}

void Clock::raise(const CoreStep &set) {
    Flag &raised = flag(set.pipe, set.to, set.event);
    ++raised.count;
    raised.row = set.row;
    if (set.to != static_cast<uint8_t>(PipeId::S)) resume(set.to);
}

void Clock::resume(int id) {
    Pipe &pipe = pipes_[id];
    while (!pipe.pending.empty()) {
        // taken off first: a set among them may come back here through another pipe
        const CoreStep step = pipe.pending.pop().step;
        if (!go_on(step)) {
            pipe.pending.put_back();
            return;
        }
        pipe.queued -= !follows(step);
        if (step.kind == StepKind::Set) raise(step);
    }
}

uint32_t Clock::issue(PipeId pipe, const Record &record, const Cost &cost, Site at) {
    CoreStep step{};
    step.pipe = static_cast<uint8_t>(pipe);
    step.link = cost.access ? steps_.accesses.append(*cost.access) : kNone;
    step.occupy = cost.occupy;
    step.latency = cost.latency;
    if (pipe == PipeId::S) {
        step.kind = StepKind::Scalar;
        step.row = records_.append(record);
        keep(step);
        return step.row;
    }
    step.kind = cost.access ? StepKind::Transfer : StepKind::Work;
    step.to = static_cast<uint8_t>(cost.stretched); // of work that conflicts in banks, why
    step.event = cost.follows;
    return enqueue(record, step, at);
}

uint32_t Clock::set_flag(PipeId from, PipeId to, int event, const Record &record, Site at) {
    CoreStep step{};
    step.kind = from == PipeId::S ? StepKind::ScalarSet : StepKind::Set;
    step.pipe = static_cast<uint8_t>(from);
    step.to = static_cast<uint8_t>(to);
    step.event = static_cast<uint8_t>(event);
    if (from != PipeId::S) return enqueue(record, step, at);
    step.row = records_.append(record);
    keep(step);
    raise(step);
    return step.row;
}

uint32_t Clock::wait_flag(PipeId from, PipeId to, int event, const Record &record, Site at) {
    CoreStep step{};
    step.kind = to == PipeId::S ? StepKind::ScalarWait : StepKind::Wait;
    step.event = static_cast<uint8_t>(event);
    if (to != PipeId::S) {
        step.pipe = static_cast<uint8_t>(to);
        step.to = static_cast<uint8_t>(from);
        return enqueue(record, step, at);
    }
    step.pipe = static_cast<uint8_t>(from);
    Flag &waited = flag(step.pipe, 0, event);
    if (!waited.count) {
        if (!pipes_[step.pipe].pending.empty())
            deadlock(from, at,
                     std::string("the scalar unit waits for flag ") + pipe_name(from) + " -> S, event " +
                         std::to_string(event) + "; ");
        fail(Fault::Kernel, at,
             "deadlock: the scalar unit waits for flag %s -> S, event %d, which nothing sets",
             pipe_name(from), event);
    }
    --waited.count;
    step.row = records_.append(record);
    keep(step);
    return step.row;
}

uint32_t Clock::meet(const Record &record, int64_t own, uint32_t meeting) {
    CoreStep step{};
    step.kind = StepKind::Meet;
    step.link = meeting;
    step.latency = own;
    step.row = records_.append(record);
    keep(step);
    return step.row;
}

uint32_t Clock::barrier(PipeId pipe, const Record &record, Site at) {
    CoreStep step{};
    step.link = kNone;
    step.latency = barrier_cost_;
    step.kind = StepKind::Barrier;
    step.pipe = static_cast<uint8_t>(pipe);
    if (pipe != PipeId::ALL && pipe != PipeId::S) return enqueue(record, step, at);
    step.pipe = 0;
    if (pipe == PipeId::ALL)
        for (int i = 0; i < kPipes; ++i) require_no_wait(static_cast<PipeId>(i), at);
    step.kind = pipe == PipeId::ALL ? StepKind::BarrierAll : StepKind::Scalar;
    step.row = records_.append(record);
    keep(step);
    return step.row;
}

uint32_t Clock::signal(PipeId pipe, const Record &record, Site at) {
    if (pipe == PipeId::S) return store(record, issue_cost_);
    CoreStep step{};
    step.link = kNone;
    step.kind = StepKind::Barrier;
    step.pipe = static_cast<uint8_t>(pipe);
    step.event = 1;
    const uint32_t row = enqueue(record, step, at);
    require_no_wait(pipe, at); // the other core would wait for ever
    return row;
}

uint32_t Clock::store(const Record &record, int64_t milli) {
    CoreStep step{};
    step.kind = StepKind::Scalar;
    step.event = 1;
    step.link = kNone;
    step.latency = milli;
    step.row = records_.append(record);
    keep(step);
    return step.row;
}

bool Clock::can_repeat(const CoreStep &step) {
    switch (step.kind) {
    case StepKind::Work:
    case StepKind::Transfer:
    case StepKind::Set:
    case StepKind::Wait:
        return true;
    case StepKind::Scalar:
    case StepKind::Barrier:
        return !step.event && step.row != kNone; // nobody waits for it
    default:
        return false;
    }
}

uint32_t Clock::repeat(const Record &record, CoreStep step, const Access *access, Site at) {
    work_ += step.before;
    if (access) step.link = steps_.accesses.append(*access);
    if (step.kind == StepKind::Scalar) {
        step.row = records_.append(record);
        keep(step);
        return step.row;
    }
    return enqueue(record, step, at);
}

void Clock::require_no_wait(PipeId id, Site at) const {
    if (!pipes_[static_cast<int>(id)].pending.empty()) deadlock(id, at);
}

// From a pipe that cannot go on to the wait that nothing will ever end, or round in a circle.
std::string Clock::chain(PipeId id, Site &cause) const {
    std::string text;
    std::array<bool, kPipes> seen{};
    while (true) {
        const Pipe &pipe = pipes_[static_cast<int>(id)];
        const Pending &first = pipe.pending.front(); // a wait
        const auto from = static_cast<PipeId>(first.step.to);
        text += std::string(text.empty() ? "pipe " : "; pipe ") + pipe_name(id) + " waits for flag " +
                pipe_name(from) + " -> " + pipe_name(id) + ", event " + std::to_string(first.step.event);
        cause = first.at;
        seen[static_cast<size_t>(id)] = true;
        const Pipe &source = pipes_[static_cast<int>(from)];
        const auto sets = [&](const CoreStep &step) {
            return step.kind == StepKind::Set && step.to == first.step.pipe && step.event == first.step.event;
        };
        size_t behind = 0;
        while (behind < source.pending.size() && !sets(source.pending[behind].step)) ++behind;
        if (behind == source.pending.size())
            return text + ", which nothing sets (" + std::to_string(pipe.pending.size() - 1) +
                   " instructions behind it)";
        text += ", which line " + std::to_string(source.pending[behind].at.line) + " sets behind a wait";
        id = from;
        if (seen[static_cast<size_t>(id)]) return text + " that is part of this circle";
    }
}

void Clock::deadlock(PipeId id, Site at, const std::string &before) const {
    Site cause{};
    const std::string text = chain(id, cause);
    fail(Fault::Kernel, cause.file ? cause : at, "deadlock: %s%s", before.c_str(), text.c_str());
}

void Clock::finish(Site at) {
    for (int i = 0; i < kPipes; ++i) require_no_wait(static_cast<PipeId>(i), at);
    CoreStep step{};
    step.kind = StepKind::BarrierAll;
    step.row = step.link = kNone;
    keep(step);
}

void Clock::take_over(const CoreStep *steps, size_t count, uint32_t row, uint32_t meeting) {
    for (size_t i = 0; i < count; ++i) {
        CoreStep step = steps[i];
        if (step.row != kNone) step.row += row;
        if (step.kind == StepKind::Meet) step.link += meeting;
        steps_.list.append(step);
    }
}

void Clock::take_over(const Access *accesses, size_t count) {
    for (size_t i = 0; i < count; ++i) steps_.accesses.append(accesses[i]);
}

std::vector<Clock::LeftOver> Clock::unused_flags() const {
    std::vector<LeftOver> left;
    for (int from = 0; from < kPipes; ++from)
        for (int to = 0; to < kPipes; ++to)
            for (int event = 0; event < kEvents; ++event) {
                const Flag &flag = flags_[from][to][event];
                if (flag.count)
                    left.push_back({static_cast<PipeId>(from), static_cast<PipeId>(to), event,
                                    static_cast<int>(flag.count), flag.row});
            }
    return left;
}

} // namespace insight_trace::engine
