// The program of one core as it issues it: steps without times, which the timeline (timeline.hpp) places.
//
// Its pipes are followed here as well (pipe_network.hpp), so that a core that can never go on ends at the
// instruction where it stops.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "core_step.hpp"
#include "failure.hpp"
#include "parameters.hpp"
#include "pipe_network.hpp"
#include "record.hpp"

namespace insight_trace::engine {

// Why an instruction started late; values as model.Stall.
enum class Stall : uint8_t { None, Pipe, Queue, Flag, Barrier, Bank, Bandwidth, CrossCore };

// What an instruction takes, in thousandths of a cycle.
struct Cost {
    int64_t occupy = 1000;  // until the pipe may start the next one
    int64_t latency = 1000; // until its result is there
    int64_t channel = 0;    // of that, time on the pipe's data channel, which transfers in flight share
    Stall stretched = Stall::None;
    bool follows = false;           // the pipe itself goes on to it: the scalar unit does not issue it
    const Access *access = nullptr; // what it reads or writes in global memory
    UnitUse unit;                   // of the accumulator
};

// The run has ended while a core was busy: whatever it does next, it stops there.
inline std::atomic<bool> run_is_over{false};

// What a step of a pipe is to the network of pipes; `access` is that of a transfer.
inline PipeStep sync_of(const CoreStep &step, const Access *access) {
    PipeStep sync;
    sync.pipe = step.pipe;
    switch (step.kind) {
    case StepKind::Set:
        sync.kind = Sync::Set;
        sync.from = step.pipe;
        sync.to = step.to;
        sync.event = step.event;
        break;
    case StepKind::Wait:
        sync.kind = Sync::Wait;
        sync.from = step.to;
        sync.to = step.pipe;
        sync.event = step.event;
        break;
    case StepKind::Barrier:
        sync.kind = Sync::Barrier;
        break;
    case StepKind::Transfer:
        sync.unit = UnitUse::of(access->unit);
        break;
    default:
        if (step.link != kNone) sync.unit = UnitUse::of(step.link);
        break;
    }
    return sync;
}

class Records;  // where rows live (records.cpp)
class Timeline; // what gives them times

class Clock {
  public:
    Clock(const Parameters &parameters, Records &records, bool cube);

    // Each returns the row of the new record.
    uint32_t issue(PipeId pipe, const Record &record, const Cost &cost, Site at);
    uint32_t set_flag(PipeId from, PipeId to, int event, const Record &record, Site at);
    uint32_t wait_flag(PipeId from, PipeId to, int event, const Record &record, Site at);
    uint32_t barrier(PipeId pipe, const Record &record, Site at);
    // An instruction that ends when all earlier work of its pipe has ended, and that other cores wait for.
    uint32_t signal(PipeId pipe, const Record &record, Site at);
    // A scalar store that other cores may wait for.
    uint32_t store(const Record &record, int64_t milli);
    // The scalar unit works for `milli` without issuing anything.
    void scalar_work(int64_t milli) { work_ += milli; }
    // It waits for code, unless the core has run the kernel before.
    void fetch(int64_t milli, int64_t pages);
    // The scalar unit works for `own` at least, and until the signals of a meeting are there.
    uint32_t meet(const Record &record, int64_t own, uint32_t meeting);
    // A step of before, as another row, its access `moved` bytes; not all kinds can be (can_repeat).
    uint32_t repeat(const Record &record, const CoreStep &known, const Access *access, uint64_t moved,
                    Site at);
    static bool can_repeat(const CoreStep &step);
    // The core has ended: pipes that still wait are a deadlock.
    void finish(Site at);

    const CoreSteps &steps() const { return steps_; }
    int64_t work() const { return work_; }          // of the scalar unit since the last step
    uint64_t placings() const { return placings_; } // how often steps were placed and forgotten
    // Steps get their times as they come, not when the run has ended.
    void place_on(Timeline *timeline) { timeline_ = timeline; }
    static int64_t whole(int64_t milli) { return (milli + 500) / 1000; }

    struct LeftOver {
        PipeId from, to;
        int event;
        int count;
        uint32_t row; // of the last set
    };
    std::vector<LeftOver> unused_flags() const;
    // What a clock in another process kept, whose first row is `row` here and whose first meeting `meeting`.
    void take_over(CoreStep *steps, size_t count, uint32_t row, uint32_t meeting);
    void take_over(Access *accesses, size_t count) { steps_.accesses.look_at(accesses, count); }
    void forget_steps() {
        steps_.list.forget();
        steps_.accesses.forget();
    }
    void take_over(const LeftOver &flag) {
        for (int i = 0; i < flag.count; ++i)
            network_.raise(*this, static_cast<int>(flag.from), static_cast<int>(flag.to), flag.event,
                           flag.row);
    }

    // As a follower of its pipes (pipe_network.hpp): a flag carries the row of its set.
    struct Item {
        CoreStep step;
        Site at;
        PipeStep sync;
    };
    using Token = uint32_t;
    static constexpr bool kGoesOn = true;
    PipeStep step_of(const Item &item) const { return item.sync; }
    bool ready(const Item &) const { return true; }
    bool work(const Item &item) {
        if (item.sync.unit.flips) network_.flip(*this, item.step.pipe, item.sync.unit, item.step.row);
        return true;
    }
    bool set(const Item &item, Token &row) {
        row = item.step.row;
        return true;
    }
    void waited(const Item &, Token) {}
    bool barrier(const Item &) { return true; }

  private:
    // The step that is kept next, to be made where it will lie.
    CoreStep &next_step();
    void keep();
    uint32_t keep(const Record &record, CoreStep &step);
    uint32_t enqueue(const Record &record, CoreStep &step, const Access *access, Site at);
    bool goes_on(const PipeStep &sync, uint32_t row);
    size_t queued(int pipe) const; // of those behind a wait, what the scalar unit issued
    void require_no_wait(PipeId pipe, Site at) const;
    [[noreturn]] void deadlock(PipeId pipe, Site at, const std::string &before = "") const;
    std::string chain(PipeId pipe, Site &cause) const;

    Records &records_;
    CoreSteps steps_;
    int64_t work_ = 0;
    uint64_t placings_ = 0;
    const int64_t issue_cost_, barrier_cost_;
    const QueueDepths depth_;
    Timeline *timeline_ = nullptr;
    PipeNetwork<Clock> network_;
};

} // namespace insight_trace::engine
