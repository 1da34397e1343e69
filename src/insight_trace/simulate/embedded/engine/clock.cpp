#include "clock.hpp"

#include <algorithm>

#include "records.hpp"

namespace insight_trace::engine {

static const char *pipe_name(PipeId pipe) {
    static const char *names[] = {"S", "V", "M", "MTE1", "MTE2", "MTE3", "ALL", "FIX", "?"};
    return names[static_cast<int>(pipe)];
}

Clock::Clock(const Parameters &parameters, Records &records) : records_(records) {
    issue_cost_ = parameters.scalar_issue;
    flag_cost_ = parameters.flag_set;
    flag_latency_ = parameters.flag_latency;
    barrier_cost_ = parameters.barrier_cost;
    dispatch_latency_ = parameters.scalar_dispatch;
    now_ = parameters.start_cycles;
    depth_ = static_cast<size_t>(std::max<int64_t>(1, parameters.queue_depth / 1000));
    // a ring that its places wrap around without a division
    size_t ring = 1;
    while (ring < depth_) ring *= 2;
    for (Pipe &pipe : pipes_) pipe.taken.assign(ring, 0);
}

void Clock::keep(StepKind kind, PipeId pipe, uint32_t row, const Cost &cost, PipeId to, int event) {
    constexpr int64_t kMost = UINT32_MAX;
    if (work_ > kMost) {
        steps_.list.append({kNone, 0, StepKind::Scalar, 0, 0, 0, kNone, 0, work_});
        work_ = 0;
    }
    uint32_t link = kNone;
    if (cost.access) {
        link = steps_.accesses.append(*cost.access);
    }
    steps_.list.append({row, static_cast<uint32_t>(work_), kind, static_cast<uint8_t>(pipe),
                        static_cast<uint8_t>(to), static_cast<uint8_t>(event), link, cost.occupy,
                        cost.latency});
    work_ = 0;
}

void Clock::require_queue_room(PipeId id, Site at) {
    Pipe &pipe = pipes_[static_cast<int>(id)];
    if (pipe.issued < depth_) return;
    uint64_t oldest = pipe.issued - depth_; // must have left the queue before the next one enters
    if (oldest >= pipe.started) deadlock(id, at);
    now_ = std::max(now_, pipe.taken[oldest & (pipe.taken.size() - 1)]);
}

uint32_t Clock::enqueue(PipeId id, Record &record, const Pending &work, Site at) {
    int64_t before = now_;
    if (!work.cost.follows) require_queue_room(id, at);
    if (now_ > before) record.stall = static_cast<uint8_t>(Stall::Queue);
    record.issue = now_;
    if (!work.cost.follows) now_ += issue_cost_;
    Pipe &pipe = pipes_[static_cast<int>(id)];
    Pending mine = work;
    mine.row = records_.append(record);
    switch (work.kind) {
    case Kind::Work:
        // of work that conflicts in banks, why; whether the pipe goes on to it by itself
        keep(work.cost.access ? StepKind::Transfer : StepKind::Work, id, mine.row, work.cost,
             static_cast<PipeId>(work.cost.stretched), work.cost.follows);
        break;
    case Kind::Set:
        keep(StepKind::Set, id, mine.row, {}, work.to, work.event);
        break;
    case Kind::Wait:
        keep(StepKind::Wait, id, mine.row, {}, work.from, work.event);
        break;
    case Kind::Barrier:
        keep(StepKind::Barrier, id, mine.row, {});
        break;
    }
    if (!work.cost.follows) ++pipe.issued;
    if (!pipe.pending.empty() || !schedule(id, mine)) pipe.pending.push(mine);
    return mine.row;
}

bool Clock::schedule(PipeId id, const Pending &work) {
    Pipe &pipe = pipes_[static_cast<int>(id)];
    Record &record = records_[work.row];
    int64_t ready = record.issue + dispatch_latency_;
    int64_t start = std::max(ready, pipe.next_start);
    if (start > ready && record.stall == 0 && !work.cost.follows)
        record.stall = static_cast<uint8_t>(Stall::Pipe);
    int64_t end = start;
    switch (work.kind) {
    case Kind::Work:
        if (work.cost.channel > 0) {
            // latencies of transfers in flight overlap, their bytes share the channel
            int64_t own = start + work.cost.latency - work.cost.channel;
            int64_t begin = std::max(own, pipe.channel_free);
            end = begin + work.cost.channel;
            pipe.channel_free = end;
            if (begin > own) record.stall = static_cast<uint8_t>(Stall::Bandwidth);
        } else {
            end = start + work.cost.latency;
        }
        pipe.next_start = start + work.cost.occupy;
        if (work.cost.stretched != Stall::None && record.stall == 0)
            record.stall = static_cast<uint8_t>(work.cost.stretched);
        break;
    case Kind::Set: {
        end = std::max(start, pipe.busy_until) + flag_cost_;
        pipe.next_start = start + flag_cost_;
        flag(work.from, work.to, work.event).push({end, work.row});
        break;
    }
    case Kind::Wait: {
        Flag &waited = flag(work.from, work.to, work.event);
        if (waited.empty()) return false;
        auto [time, row] = waited.pop();
        end = std::max(start, time) + flag_latency_;
        pipe.next_start = end;
        record.partner = row;
        if (time > start) record.stall = static_cast<uint8_t>(Stall::Flag);
        break;
    }
    case Kind::Barrier:
        end = std::max(start, pipe.busy_until) + barrier_cost_;
        if (pipe.busy_until > start) record.stall = static_cast<uint8_t>(Stall::Barrier);
        pipe.next_start = end;
        break;
    }
    record.start = start;
    record.end = end;
    pipe.busy_until = std::max(pipe.busy_until, end);
    if (!work.cost.follows) pipe.taken[pipe.started++ & (pipe.taken.size() - 1)] = start;
    if (work.kind == Kind::Set && work.to != PipeId::S) resume(work.to);
    return true;
}

void Clock::resume(PipeId id) {
    Pipe &pipe = pipes_[static_cast<int>(id)];
    while (!pipe.pending.empty()) {
        // take it off first: scheduling a set may come back here through another pipe
        const Pending work = pipe.pending.pop();
        if (!schedule(id, work)) {
            pipe.pending.put_back();
            return;
        }
    }
}

uint32_t Clock::issue(PipeId pipe, Record record, const Cost &cost, Site at) {
    if (pipe == PipeId::S) {
        record.issue = record.start = now_;
        now_ += cost.latency;
        record.end = now_;
        uint32_t row = records_.append(record);
        keep(StepKind::Scalar, pipe, row, cost);
        return row;
    }
    return enqueue(pipe, record, {0, Kind::Work, pipe, pipe, 0, cost, at}, at);
}

uint32_t Clock::set_flag(PipeId from, PipeId to, int event, Record record, Site at) {
    if (from == PipeId::S) {
        record.issue = record.start = now_;
        now_ += flag_cost_;
        record.end = now_;
        uint32_t row = records_.append(record);
        keep(StepKind::ScalarSet, from, row, {}, to, event);
        flag(from, to, event).push({now_, row});
        if (to != PipeId::S) resume(to);
        return row;
    }
    return enqueue(from, record, {0, Kind::Set, from, to, static_cast<uint8_t>(event), {}, at}, at);
}

uint32_t Clock::wait_flag(PipeId from, PipeId to, int event, Record record, Site at) {
    if (to != PipeId::S)
        return enqueue(to, record, {0, Kind::Wait, from, to, static_cast<uint8_t>(event), {}, at}, at);
    Flag &waited = flag(from, to, event);
    if (waited.empty()) {
        const Pipe &source = pipes_[static_cast<int>(from)];
        if (!source.pending.empty())
            deadlock(from, at,
                     std::string("the scalar unit waits for flag ") + pipe_name(from) + " -> S, event " +
                         std::to_string(event) + "; ");
        fail(Fault::Kernel, at,
             "deadlock: the scalar unit waits for flag %s -> S, event %d, which nothing sets",
             pipe_name(from), event);
    }
    auto [time, row] = waited.pop();
    record.issue = record.start = now_;
    if (time > now_) record.stall = static_cast<uint8_t>(Stall::Flag);
    now_ = std::max(now_, time) + flag_latency_;
    record.end = now_;
    record.partner = row;
    uint32_t mine = records_.append(record);
    keep(StepKind::ScalarWait, from, mine, {}, to, event);
    return mine;
}

uint32_t Clock::meet(Record record, int64_t own, int64_t until, uint32_t meeting) {
    record.issue = record.start = now_;
    if (until > now_ + own) record.stall = static_cast<uint8_t>(Stall::CrossCore);
    now_ = std::max(now_ + own, until);
    record.end = now_;
    uint32_t row = records_.append(record);
    keep(StepKind::Meet, PipeId::S, row, {own, own, 0, Stall::None});
    steps_.list[steps_.list.size() - 1].link = meeting;
    return row;
}

uint32_t Clock::barrier(PipeId pipe, Record record, Site at) {
    if (pipe != PipeId::ALL && pipe != PipeId::S)
        return enqueue(pipe, record, {0, Kind::Barrier, pipe, pipe, 0, {}, at}, at);
    record.issue = record.start = now_;
    if (pipe == PipeId::ALL) {
        for (int i = 0; i < kPipes; ++i) {
            int64_t end = drained(static_cast<PipeId>(i), at);
            if (end > now_) {
                now_ = end;
                record.stall = static_cast<uint8_t>(Stall::Barrier);
            }
        }
    }
    now_ += barrier_cost_;
    record.end = now_;
    uint32_t row = records_.append(record);
    keep(pipe == PipeId::ALL ? StepKind::BarrierAll : StepKind::Scalar, PipeId::S, row,
         {barrier_cost_, barrier_cost_});
    return row;
}

uint32_t Clock::signal(PipeId pipe, Record record, Site at) {
    if (pipe == PipeId::S) return issue(pipe, record, {issue_cost_, issue_cost_, 0, Stall::None}, at);
    uint32_t row = barrier(pipe, record, at);
    drained(pipe, at); // the other core reads the time, so it must be known
    return row;
}

int64_t Clock::drained(PipeId id, Site at) const {
    const Pipe &pipe = pipes_[static_cast<int>(id)];
    if (!pipe.pending.empty()) deadlock(id, at);
    return pipe.busy_until;
}

// From a pipe that cannot go on to the wait that nothing will ever end, or round in a circle.
std::string Clock::chain(PipeId id, Site &cause) const {
    std::string text;
    std::array<bool, kPipes> seen{};
    while (true) {
        const Pipe &pipe = pipes_[static_cast<int>(id)];
        const Pending &first = pipe.pending.front();
        text += std::string(text.empty() ? "pipe " : "; pipe ") + pipe_name(id) + " waits for flag " +
                pipe_name(first.from) + " -> " + pipe_name(first.to) + ", event " +
                std::to_string(first.event);
        cause = first.at;
        seen[static_cast<size_t>(id)] = true;
        const Pipe &source = pipes_[static_cast<int>(first.from)];
        size_t behind = 0;
        while (behind < source.pending.size() &&
               !(source.pending[behind].kind == Kind::Set && source.pending[behind].to == first.to &&
                 source.pending[behind].event == first.event))
            ++behind;
        if (behind == source.pending.size())
            return text + ", which nothing sets (" + std::to_string(pipe.pending.size() - 1) +
                   " instructions behind it)";
        text += ", which line " + std::to_string(source.pending[behind].at.line) + " sets behind a wait";
        id = first.from;
        if (seen[static_cast<size_t>(id)]) return text + " that is part of this circle";
    }
}

void Clock::deadlock(PipeId id, Site at, const std::string &before) const {
    Site cause{};
    const std::string text = chain(id, cause);
    fail(Fault::Kernel, cause.file ? cause : at, "deadlock: %s%s", before.c_str(), text.c_str());
}

void Clock::finish(Site at) {
    for (int i = 0; i < kPipes; ++i) now_ = std::max(now_, drained(static_cast<PipeId>(i), at));
    keep(StepKind::BarrierAll, PipeId::S, kNone, {0, 0});
}

std::vector<Clock::LeftOver> Clock::unused_flags() const {
    std::vector<LeftOver> left;
    for (int from = 0; from < kPipes; ++from)
        for (int to = 0; to < kPipes; ++to)
            for (int event = 0; event < kEvents; ++event) {
                const Flag &flag = flags_[from][to][event];
                int count = static_cast<int>(flag.size());
                if (count)
                    left.push_back({static_cast<PipeId>(from), static_cast<PipeId>(to), event, count,
                                    flag.back().second});
            }
    return left;
}

} // namespace insight_trace::engine
