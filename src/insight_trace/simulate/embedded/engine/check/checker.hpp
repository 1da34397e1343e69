// Reads the rows of a run that has ended and says what is wrong in it: accesses to the same bytes that
// nothing orders, bytes that nobody wrote, flags that the hardware would lose.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "../core.hpp"
#include "order.hpp"
#include "shadow.hpp"

namespace insight_trace::engine::check {

enum class Kind : uint8_t {
    Race,          // different pipes of a core
    SamePipe,      // one pipe that lets instructions overlap
    Cores,         // different cores
    Unwritten,     // a read of bytes that nobody wrote
    Unread,        // a write that nobody reads
    PastTensor,    // global memory past the end of what an argument holds
    Misaligned,    // an on-chip address that the hardware would round
    Overlap,       // a tile whose bytes another live tile has overwritten
    DoubleSet,     // an event set again before its wait
    EventId,       // an event id that the hardware cuts to three bits
    BarrierScalar, // pipe_barrier(PIPE_S)
    AtomicMix,     // an atomic store and a plain one to the same bytes
    Accumulator,   // accumulation onto an accumulator that nothing initialised
    LeftOver,      // a flag between cores that nobody took
    Scratch,       // a tile whose bytes the library's own scratch has overwritten
    NoDcci,        // a scalar store that is still in its core's cache when somebody reads it
    Overflow,      // more flags between cores under way than their counter holds
    Contract,      // what the instruction set of the chip excludes; `begin` is a Rule, `end` the value
};
enum class Severity : uint8_t { Error, Warning, Note };

struct Found {
    Kind kind;
    Severity severity;
    uint32_t first = kNoPartner, second = kNoPartner; // rows: the earlier and the later one
    uint8_t memory = 0;
    uint16_t core = 0; // whose memory
    bool first_writes = false, second_writes = false;
    uint64_t begin = 0, end = 0; // bytes that are concerned, of all times together
    uint64_t count = 1;          // how often
};

// An access that must come after an earlier one: of `thread`, `number` instructions must have ended before
// it.
struct Need {
    uint32_t row, thread, number;
};

struct Options {
    bool vector_in_order = false; // dependent vector instructions need no barrier (a5)
    // instructions of one pipe that may be under way at once: on a vector core, on a cube core
    QueueDepths depths[2] = {};
    bool memory = true; // also what is not about order
};

// What Contract findings are about.
enum class Rule : uint64_t { Core, Valid, Bursts, BurstBytes, Stride, Alignment, Product };

class Checker {
  public:
    Checker(const Records &records, const std::vector<CoreIdentity> &cores, const GlobalMemory &gm,
            const Options &options);
    // Everything found, most severe first.
    std::vector<Found> run();
    // What the run needed and had: every dependent pair that is ordered, the last of each pipe.
    const std::vector<Need> &needs() const { return needs_; }
    bool step_of(uint32_t row, Step &step) const; // false: neither touches memory nor orders anything
    const SignalBlocks &signals() const { return signals_; }
    // Touches of memory that it remembers at the end, and the bytes that they take.
    std::pair<size_t, size_t> memory() const {
        std::pair<size_t, size_t> sum{0, 0};
        for (const auto &[key, shadow] : shadows_) {
            const auto [entries, bytes] = shadow.size();
            sum.first += entries;
            sum.second += bytes;
        }
        return sum;
    }
    // Buffers of global memory that something was written to.
    const std::set<uint64_t> &written() const { return written_; }

  private:
    using Key = std::tuple<Kind, Severity, uint32_t, uint32_t, uint8_t>;

    void accesses(const Step &step, uint32_t number, const Time &before);
    void meet(const Touch &earlier, const Touch &later, const Step &step, const Time &before, uint8_t memory,
              uint16_t owner, uint64_t address, uint64_t bytes);
    void report(const Found &found);
    Shadow &shadow(uint16_t core, uint8_t memory);
    void look_at_cache(const Step &step);
    void look_for_unit_flag(const Record &r, Step &step) const;
    void look_at_contract(uint32_t row); // contract.cpp
    void look_at_address(const Step &step, const Footprint &footprint, const OperandRow &operand);
    uint32_t operand_end(uint32_t row) const;
    uint32_t repeats_of(const Record &r) const;
    bool is_atomic(const Record &r) const;
    bool partly_overlap(uint32_t one, uint32_t other) const;
    uint16_t owner_of(const Step &step, const Footprint &footprint) const;
    void need(const Touch &earlier, const Step &step);
    Severity same_pipe_severity(const Touch &earlier, const Step &step) const;

    const Records &records_;
    const std::vector<CoreIdentity> cores_;
    const GlobalMemory &gm_;
    const Options options_;
    SignalBlocks signals_;
    std::map<std::pair<uint16_t, uint8_t>, Shadow> shadows_;
    std::map<Key, Found> found_;
    std::vector<Need> needs_;
    std::set<std::pair<uint32_t, uint32_t>> racing_; // pipes whose instructions were found out of order
    std::vector<uint8_t> site_writes_, site_read_;   // by site: it writes on-chip memory; somebody reads that
    std::set<uint64_t> written_;
    struct Dirty {
        uint16_t core;
        uint32_t row;
    };
    std::unordered_map<uint64_t, Dirty> dirty_; // lines of global memory with a store in a core's cache
    std::vector<uint8_t> tile_told_;            // by tile: its valid size was looked at
};

} // namespace insight_trace::engine::check
