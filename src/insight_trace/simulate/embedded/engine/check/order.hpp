// What must have ended before an instruction starts: program order of a pipe, flags, barriers, waits of the
// scalar unit, flags between cores, and signals in global memory.
//
// A time is a vector with one count per pipe of every core: of that pipe, so many instructions are known to
// have ended. A pipe takes instructions up in order but lets them overlap, so the count of a pipe in its own
// time grows by a barrier or a round trip of flags only, never by issue alone.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "../core.hpp"

namespace insight_trace::engine::check {

using Time = std::vector<uint32_t>;

constexpr int kPipesPerCore = static_cast<int>(PipeId::COUNT);

enum class StepKind : uint8_t {
    Nothing, // keeps its number on the pipe
    Work,
    Set,
    Wait,
    Barrier,
    CrossSet, // to cores of the same group; `mode` says which
    CrossWait,
    IntraSet, // one to one inside a cluster
    IntraWait,
    Publish, // a scalar store to global memory that others look at
    Observe, // a scalar load of such a place
};

struct Step {
    uint32_t row;
    uint16_t core;
    PipeId pipe;
    StepKind kind;
    PipeId from = PipeId::S, to = PipeId::S;
    int event = 0;
    int mode = 0;
    uint64_t address = 0;
    // of work of the cube unit or FIXPIPE on an accumulator: its unit flag, and the bytes from `address` on
    uint32_t unit_flag = 0, unit_bytes = 0;
};

// A flag that the hardware would lose, because it has one bit: set again before its wait was sure to be over.
struct DoubleSet {
    uint32_t first, second;
    bool certain; // the wait comes later in the program, or never
};

// A flag between cores that nobody took, or that was raised more often than its counter can hold.
struct CrossFault {
    uint32_t row; // the set
    uint32_t count;
    bool overflow;
};

class Order {
  public:
    // `work` is called for every step, in an order that no wait contradicts, with the number of the
    // instruction on its pipe and the time before it.
    using Visit = std::function<void(const Step &step, uint32_t number, const Time &before)>;
    Order(const std::vector<CoreIdentity> &cores, Visit work);

    void add(const Step &step); // in program order of each core, waits of the scalar unit after their sets
    void finish();

    static size_t thread(uint16_t core, PipeId pipe) {
        return size_t(core) * kPipesPerCore + static_cast<size_t>(pipe);
    }
    const std::vector<DoubleSet> &double_sets() const { return double_sets_; }
    const std::vector<CrossFault> &cross_faults() const { return cross_faults_; } // when it is finished

  private:
    using Shared = std::shared_ptr<const Time>;
    struct Pending {
        Step step;
        Shared issued;      // what the scalar unit knew when it handed the instruction over
        uint32_t after = 0; // how many instructions of its own it had been through
    };
    struct Pipe {
        Time time;
        uint32_t count = 0; // instructions so far
        Shared seen;        // the scalar unit's time that is part of `time` already
        std::deque<Pending> pending;
    };
    struct Raised {
        Shared time;
        uint32_t row;
    };
    struct FlagState {
        std::deque<Raised> raised;
        bool waited = false; // a wait has taken the last set
        uint32_t wait_number = 0, last_set = 0;
        bool ever_set = false;
    };
    using FlagKey = std::tuple<uint16_t, PipeId, PipeId, int>;

    Pipe &pipe(uint16_t core, PipeId id) { return pipes_[thread(core, id)]; }
    const Shared &scalar_time(uint16_t core);
    void learn_by_scalar(uint16_t core, const Time &time);
    bool take_up(Pipe &on, const Pending &next);
    void drain(uint16_t core, PipeId id);
    void set(Pipe &on, const Pending &next);
    void cross_set(Pipe &on, const Step &step);
    void deliver(uint16_t core, int flag, const Raised &raised);
    void visit(Pipe &on, const Step &step);
    void wait_for_unit(Pipe &on, const Step &step);
    void flip_unit(const Pipe &on, const Step &step);
    Shared ended(const Pipe &on, size_t thread) const;
    std::deque<Raised> *crossing(const Step &step);

    const std::vector<CoreIdentity> cores_;
    Visit work_;
    std::vector<Pipe> pipes_;
    std::vector<Shared> issued_; // per core, made anew when the scalar unit learns something
    std::map<FlagKey, FlagState> flags_;
    std::map<std::pair<uint16_t, int>, std::deque<Raised>> crossed_;
    std::map<std::tuple<int, int, uint16_t>, std::deque<Raised>> arrived_;
    struct Unit {
        bool full = false; // a product is there that FIXPIPE has not taken
        Shared time;       // when it was filled, or taken
    };
    std::map<std::pair<uint16_t, uint64_t>, Unit> units_; // by core and block of its accumulator
    std::unordered_map<uint64_t, Time> published_;
    std::vector<DoubleSet> double_sets_;
    std::vector<CrossFault> cross_faults_;
};

void join(Time &into, const Time &other);

} // namespace insight_trace::engine::check
