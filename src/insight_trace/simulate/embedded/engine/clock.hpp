// The clock of one core: in-order scalar issue, finite queues per pipe, flags, barriers.
//
// Instructions arrive in program order. Each gets its times as soon as they can be known: a pipe that waits
// for a flag nobody has set yet keeps what comes after it pending until the set is scheduled. These are the
// times of a core that has the chip for itself; its steps are kept, and the timeline places them among those
// of the other cores.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "failure.hpp"
#include "fifo.hpp"
#include "parameters.hpp"
#include "record.hpp"
#include "core_step.hpp"

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

class Records; // where rows live (records.cpp)

class Clock {
  public:
    Clock(const Parameters &parameters, Records &records);

    // Each returns the row of the new record.
    uint32_t issue(PipeId pipe, Record record, const Cost &cost, Site at);
    uint32_t set_flag(PipeId from, PipeId to, int event, Record record, Site at);
    uint32_t wait_flag(PipeId from, PipeId to, int event, Record record, Site at);
    uint32_t barrier(PipeId pipe, Record record, Site at);
    // An instruction that ends when all earlier work of its pipe has ended (a flag for another core).
    uint32_t signal(PipeId pipe, Record record, Site at);
    // The scalar unit works for `milli` without issuing anything.
    void scalar_work(int64_t milli) {
        now_ += milli;
        work_ += milli;
    }
    // The scalar unit works for `own` at least, and until `until`: signals of other cores.
    uint32_t meet(Record record, int64_t own, int64_t until, uint32_t meeting);
    const CoreSteps &steps() const { return steps_; }
    // When everything that `pipe` was given has ended; the pipe must not be waiting.
    int64_t drained(PipeId pipe, Site at) const;
    int64_t now() const { return now_; }          // thousandths
    int64_t cycle() const { return whole(now_); } // whole cycles
    static int64_t whole(int64_t milli) { return (milli + 500) / 1000; }
    // All pipes have ended; flags that nobody waited for and waits that nobody ended are reported.
    void finish(Site at);

    struct LeftOver {
        PipeId from, to;
        int event;
        int count;
        uint32_t row; // of the last set
    };
    std::vector<LeftOver> unused_flags() const;

  private:
    enum class Kind : uint8_t { Work, Set, Wait, Barrier };
    struct Pending {
        uint32_t row;
        Kind kind;
        PipeId from, to;
        uint8_t event;
        Cost cost;
        Site at;
    };
    struct Pipe {
        int64_t next_start = 0; // the pipe may take up the next instruction
        int64_t busy_until = 0; // everything taken up so far has ended
        int64_t channel_free = 0;
        std::vector<int64_t> taken; // ring: when the last `depth` instructions left the queue
        uint64_t issued = 0;        // handed over by the scalar unit
        uint64_t started = 0;       // taken up
        Fifo<Pending> pending;
    };
    // Sets that no wait has consumed yet: time, row. A core has a thousand of these, nearly all empty.
    using Flag = Fifo<std::pair<int64_t, uint32_t>>;

    void keep(StepKind kind, PipeId pipe, uint32_t row, const Cost &cost, PipeId to = PipeId::S,
              int event = 0);
    uint32_t enqueue(PipeId pipe, Record &record, const Pending &work, Site at);
    bool schedule(PipeId pipe, const Pending &work); // false: it must wait for a flag
    void resume(PipeId pipe);
    void require_queue_room(PipeId pipe, Site at);
    [[noreturn]] void deadlock(PipeId pipe, Site at, const std::string &before = "") const;
    std::string chain(PipeId pipe, Site &cause) const;
    Flag &flag(PipeId from, PipeId to, int event) {
        return flags_[static_cast<int>(from)][static_cast<int>(to)][event];
    }

    Records &records_;
    CoreSteps steps_;
    int64_t now_ = 0;
    int64_t work_ = 0; // of the scalar unit since the last step
    int64_t issue_cost_, flag_cost_, flag_latency_, barrier_cost_, dispatch_latency_;
    std::array<Pipe, kPipes> pipes_;
    std::array<std::array<std::array<Flag, kEvents>, kPipes>, kPipes> flags_;
    size_t depth_;
};

} // namespace insight_trace::engine
