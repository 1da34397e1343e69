// What must have ended before an instruction starts: program order of a pipe, flags, barriers, waits of the
// scalar unit, flags between cores, and signals in global memory.
//
// A time is a vector with one count per pipe of every core: of that pipe, so many instructions are known to
// have ended. A pipe takes instructions up in order but lets them overlap, so the count of a pipe in its own
// time grows by a barrier or a round trip of flags only, never by issue alone.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "../core.hpp"
#include "signals.hpp"

namespace insight_trace::engine::check {

using Time = std::vector<uint32_t>;

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
    UnitUse unit; // of work of the cube unit or FIXPIPE on an accumulator
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
    Order(const std::vector<CoreIdentity> &cores, const SignalBlocks &signals, Visit work);

    void add(const Step &step); // in program order of each core, waits of the scalar unit after their sets
    void finish();

    static size_t thread(uint16_t core, PipeId pipe) {
        return size_t(core) * kPipes + static_cast<size_t>(pipe);
    }
    const std::vector<DoubleSet> &double_sets() const { return double_sets_; }
    const std::vector<CrossFault> &cross_faults() const { return cross_faults_; } // when it is finished

  private:
    using Shared = std::shared_ptr<const Time>;
    struct Pending {
        Step step;
        Shared issued;       // what the scalar unit knew when it handed the instruction over
        uint32_t after = 0;  // how many instructions of its own it had been through
        uint64_t handed = 0; // PipeStep::after
    };
    struct Pipe {
        Time time;
        uint32_t count = 0; // instructions so far
        Shared seen;        // the scalar unit's time that is part of `time` already
    };
    struct Raised {
        Shared time;
        uint32_t row = 0;
    };
    struct FlagState {
        uint32_t wait_number = 0, last_set = 0;
        bool ever_set = false;
    };
    using FlagKey = std::tuple<uint16_t, PipeId, PipeId, int>;
    struct Core { // follows its pipes (pipe_network.hpp): a flag carries what is known to have ended
        using Item = Pending;
        using Token = Raised;
        static constexpr bool kGoesOn = true;
        Order &order;
        PipeNetwork<Core> network;
        Shared issued; // what the scalar unit knows, made anew when it learns something

        explicit Core(Order &order_) : order(order_) {}
        PipeStep step_of(const Pending &item) const;
        bool ready(const Pending &item);
        bool work(const Pending &item);
        bool set(const Pending &item, Raised &raised);
        void waited(const Pending &item, const Raised &raised);
        bool barrier(const Pending &item);
    };

    Pipe &pipe(uint16_t core, PipeId id) { return pipes_[thread(core, id)]; }
    const Shared &scalar_time(uint16_t core);
    void learn(const Step &step, const Time &time);
    void learn_by_scalar(uint16_t core, const Time &time);
    void core_set(Pipe &on, const Step &step);
    void visit(Pipe &on, const Step &step);
    Shared ended(const Pipe &on, size_t thread) const;

    void publish(Time &place, const Pipe &on, size_t which);
    const std::vector<CoreIdentity> cores_;
    const SignalBlocks &signals_;
    Visit work_;
    std::vector<Pipe> pipes_;
    std::vector<std::unique_ptr<Core>> networks_;
    std::map<FlagKey, FlagState> flags_;
    CoreFlags<Raised> between_cores_;
    std::unordered_map<uint64_t, Time> published_;
    std::unordered_map<uint64_t, Time> sent_; // by the block of a signal
    std::vector<DoubleSet> double_sets_;
    std::vector<CrossFault> cross_faults_;
};

void join(Time &into, const Time &other);

} // namespace insight_trace::engine::check
