// Global memory as all cores of a chip share it: L2, and HBM behind it.
//
// An access has a data phase on the channel of its pipe. Phases that run at the same moment share the rates
// of L2 and of HBM, each as much as the others unless it wants less; reads and writes are in one pool. Times
// in thousandths of a cycle, rates in bytes per 1000 cycles: integers, so that every machine gives the same.
#pragma once

#include <cstdint>

#include <queue>
#include <unordered_map>
#include <vector>

#include "fifo.hpp"
#include "l2_cache.hpp"
#include "page_walks.hpp"
#include "parameters.hpp"
#include "core_step.hpp"

namespace insight_trace::engine {

struct MemoryRates {
    int64_t hbm = 0, hbm_to_l1 = 0; // of the chip; 0: no limit
    int64_t l2 = 0, l2_to_l1 = 0;
    int64_t miss = 0;      // more latency of an access that finds something missing
    int64_t shared = 1000; // what a byte takes of L2's rate that several cores read, thousandths
    int64_t core = 0;      // of one core, its channels together
    int64_t atomic = 0;    // how long a block is taken by an access that adds to it
};

class MemorySystem {
  public:
    // A channel's number is that of its core x `channels_each` + its own.
    // `clusters` says to which each core belongs.
    MemorySystem(const MemoryRates &rates, L2Cache &cache, PageWalks &walks,
                 const std::vector<size_t> &clusters, uint32_t channels_each);

    // An access that is taken up at `start` and whose data phase begins `latency` later at the earliest,
    // after those that the channel was given before. `row` comes back when it has ended.
    void submit(uint32_t channel, const Access &access, int64_t start, int64_t latency, uint32_t row);
    // An access of the scalar unit, which takes none of the rates.
    void look(uint32_t core, const Access &access);

    struct Ended {
        uint32_t channel, row;
        int64_t time;
        int64_t expected; // with nobody else on the chip, and everything in L2
        bool holds;
        L2Traffic traffic;
    };
    // The next access that ends; false when none is in flight. Later submissions never start before `time`.
    bool next(Ended &ended);
    int64_t now() const { return now_; }
    bool idle() const { return events_.empty() && flows_.empty(); }
    const L2Traffic &total() const { return total_; }

  private:
    struct Waiting { // taken up, not yet in its data phase
        Access access;
        int64_t begin; // once it is looked up, the earliest; before, its latency
        int64_t expected;
        uint32_t row;
        L2Traffic traffic;
    };
    struct Channel {
        Fifo<Waiting> queue;  // in order
        size_t looked_up = 0; // of them, the first ones
        bool busy = false;
    };
    struct Event { // a look-up at `time`, or a data phase that may begin
        int64_t time;
        uint64_t order;
        uint32_t channel;
        bool looks;
        bool operator>(const Event &other) const {
            return time != other.time ? time > other.time : order > other.order;
        }
    };
    struct Flow { // a data phase
        uint32_t channel;
        uint32_t row;
        bool holds;
        int64_t expected;
        int64_t left;  // millionths of a byte, when its rate was set
        int64_t since; // then
        int64_t end;   // at that rate
        int64_t wants; // rate
        int64_t rate;  // what it gets
        int64_t given; // what it will get
        int64_t l2;    // what a byte of it takes of L2's rate, thousandths
        int64_t hbm;   // what a byte of it takes of HBM's rate, thousandths
        L2Traffic traffic;
    };
    int64_t take_turns(const Access &access, int64_t begin);
    void look_up(uint32_t channel, int64_t time);
    void try_begin(uint32_t channel);
    int64_t data_phase(const Access &access, const L2Traffic &traffic) const;
    void begin(uint32_t channel, const Waiting &waiting);
    void count(const Flow &flow, int64_t sign);
    bool crowded() const;
    void share();
    void share_ports();
    void settle(Flow &flow);
    int64_t fair(int64_t limit, int64_t Flow::*weight) const;

    MemoryRates rates_;
    L2Cache &cache_;
    PageWalks &walks_;
    const std::vector<size_t> &clusters_; // by core
    uint32_t each_;
    std::vector<Channel> channels_;
    std::vector<int64_t> asked_; // by core: what its flows want together
    int64_t full_ports_ = 0;     // cores that want more than their port gives
    int64_t l2_asked_ = 0, hbm_asked_ = 0;
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
    uint64_t order_ = 0;
    std::vector<Flow> flows_;
    int64_t now_ = 0;
    L2Traffic total_;
    std::unordered_map<uint64_t, int64_t> turns_; // by block of L2 that cores add to: when it is free
    bool changed_ = false;                        // flows came or went where not all have what they want
    bool free_ = true;                            // all have what they want
};

} // namespace insight_trace::engine
