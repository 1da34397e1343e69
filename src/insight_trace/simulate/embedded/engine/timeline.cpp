#include "timeline.hpp"

#include <algorithm>

#include "failure.hpp"

namespace insight_trace::engine {

Timeline::Timeline(const Parameters &parameters, Records &records, const std::vector<TimelineCore> &cores,
                   const std::vector<Meeting> &meetings, const std::vector<Region> &buffers)
    : parameters_(parameters), records_(records), given_(cores), meetings_(meetings), buffers_(buffers),
      times_(cores.size()) {
    issue_cost_ = parameters.scalar_issue;
    flag_cost_ = parameters.flag_set;
    flag_latency_ = parameters.flag_latency;
    barrier_cost_ = parameters.barrier_cost;
    dispatch_latency_ = parameters.scalar_dispatch;
    start_ = parameters.start_cycles;
    rates_ = {parameters.gm_chip_rate,    parameters.gm_chip_rate_l1, parameters.l2_chip_rate,
              parameters.l2_chip_rate_l1, parameters.l2_miss_latency, parameters.l2_shared_cost,
              parameters.gm_core_rate,    parameters.l2_atomic_turn};
    skew_ = parameters.launch_skew;
    next_block_ = parameters.launch_next_block;
    cube_cores_ = static_cast<int>(parameters.chip_cube_cores / 1000);
    for (uint32_t i = 0; i < cores.size(); ++i) {
        const size_t block = static_cast<size_t>(cores[i].block);
        if (blocks_.size() <= block) blocks_.resize(block + 1);
        blocks_[block].push_back(i);
        clusters_.push_back(block);
    }
    const bool pairs =
        !cores.empty() && !cores[0].cube && blocks_[static_cast<size_t>(cores[0].block)].size() == 1;
    for (size_t &cluster : clusters_) cluster /= pairs ? 2 : 1;
}

Timeline::~Timeline() = default;

Timeline::Core::Core(Timeline &timeline_, uint32_t index_, const TimelineCore &given)
    : timeline(timeline_), index(index_), steps(given.steps), block(given.block) {
    const QueueDepths depths = queue_depths(timeline.parameters_, given.cube);
    for (size_t i = 0; i < pipes.size(); ++i) {
        pipes[i].depth = depths[i];
        size_t ring = 1; // its places wrap around without a division
        while (ring < depths[i]) ring *= 2;
        pipes[i].taken.assign(ring, 0);
    }
}

// How many blocks the chip runs at once: a cluster has a cube core and two vector cores.
static size_t slots_of(const std::vector<TimelineCore> &cores, const std::vector<uint32_t> &block,
                       int cube_cores) {
    if (cube_cores <= 0) return SIZE_MAX;
    bool cube = false;
    size_t lanes = 0;
    for (uint32_t core : block) {
        cube = cube || cores[core].cube;
        lanes += !cores[core].cube;
    }
    return static_cast<size_t>(cube_cores) * (!cube && lanes == 1 ? 2 : 1);
}

void Timeline::begin(L2Cache &cache, bool write_records) {
    writes_ = write_records;
    whole_ = overfull_ = false;
    walks_ = std::make_unique<PageWalks>(parameters_, buffers_, given_.size(), blocks_.size());
    memory_ = std::make_unique<MemorySystem>(rates_, cache, *walks_, clusters_, kPipes);
    cores_.clear();
    for (uint32_t i = 0; i < given_.size(); ++i)
        cores_.push_back(std::make_unique<Core>(*this, i, given_[i]));
    signalled_.clear();
    flags_ = Turns(parameters_.cross_core_turn);
    done_ = begun_ = 0;
    left_.clear();
    for (const auto &block : blocks_) left_.push_back(static_cast<int>(block.size()));
    const size_t slots = blocks_.empty() ? 1 : slots_of(given_, blocks_[0], cube_cores_);
    waves_ = slots == SIZE_MAX ? 1 : static_cast<int>((blocks_.size() + slots - 1) / slots);
    // cores are started one after the other; a cube core alone takes its cluster's two vector cores' time
    int64_t started = 0;
    while (begun_ < blocks_.size() && begun_ < slots) {
        const std::vector<uint32_t> &block = blocks_[begun_];
        const bool cube = std::any_of(block.begin(), block.end(), [&](uint32_t i) { return given_[i].cube; });
        begin_block(start_ + skew_ * started, true);
        started += std::max<int64_t>(static_cast<int64_t>(block.size()), cube ? 2 : 1);
    }
}

void Timeline::go_on() {
    Core &core = *cores_[0];
    take_steps(0);
    MemorySystem::Ended event;
    while (core.next < core.steps->list.size() && memory_->next(event)) {
        ended(event);
        take_steps(0);
    }
}

// Every turn is a transfer that ended, with the instructions around it.
static constexpr size_t kTurnsOfRows = 1u << 17;

void Timeline::finish(bool cut_off) {
    whole_ = true;
    if (cores_.size() == 1) ready_.push(0);
    for (size_t turn = 1;; ++turn) {
        if (turn % kTurnsOfRows == 0) {
            records_.release();
            for (const TimelineCore &core : given_) core.steps->release();
        }
        while (!ready_.empty()) take_steps(ready_.pop());
        MemorySystem::Ended event;
        if (memory_->next(event)) {
            ended(event);
            continue;
        }
        if (done_ == cores_.size()) break;
        if (begun_ == blocks_.size()) {
            if (cut_off) break;
            fail(Fault::OurBug, {}, "the timeline stands still with %zu of %zu cores at their end", done_,
                 cores_.size());
        }
        // blocks that run wait for blocks that have no core: on the chip this never ends
        overfull_ = true;
        while (begun_ < blocks_.size()) begin_block(memory_->now(), false);
    }
    traffic_ = memory_->total();
}

int64_t Timeline::reach(uint32_t row) {
    int64_t time = 0;
    MemorySystem::Ended event;
    // while it takes steps itself, it has taken this one, and only its end may be open
    if (!taking_) take_steps(0, row);
    while (!signalled(row, time) && memory_->next(event)) {
        ended(event);
        if (!taking_) take_steps(0, row);
    }
    return time;
}

void Timeline::begin_block(int64_t at, bool cold) {
    const std::vector<uint32_t> &block = blocks_[begun_]; // without a core where only another block is placed
    for (size_t i = 0; i < block.size(); ++i) {
        const uint32_t core = block[i];
        cores_[core]->cold = cold;
        cores_[core]->follows = i > 0 && given_[core].cube == given_[block[i - 1]].cube;
        cores_[core]->now = at;
        cores_[core]->begun = true;
        times_[core].start = Clock::whole(at);
        ready_.push(core);
    }
    ++begun_;
}

void Timeline::take_steps(uint32_t index, uint32_t last_row) {
    Core &core = *cores_[index];
    const Mapped<CoreStep> &steps = core.steps->list;
    taking_ = true;
    for (; core.next < steps.size(); ++core.next) {
        const CoreStep &step = steps[core.next];
        if (step.row > last_row && step.row != kNone) break;
        if (!left_out_.empty() && step.row != kNone && left_out_[step.row])
            core.now += step.before;
        else if (!take(core, index, step))
            break;
    }
    taking_ = false;
    if (core.next < steps.size() || !whole_ || core.done) return;
    core.done = true;
    ++done_;
    times_[index].end = Clock::whole(core.now);
    if (--left_[static_cast<size_t>(core.block)] > 0 || begun_ == blocks_.size()) return;
    int64_t end = 0;
    const std::vector<uint32_t> &ended = blocks_[static_cast<size_t>(core.block)];
    for (uint32_t other : ended) end = std::max(end, cores_[other]->now);
    if (!blocks_[begun_].empty()) walks_->take_over(clusters_[ended[0]], clusters_[blocks_[begun_][0]]);
    begin_block(end + next_block_, false);
}

void Timeline::signal(uint32_t row, int64_t time) {
    signalled_[row] = time;
    if (cores_.size() == 1) return; // it is looked at again anyway
    for (uint32_t i = 0; i < cores_.size(); ++i) {
        const Core &core = *cores_[i];
        if (core.begun && core.next < core.steps->list.size() &&
            core.steps->list[core.next].kind == StepKind::Meet)
            ready_.push(i);
    }
}

// The queue of a pipe has room for one more; the scalar unit waits until then.
bool Timeline::room(Core &core, const CoreStep &step) {
    Pipe &pipe = core.pipes[step.pipe];
    if (pipe.issued < pipe.depth) return true;
    const uint64_t oldest = pipe.issued - pipe.depth;
    if (oldest >= pipe.started) return false;
    core.now = std::max(core.now, pipe.taken[oldest & (pipe.taken.size() - 1)]);
    return true;
}

// One step of the scalar unit, in program order; false when something it needs has no time yet.
bool Timeline::take(Core &core, uint32_t index, const CoreStep &step) {
    const int64_t before = core.now;
    switch (step.kind) {
    case StepKind::Scalar: {
        const int64_t start = core.now + step.before;
        int64_t end = start + (step.to && !core.cold ? 0 : step.latency);
        if (step.to && core.cold && !core.follows) end = walks_->walk(step.occupy, end);
        if (step.link != kNone) {
            const Access &access = core.steps->accesses[step.link];
            memory_->look(index, access);
            end = walks_->known(index, clusters_[index], access, end);
        }
        core.now = end;
        if (step.row != kNone) put(step.row, start, start, end, Stall::None);
        if (step.event) signal(step.row, end);
        return true;
    }
    case StepKind::ScalarSet: {
        const int64_t start = core.now + step.before;
        core.now = start + flag_cost_;
        put(step.row, start, start, core.now, Stall::None);
        core.network.raise(core, kScalarPipe, step.to, step.event, {core.now, step.row});
        return true;
    }
    case StepKind::ScalarWait: {
        Raised raised;
        if (!core.network.take(step.pipe, kScalarPipe, step.event, raised)) return false;
        const int64_t start = core.now + step.before;
        core.now = std::max(start, raised.time) + flag_latency_;
        put(step.row, start, start, core.now, raised.time > start ? Stall::Flag : Stall::None, raised.row);
        return true;
    }
    case StepKind::BarrierAll: {
        int64_t end = core.now + step.before;
        const int64_t start = end;
        for (size_t i = 0; i < core.pipes.size(); ++i) {
            if (!drained(core, i)) return false;
            end = std::max(end, core.pipes[i].busy_until);
        }
        core.now = end + step.latency;
        if (step.row != kNone)
            put(step.row, start, start, core.now, end > start ? Stall::Barrier : Stall::None);
        return true;
    }
    case StepKind::Meet: {
        const Meeting &meeting = meetings_[step.link];
        int64_t last = -1;
        uint32_t partner = kNone;
        for (uint32_t row : meeting.rows) {
            int64_t time = 0;
            if (!signalled(row, time)) return false;
            if (time > last) {
                last = time;
                partner = row;
            }
        }
        const int64_t start = core.now + step.before, own = start + step.latency;
        const int64_t until = last + meeting.latency;
        core.now = std::max(own, until);
        put(step.row, start, start, core.now, until > own ? Stall::CrossCore : Stall::None);
        // a flag always has its partner, a plain load only one that kept it waiting
        if (writes_) records_[step.row].partner = until > own || meeting.latency ? partner : kNoPartner;
        return true;
    }
    default:
        break;
    }
    const bool follows = step.kind == StepKind::Work && step.event;
    core.now += step.before;
    const int64_t issued = core.now;
    if (!follows && !room(core, step)) {
        core.now = before;
        return false;
    }
    Pipe &pipe = core.pipes[step.pipe];
    const int64_t issue = core.now;
    // a queue that was full shows in the sign: the record keeps why it was late
    const int64_t marked = issue > issued ? -issue - 1 : issue;
    if (!follows) {
        core.now += issue_cost_;
        ++pipe.issued;
    }
    Pending &item = core.network.pending(step.pipe).next();
    item.step = step;
    item.issue = marked;
    item.after = 0;
    if (step.kind == StepKind::Transfer) item.access = core.steps->accesses[step.link];
    const PipeStep sync = sync_of(step, &item.access);
    if (sync.unit) item.after = core.network.reserve(step.pipe, sync.unit);
    if (!core.network.give_last(core, step.pipe) && writes_) records_[step.row].issue = issue;
    return true;
}

Timeline::Taken Timeline::Core::take_up(const Pending &item) {
    const CoreStep &step = item.step;
    const bool follows = step.kind == StepKind::Work && step.event;
    const int64_t issue = item.issue < 0 ? -item.issue - 1 : item.issue;
    const int64_t ready = issue + timeline.dispatch_latency_;
    Pipe &pipe = pipes[step.pipe];
    const int64_t start = std::max(ready, pipe.next_start);
    if (!follows) pipe.taken[pipe.started++ & (pipe.taken.size() - 1)] = start;
    return {issue, start,
            item.issue < 0              ? Stall::Queue
            : start > ready && !follows ? Stall::Pipe
                                        : Stall::None};
}

// The other side hands the accumulator over block by block, in the order in which this one goes over it: it
// begins with the first of its blocks, and ends no sooner than with the last. Returns that end.
int64_t Timeline::Core::wait_for_blocks(const Pending &item, int64_t &start) {
    const PipeStep step = step_of(item);
    int64_t end = 0;
    if (!step.unit) return end;
    network.each_handed(step, [&](const UnitUse &had, const Raised &raised) {
        auto handed_at = [&](int64_t block) {
            return raised.begin + (raised.time - raised.begin) * (block - had.first + 1) / had.count;
        };
        const int64_t first = std::max(step.unit.first, had.first);
        const int64_t last = int64_t(std::min(step.unit.end(), had.end())) - 1;
        start = std::max(start, handed_at(first));
        end = std::max(end, handed_at(last) + item.step.latency / step.unit.count);
    });
    return end;
}

bool Timeline::Core::work(const Pending &item) {
    const CoreStep &step = item.step;
    if (step.kind == StepKind::Transfer) return submit(item);
    Pipe &pipe = pipes[step.pipe];
    auto [issue, start, stall] = take_up(item);
    const int64_t taken = start, last = wait_for_blocks(item, start);
    const int64_t end = std::max(start + step.latency, last);
    pipe.next_start = std::max(start + step.occupy, end - step.latency + step.occupy);
    pipe.busy_until = std::max(pipe.busy_until, end);
    if (start > taken) stall = Stall::Flag;
    if (stall == Stall::None) stall = static_cast<Stall>(step.to);
    timeline.put(step.row, issue, start, end, stall);
    const UnitUse unit = step_of(item).unit;
    if (unit.flips) network.flip(*this, step.pipe, unit, {end, step.row, start});
    return true;
}

bool Timeline::Core::submit(const Pending &item) {
    const CoreStep &step = item.step;
    const Access &access = item.access;
    Pipe &pipe = pipes[step.pipe];
    const uint64_t under_way = pipe.submitted - pipe.ended;
    if ((access.turn == Turn::Follows && under_way) || (access.in_flight && under_way >= access.in_flight)) {
        pipe.full = true;
        return false;
    }
    auto [issue, start, stall] = take_up(item);
    const int64_t taken = start, last = wait_for_blocks(item, start);
    if (start > taken) stall = Stall::Flag;
    pipe.held = access.turn == Turn::Holds;
    pipe.next_start = start + step.occupy;
    pipe.busy_until = std::max(pipe.busy_until, start);
    ++pipe.submitted;
    if (timeline.writes_) {
        Record &record = timeline.records_[step.row];
        record.issue = issue;
        record.start = start;
        record.stall = static_cast<uint8_t>(stall);
    }
    // of those that use the accumulator one is in flight
    pipe.flips = UnitUse::of(access.unit);
    pipe.flips_since = start;
    const int64_t latency = std::max(step.latency, last - start) - access.data;
    timeline.memory_->submit(index * kPipes + step.pipe, access, start, latency, step.row);
    return true;
}

bool Timeline::Core::set(const Pending &item, Raised &raised) {
    const CoreStep &step = item.step;
    Pipe &pipe = pipes[step.pipe];
    const auto [issue, start, stall] = take_up(item);
    pipe.next_start = start + timeline.flag_cost_;
    if (pipe.submitted != pipe.ended || !pipe.late.empty()) {
        // the flag is raised when they have ended; the pipe goes on meanwhile
        if (timeline.writes_) {
            timeline.records_[step.row].issue = issue;
            timeline.records_[step.row].stall = static_cast<uint8_t>(stall);
        }
        pipe.late.push({step, start, pipe.busy_until, pipe.submitted});
        return false;
    }
    const int64_t end = std::max(start, pipe.busy_until) + timeline.flag_cost_;
    timeline.put(step.row, issue, start, end, stall);
    pipe.busy_until = std::max(pipe.busy_until, end);
    raised = {end, step.row, 0};
    return true;
}

void Timeline::Core::waited(const Pending &item, const Raised &raised) {
    Pipe &pipe = pipes[item.step.pipe];
    const auto [issue, start, stall] = take_up(item);
    const int64_t end = std::max(start, raised.time) + timeline.flag_latency_;
    pipe.next_start = end;
    pipe.busy_until = std::max(pipe.busy_until, end);
    timeline.put(item.step.row, issue, start, end, raised.time > start ? Stall::Flag : stall, raised.row);
}

bool Timeline::Core::barrier(const Pending &item) {
    Pipe &pipe = pipes[item.step.pipe];
    if (pipe.submitted != pipe.ended) return false;
    const auto [issue, start, stall] = take_up(item);
    const int64_t end = std::max(start, pipe.busy_until) + timeline.barrier_cost_;
    timeline.put(item.step.row, issue, start, end, pipe.busy_until > start ? Stall::Barrier : stall);
    pipe.next_start = end;
    pipe.busy_until = std::max(pipe.busy_until, end);
    if (item.step.event) timeline.signal(item.step.row, timeline.flags_.take(end));
    return true;
}

void Timeline::ended(const MemorySystem::Ended &event) {
    const uint32_t index = event.channel / kPipes, number = event.channel % kPipes;
    Core &core = *cores_[index];
    Pipe &pipe = core.pipes[number];
    ++pipe.ended;
    pipe.busy_until = std::max(pipe.busy_until, event.time);
    if (writes_) {
        Record &record = records_[event.row];
        if (event.time > event.expected + 500) record.stall = static_cast<uint8_t>(Stall::Bandwidth);
        record.end = event.time;
        if (record.form == static_cast<uint8_t>(Form::Transfer))
            record.a = static_cast<uint64_t>(event.traffic.bytes / L2Cache::kSector) |
                       static_cast<uint64_t>((event.traffic.bytes - event.traffic.hits) / L2Cache::kSector)
                           << 32;
    }
    const UnitUse unit = pipe.flips;
    pipe.flips = {};
    if (event.holds || pipe.full) {
        pipe.held = pipe.full = false;
        pipe.next_start = std::max(pipe.next_start, event.time);
    }
    if (unit.flips)
        core.network.flip(core, static_cast<int>(number), unit, {event.time, event.row, pipe.flips_since});
    while (!pipe.late.empty() && pipe.late.front().after <= pipe.ended) {
        const LateSet late = pipe.late.pop();
        const int64_t end = std::max({late.start, late.busy, event.time}) + flag_cost_;
        if (writes_) {
            Record &record = records_[late.step.row];
            record.start = late.start;
            record.end = end;
        }
        pipe.busy_until = std::max(pipe.busy_until, end);
        core.network.raise(core, late.step.pipe, late.step.to, late.step.event, {end, late.step.row});
    }
    core.network.go_on(core, static_cast<int>(number));
    if (cores_.size() > 1 || whole_) ready_.push(index);
}

} // namespace insight_trace::engine
