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
    : records_(records), issue_cost_(parameters.scalar_issue), barrier_cost_(parameters.barrier_cost),
      depth_(queue_depths(parameters, cube)) {}

CoreStep &Clock::next_step() {
    if (work_ > UINT32_MAX) {
        steps_.list.append({kNone, 0, StepKind::Scalar, 0, 0, 0, kNone, 0, work_});
        work_ = 0;
    }
    CoreStep &step = steps_.list.next();
    step = {};
    return step;
}

void Clock::keep() {
    constexpr uint32_t kAtOnce = 512; // placed while they and their rows are in the processor's caches
    while (__builtin_expect(run_is_over.load(std::memory_order_relaxed), false))
        pause(); // somebody reads what there is
    CoreStep &step = steps_.list.next();
    step.before = static_cast<uint32_t>(work_);
    work_ = 0;
    steps_.list.append(step);
    if (!timeline_ || steps_.list.size() < kAtOnce) return;
    timeline_->go_on();
    steps_.list.clear();
    steps_.accesses.clear();
    timeline_->forget_steps();
    ++placings_;
}

uint32_t Clock::keep(const Record &record, CoreStep &step) {
    const uint32_t row = step.row = records_.append(record);
    keep();
    return row;
}

// The pipe itself goes on to it, and its queue knows nothing of it.
static bool follows(const CoreStep &step) { return step.kind == StepKind::Work && step.event; }

size_t Clock::queued(int pipe) const {
    const Fifo<Item> &pending = network_.pending(pipe);
    size_t count = 0;
    for (size_t i = 0; i < pending.size(); ++i) count += !follows(pending[i].step);
    return count;
}

// Whether a pipe that waits for nothing goes on past the step.
inline bool Clock::goes_on(const PipeStep &sync, uint32_t row) {
    Token raised;
    switch (sync.kind) {
    case Sync::Work:
        return !sync.unit;
    case Sync::Set:
        network_.raise(*this, sync.from, sync.to, sync.event, row);
        return true;
    case Sync::Wait:
        return network_.take(sync.from, sync.to, sync.event, raised);
    default:
        return sync.kind == Sync::Barrier;
    }
}

uint32_t Clock::enqueue(const Record &record, CoreStep &step, const Access *access, Site at) {
    const uint8_t pipe = step.pipe;
    const size_t depth = depth_[pipe], pending = network_.pending(pipe).size();
    if (pending >= depth && !follows(step) && queued(pipe) >= depth) deadlock(static_cast<PipeId>(pipe), at);
    PipeStep sync = sync_of(step, access);
    if (sync.unit) sync.after = network_.reserve(pipe, sync.unit);
    const uint32_t row = keep(record, step); // what was placed lies there until the next one is made
    if (pending || !goes_on(sync, row)) network_.give(*this, {step, at, sync}, pipe);
    return row;
}

uint32_t Clock::issue(PipeId pipe, const Record &record, const Cost &cost, Site at) {
    CoreStep &step = next_step();
    step.pipe = static_cast<uint8_t>(pipe);
    step.link = cost.access ? steps_.accesses.append(*cost.access) : cost.unit ? cost.unit.packed() : kNone;
    step.occupy = cost.occupy;
    step.latency = cost.latency;
    if (pipe == PipeId::S) {
        step.kind = StepKind::Scalar;
        return keep(record, step);
    }
    step.kind = cost.access ? StepKind::Transfer : StepKind::Work;
    step.to = static_cast<uint8_t>(cost.stretched); // of work that conflicts in banks, why
    step.event = cost.follows;
    return enqueue(record, step, cost.access, at);
}

uint32_t Clock::set_flag(PipeId from, PipeId to, int event, const Record &record, Site at) {
    CoreStep &step = next_step();
    step.kind = from == PipeId::S ? StepKind::ScalarSet : StepKind::Set;
    step.pipe = static_cast<uint8_t>(from);
    step.to = static_cast<uint8_t>(to);
    step.event = static_cast<uint8_t>(event);
    if (from != PipeId::S) return enqueue(record, step, nullptr, at);
    const uint32_t row = keep(record, step);
    network_.raise(*this, kScalarPipe, static_cast<int>(to), event, row);
    return row;
}

uint32_t Clock::wait_flag(PipeId from, PipeId to, int event, const Record &record, Site at) {
    CoreStep &step = next_step();
    step.kind = to == PipeId::S ? StepKind::ScalarWait : StepKind::Wait;
    step.event = static_cast<uint8_t>(event);
    if (to != PipeId::S) {
        step.pipe = static_cast<uint8_t>(to);
        step.to = static_cast<uint8_t>(from);
        return enqueue(record, step, nullptr, at);
    }
    step.pipe = static_cast<uint8_t>(from);
    Token raised;
    if (!network_.take(step.pipe, kScalarPipe, event, raised)) {
        if (!network_.pending(step.pipe).empty())
            deadlock(from, at,
                     std::string("the scalar unit waits for flag ") + pipe_name(from) + " -> S, event " +
                         std::to_string(event) + "; ");
        fail(Fault::Kernel, at,
             "deadlock: the scalar unit waits for flag %s -> S, event %d, which nothing sets",
             pipe_name(from), event);
    }
    return keep(record, step);
}

