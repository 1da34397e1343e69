// The steps of all cores on one axis of time, with the memory that they share.
//
// Cores run one after the other on the host and leave their steps without times (clock.hpp). Here all of them
// go on together: a transfer ends when the memory system says so, and what waits for it goes on then. A core
// that has the chip for itself is followed while it runs; several are placed when all have ended.
#pragma once

#include <array>
#include <cstdint>

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "clock.hpp"
#include "memory_system.hpp"
#include "records.hpp"
#include "core_step.hpp"
#include "turns.hpp"

namespace insight_trace::engine {

struct TimelineCore {
    const CoreSteps *steps;
    uint16_t index;
    int32_t block;
    bool cube;
};

class Timeline {
  public:
    Timeline(const Parameters &parameters, Records &records, const std::vector<TimelineCore> &cores,
             const std::vector<Meeting> &meetings, const std::vector<Region> &buffers);
    ~Timeline();
    // The flags and barriers of these rows do not happen.
    void leave_out(const std::vector<uint32_t> &rows) {
        left_out_.assign(records_.size(), false);
        for (uint32_t row : rows) left_out_[row] = true;
    }
    // From here on steps are placed, with this L2; without `write_records` they only leave their lines there.
    void begin(L2Cache &cache, bool write_records);
    // One core that still runs: as far as its steps are known. Those may be forgotten then.
    void go_on();
    void forget_steps() { cores_[0]->next = 0; }
    // Every step of every core. `cut_off`: the cores stopped anywhere, and their last steps may wait for
    // ever.
    void finish(bool cut_off = false);
    int64_t now(uint32_t core) const { return cores_[core]->now; } // of its scalar unit
    // When a core signalled by this row, in thousandths: of one core's timeline that knows nothing of others.
    int64_t reach(uint32_t row);
    // Asked for signals of cores that are not here.
    std::function<int64_t(uint32_t row)> elsewhere;

    struct CoreTime {
        int64_t start = 0, end = 0; // whole cycles
    };
    const std::vector<CoreTime> &times() const { return times_; }
    const L2Traffic &traffic() const { return traffic_; }
    int waves() const { return waves_; }
    bool more_blocks_than_cores_wait() const { return overfull_; }

  private:
    struct Raised { // a flag, or blocks of the accumulator that are handed over
        int64_t time = 0;
        uint32_t row = kNone;
        int64_t begin = 0; // of blocks: when the instruction began that had them
    };
    struct LateSet { // a flag whose pipe has transfers in flight
        CoreStep step;
        int64_t start, busy;
        uint64_t after; // how many transfers of the pipe must have ended
    };
    struct Pending { // issued, and kept by what its pipe waits for
        CoreStep step;
        int64_t issue;
        uint64_t after; // PipeStep
        Access access;  // of a transfer
    };
    struct Pipe {
        int64_t next_start = 0, busy_until = 0;
        std::vector<int64_t> taken; // when the last ones left the queue, as many as it holds, in a ring
        size_t depth = 1;
        uint64_t issued = 0, started = 0;
        uint64_t submitted = 0, ended = 0; // transfers
        bool held = false;                 // by a transfer that lets nothing pass
        bool full = false;                 // a transfer waits until one of those in flight has ended
        Fifo<LateSet> late;
        UnitUse flips; // of the transfer in flight
        int64_t flips_since = 0;
    };
    struct Taken { // an instruction that its pipe takes up
        int64_t issue, start;
        Stall stall;
    };
    struct Core { // follows its pipes (pipe_network.hpp): a flag carries its time
        using Item = Pending;
        using Token = Raised;
        static constexpr bool kGoesOn = true;
        Timeline &timeline;
        uint32_t index;
        const CoreSteps *steps;
        uint32_t next = 0; // step
        int64_t now = 0;
        bool begun = false, done = false;
        bool cold = false;    // the first block of its core: the instruction cache is empty
        bool follows = false; // another one of its cluster runs the same code
        int32_t block;
        std::array<Pipe, kPipes> pipes;
        PipeNetwork<Core> network;

        Core(Timeline &timeline_, uint32_t index_, const TimelineCore &given);
        PipeStep step_of(const Pending &item) const {
            PipeStep step = sync_of(item.step, &item.access);
            step.after = item.after;
            return step;
        }
        bool ready(const Pending &item) const { return !pipes[item.step.pipe].held; }
        bool work(const Pending &item);
        bool set(const Pending &item, Raised &raised);
        void waited(const Pending &item, const Raised &raised);
        bool barrier(const Pending &item);
        Taken take_up(const Pending &item);
        int64_t wait_for_blocks(const Pending &item, int64_t &start);
        bool submit(const Pending &item);
    };

    void begin_block(int64_t at, bool cold);
    void take_steps(uint32_t core, uint32_t last_row = kNone);
    bool take(Core &core, uint32_t index, const CoreStep &step); // false: not yet
    bool room(Core &core, const CoreStep &step);
    void ended(const MemorySystem::Ended &ended);
    void signal(uint32_t row, int64_t time);
    bool signalled(uint32_t row, int64_t &time) {
        auto found = signalled_.find(row);
        if (found == signalled_.end()) {
            if (!elsewhere || records_[row].core == given_[0].index) return false;
            time = elsewhere(row);
            return true;
        }
        time = found->second;
        return true;
    }
    static bool drained(const Core &core, size_t pipe) {
        return core.network.pending(static_cast<int>(pipe)).empty() &&
               core.pipes[pipe].submitted == core.pipes[pipe].ended;
    }
    void put(uint32_t row, int64_t issue, int64_t start, int64_t end, Stall stall, uint32_t partner = kNone) {
        if (!writes_) return;
        Record &record = records_[row];
        record.issue = issue;
        record.start = start;
        record.end = end;
        record.stall = static_cast<uint8_t>(stall);
        if (partner != kNone) record.partner = partner;
    }

    const Parameters &parameters_;
    Records &records_;
    const std::vector<TimelineCore> &given_;
    const std::vector<Meeting> &meetings_;
    const std::vector<Region> &buffers_;
    std::vector<bool> left_out_; // by row; empty: none
    int64_t issue_cost_, flag_cost_, flag_latency_, barrier_cost_, dispatch_latency_, start_;
    MemoryRates rates_;
    int64_t skew_, next_block_;
    int cube_cores_;

    // of one run
    std::vector<std::unique_ptr<Core>> cores_;
    std::vector<size_t> clusters_; // by core: blocks of one vector core come two to a cluster
    std::unique_ptr<PageWalks> walks_;
    std::unique_ptr<MemorySystem> memory_;
    std::vector<std::vector<uint32_t>> blocks_;       // cores of each
    size_t begun_ = 0;                                // blocks
    std::vector<int> left_;                           // cores of a block that run
    std::unordered_map<uint32_t, int64_t> signalled_; // by row: when
    Turns flags_;                                     // between cores: one unit passes them on
    Fifo<uint32_t> ready_;                            // cores to go on with
    bool writes_ = false;
    bool whole_ = false;  // every step is known
    bool taking_ = false; // steps, right now
    size_t done_ = 0;     // cores
    std::vector<CoreTime> times_;
    L2Traffic traffic_;
    int waves_ = 1;
    bool overfull_ = false;
};

} // namespace insight_trace::engine
