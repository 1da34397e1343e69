// What the chips of one node share beside their memories: a turn, so that one core of all chips runs at a
// time and its atomics are atomic, and how they learn that all of them wait for each other.
#pragma once

#include <atomic>
#include <cstdint>
#include <unistd.h>

#include "job.hpp"

namespace insight_trace::capture {

inline constexpr int kMostChips = 64;

// At a place of global memory that starts as zeros; the caller of the runners looks at it, too.
struct Chips {
    std::atomic<int32_t> turn;               // process id of the worker that runs; 0: none
    std::atomic<uint32_t> hopeless;          // set by the caller: nothing has moved for too long
    std::atomic<uint64_t> moves;             // pieces of work that ended, and waits that were over
    std::atomic<uint32_t> begun[kMostChips]; // pieces of work, by chip

    void take_turn() {
        const int32_t me = getpid();
        for (int32_t nobody = 0; !turn.compare_exchange_strong(nobody, me); nobody = 0) usleep(kNap);
    }
    void end_turn() { turn.store(0); }

    static constexpr useconds_t kNap = 100;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

inline Chips &chips_of(const Job &job) { return *reinterpret_cast<Chips *>(job.node); }

// This chip's turn for the length of a piece of work.
class Turn {
  public:
    explicit Turn(const Job &job) : chips_(job.node ? &chips_of(job) : nullptr) {
        if (!chips_) return;
        chips_->begun[job.chip].fetch_add(1);
        chips_->take_turn();
    }
    ~Turn() {
        if (!chips_) return;
        chips_->moves.fetch_add(1);
        chips_->end_turn();
    }
    Turn(const Turn &) = delete;
    Turn &operator=(const Turn &) = delete;

  private:
    Chips *chips_;
};

class Neighbours : public engine::OtherChips {
  public:
    explicit Neighbours(const Job &job) : job_(job) {}
    bool wait() override {
        Chips &chips = chips_of(job_);
        chips.end_turn();
        usleep(Chips::kNap);
        chips.take_turn();
        return !chips.hopeless.load();
    }
    void helped() override { chips_of(job_).moves.fetch_add(1); }

  private:
    const Job &job_;
};

} // namespace insight_trace::capture
