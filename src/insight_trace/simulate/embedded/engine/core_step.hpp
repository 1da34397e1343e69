// What a core did, without times: the timeline (timeline.hpp) places the steps of all cores together.
#pragma once

#include <cstdint>
#include <vector>

#include "mapped.hpp"

namespace insight_trace::engine {

// When a transfer may begin beside others of its pipe.
enum class Turn : uint8_t {
    Free,    // after the one before it has begun
    Follows, // after the one before it has ended
    Holds,   // as Free, and the pipe takes up nothing before it has ended
};

// Bytes of global memory that an instruction reads or writes: `bursts` pieces, `step` bytes apart.
struct Access {
    uint64_t address = 0;
    int64_t step = 0;
    int64_t data = 0; // thousandths of a cycle on the pipe's data channel, with nobody else on the chip
    uint32_t bursts = 0;
    uint32_t burst_bytes = 0;
    uint16_t weight = 1000; // thousandths: what its bytes take of the chip's rates, more off their alignment
    // thousandths of a cycle on the channel, at least: for each piece, for each that L2 does not hold
    uint16_t piece = 0, missed_piece = 0;
    bool write = false;
    bool atomic = false;  // adds to what is there
    bool past_l2 = false; // what it does not find there stays out of it
    bool to_l1 = false;   // loads of the cube core, which reach a little less of the chip's rate
    Turn turn = Turn::Free;
    uint8_t in_flight = 0; // transfers that its pipe has under way at most; 0: no limit
    uint32_t unit = 0;     // of the accumulator, as UnitUse packs it
};
static_assert(sizeof(Access) == 48, "one per transfer of a run");

enum class StepKind : uint8_t {
    Scalar,     // the scalar unit works `latency`
    Work,       // an instruction of a pipe
    Transfer,   // the same, with an access
    Set,        // a flag, by a pipe
    Wait,       // for a flag, by a pipe
    Barrier,    // of one pipe
    ScalarSet,  // a flag, by the scalar unit
    ScalarWait, // for a flag, by the scalar unit
    BarrierAll, // of all pipes
    Meet,       // the scalar unit waits for signals of other cores
};

constexpr uint32_t kNone = 0xffffffffu;

struct CoreStep {
    uint32_t row;    // of its record
    uint32_t before; // thousandths that the scalar unit works before it
    StepKind kind;
    uint8_t pipe;
    uint8_t to; // of a flag; of Scalar: 1 when it waits for code
    // of a flag; of Work: 1 when the pipe itself goes on to it; of Scalar, Barrier: 1 when other cores may
    // wait for it
    uint8_t event;
    uint32_t link;  // Transfer, Scalar: its access; Work: its use of the accumulator; Meet: the meeting
    int64_t occupy; // of code that Scalar waits for: how many pages of it are new
    int64_t latency;
};
static_assert(sizeof(CoreStep) == 32, "one per instruction of a run");

// Signals that a core waits for: it goes on `latency` after the last of them.
struct Meeting {
    std::vector<uint32_t> rows; // the instructions that signal
    int64_t latency = 0;
};

struct CoreSteps {
    Mapped<CoreStep> list{""};
    Mapped<Access> accesses{""};
    void release() const {
        list.release();
        accesses.release();
    }
};

} // namespace insight_trace::engine
