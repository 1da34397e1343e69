// The program of one core as it issues it: steps without times, which the timeline (timeline.hpp) places.
//
// Flags are counted here as well, so that a core that can never go on ends at the instruction where it stops:
// a pipe that waits for a flag nobody has set yet keeps what comes after it until the set arrives.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "core_step.hpp"
#include "failure.hpp"
#include "fifo.hpp"
#include "parameters.hpp"
#include "record.hpp"

namespace insight_trace::engine {

constexpr int kPipes = static_cast<int>(PipeId::COUNT);
constexpr int kEvents = 16;

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
};

// The run has ended while a core was busy: whatever it does next, it stops there.
inline std::atomic<bool> run_is_over{false};

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
    // The scalar unit works for `own` at least, and until the signals of a meeting are there.
    uint32_t meet(const Record &record, int64_t own, uint32_t meeting);
    // A step of before, as another row; not all kinds can be (can_repeat).
    uint32_t repeat(const Record &record, CoreStep step, const Access *access, Site at);
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
    void take_over(const CoreStep *steps, size_t count, uint32_t row, uint32_t meeting);
    void take_over(const Access *accesses, size_t count);
    void take_over(const LeftOver &flag) {
        flags_[static_cast<size_t>(flag.from)][static_cast<size_t>(flag.to)]
              [static_cast<size_t>(flag.event)] = {static_cast<uint32_t>(flag.count), flag.row};
    }

  private:
    struct Pending { // an instruction behind a wait
        CoreStep step;
        Site at;
    };
    struct Pipe {
        size_t queued = 0; // of those behind a wait, what the scalar unit issued
        Fifo<Pending> pending;
    };
    struct Flag { // sets that no wait has consumed yet
        uint32_t count = 0;
        uint32_t row = 0; // of the last one
    };

    void keep(const CoreStep &step);
    uint32_t enqueue(const Record &record, CoreStep &step, Site at);
    bool go_on(const CoreStep &step); // false: it must wait for a flag
    void raise(const CoreStep &set);
    void resume(int pipe);
    void require_no_wait(PipeId pipe, Site at) const;
    [[noreturn]] void deadlock(PipeId pipe, Site at, const std::string &before = "") const;
    std::string chain(PipeId pipe, Site &cause) const;
    Flag &flag(int from, int to, int event) { return flags_[from][to][event]; }

    Records &records_;
    CoreSteps steps_;
    int64_t work_ = 0;
    uint64_t placings_ = 0;
    const int64_t issue_cost_, barrier_cost_;
    std::array<size_t, kPipes> depth_; // of each pipe's queue
    Timeline *timeline_ = nullptr;
    std::array<Pipe, kPipes> pipes_;
    std::array<std::array<std::array<Flag, kEvents>, kPipes>, kPipes> flags_;
};

} // namespace insight_trace::engine