uint32_t Clock::meet(const Record &record, int64_t own, uint32_t meeting) {
    CoreStep &step = next_step();
    step.kind = StepKind::Meet;
    step.link = meeting;
    step.latency = own;
    return keep(record, step);
}

uint32_t Clock::barrier(PipeId pipe, const Record &record, Site at) {
    CoreStep &step = next_step();
    step.link = kNone;
    step.latency = barrier_cost_;
    step.kind = StepKind::Barrier;
    step.pipe = static_cast<uint8_t>(pipe);
    if (pipe != PipeId::ALL && pipe != PipeId::S) return enqueue(record, step, nullptr, at);
    step.pipe = 0;
    if (pipe == PipeId::ALL)
        for (int i = 0; i < kPipes; ++i) require_no_wait(static_cast<PipeId>(i), at);
    step.kind = pipe == PipeId::ALL ? StepKind::BarrierAll : StepKind::Scalar;
    return keep(record, step);
}

uint32_t Clock::signal(PipeId pipe, const Record &record, Site at) {
    if (pipe == PipeId::S) return store(record, issue_cost_);
    CoreStep &step = next_step();
    step.link = kNone;
    step.kind = StepKind::Barrier;
    step.pipe = static_cast<uint8_t>(pipe);
    step.event = 1;
    const uint32_t row = enqueue(record, step, nullptr, at);
    require_no_wait(pipe, at); // the other core would wait for ever
    return row;
}

uint32_t Clock::store(const Record &record, int64_t milli) {
    CoreStep &step = next_step();
    step.kind = StepKind::Scalar;
    step.event = 1;
    step.link = kNone;
    step.latency = milli;
    return keep(record, step);
}

void Clock::fetch(int64_t milli, int64_t pages) {
    CoreStep &step = next_step();
    step.kind = StepKind::Scalar;
    step.to = 1;
    step.row = step.link = kNone;
    step.occupy = pages;
    step.latency = milli;
    keep();
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

uint32_t Clock::repeat(const Record &record, const CoreStep &known, const Access *access, uint64_t moved,
                       Site at) {
    work_ += known.before;
    CoreStep &step = next_step();
    step = known;
    if (access) {
        step.link = steps_.accesses.append(*access);
        steps_.accesses[step.link].address += moved;
    }
    if (step.kind == StepKind::Scalar) return keep(record, step);
    return enqueue(record, step, access, at);
}

void Clock::require_no_wait(PipeId id, Site at) const {
    if (!network_.pending(static_cast<int>(id)).empty()) deadlock(id, at);
}

// From a pipe that cannot go on to the wait that nothing will ever end, or round in a circle.
std::string Clock::chain(PipeId id, Site &cause) const {
    std::string text;
    std::array<bool, kPipes> seen{};
    while (true) {
        const Fifo<Item> &pending = network_.pending(static_cast<int>(id));
        const Item &first = pending.front(); // a wait, or work under a unit flag
        const bool unit = first.sync.kind == Sync::Work;
        const PipeId from = !unit             ? static_cast<PipeId>(first.sync.from)
                            : id == PipeId::M ? PipeId::FIX
                                              : PipeId::M;
        text += std::string(text.empty() ? "pipe " : "; pipe ") + pipe_name(id) + " waits for " +
                (unit ? "the unit flag of " : "flag ") + pipe_name(from);
        if (!unit)
            text += std::string(" -> ") + pipe_name(id) + ", event " + std::to_string(first.sync.event);
        cause = first.at;
        seen[static_cast<size_t>(id)] = true;
        const Fifo<Item> &source = network_.pending(static_cast<int>(from));
        const auto ends_it = [&](const PipeStep &step) {
            if (unit) return step.unit.flips && step.unit.meets(first.sync.unit);
            return step.kind == Sync::Set && step.to == first.sync.to && step.event == first.sync.event;
        };
        size_t behind = 0;
        while (behind < source.size() && !ends_it(source[behind].sync)) ++behind;
        if (behind == source.size())
            return text + ", which nothing sets (" + std::to_string(pending.size() - 1) +
                   " instructions behind it)";
        text += ", which line " + std::to_string(source[behind].at.line) + " sets behind a wait";
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
    CoreStep &step = next_step();
    step.kind = StepKind::BarrierAll;
    step.row = step.link = kNone;
    keep();
}

void Clock::take_over(CoreStep *steps, size_t count, uint32_t row, uint32_t meeting) {
    for (CoreStep *step = steps; step != steps + count; ++step) {
        if (step->row != kNone) step->row += row;
        if (step->kind == StepKind::Meet) step->link += meeting;
    }
    steps_.list.look_at(steps, count);
}

std::vector<Clock::LeftOver> Clock::unused_flags() const {
    std::vector<LeftOver> left;
    network_.each_left([&](int from, int to, int event, const Fifo<Token> &rows) {
        if (event >= kEvents) return; // the last release of a buffer
        left.push_back({static_cast<PipeId>(from), static_cast<PipeId>(to), event,
                        static_cast<int>(rows.size()), rows.back()});
    });
    return left;
}

} // namespace insight_trace::engine
