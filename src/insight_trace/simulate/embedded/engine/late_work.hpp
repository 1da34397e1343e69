// What the pipes of a core do, in an order made up within what the synchronisation allows.
//
// A run that perturbs the order issues instructions when the kernel does, so that times and rows stay as they
// are, and does their arithmetic later: each op waits in the queue of its pipes with the flags and barriers
// around it, and queues go on at random. What the scalar unit waits for has been done when it goes on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <random>

#include "core.hpp"

namespace insight_trace::engine {

// A copy or a fill that a kernel issues itself (raw.cpp).
void perform(Core &core, Raw which, const uint64_t *values);

class LateWork {
  public:
    LateWork(Core &core, uint64_t seed)
        : core_(core), dice_(seed * 0x9e3779b97f4a7c15ull),
          depths_(queue_depths(core.parameters, core.identity.cube)) {}

    // Ops whose instructions depend on the data are done when they are issued.
    static bool can_wait(Op op);
    // `pipes` as bits: those that the op was issued to.
    void op(uint32_t pipes, Op op, const Operands &operands);
    void raw(uint32_t pipes, Raw which, const uint64_t *values);
    void set(PipeId from, PipeId to, int event);
    void wait(PipeId from, PipeId to, int event);
    void barrier(PipeId pipe);
    void some();             // a few steps, or none
    void drain(PipeId pipe); // all that the pipe was given
    void drain();            // all that every pipe was given

    // As a follower of the pipes (pipe_network.hpp), one that chooses who goes on: a flag is there or not.
    struct Task {
        uint32_t pipes;
        std::function<void()> work;
    };
    struct Item {
        std::shared_ptr<Task> task; // of work
        PipeStep sync;
    };
    struct Token {};
    static constexpr bool kGoesOn = false;
    PipeStep step_of(const Item &item) const { return item.sync; }
    bool ready(const Item &) const { return true; }
    bool work(const Item &item);
    bool set(const Item &, Token &) { return true; }
    void waited(const Item &, Token) {}
    bool barrier(const Item &) { return true; }

  private:
    void put(uint32_t pipes, std::function<void()> work);
    void push(PipeId pipe, Sync kind, PipeId from = PipeId::S, PipeId to = PipeId::S, int event = 0);
    bool overtakes(int pipe) const; // transfers of one pipe may end in any order
    bool step(int pipe);            // false: it has nothing that can be done now
    bool step_anywhere();
    void need_progress();

    Core &core_;
    std::mt19937_64 dice_;
    const QueueDepths depths_;
    PipeNetwork<LateWork> network_;
};

} // namespace insight_trace::engine
