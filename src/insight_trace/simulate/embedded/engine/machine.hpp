// All cores of one job. Each is a host thread, and exactly one runs at a time: a core hands the baton on when
// it must wait for another one, so results and times never depend on the host's scheduling.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "changes.hpp"
#include "core.hpp"
#include "cross_core.hpp"
#include "late_work.hpp"
#include "number_watch.hpp"
#include "kernel_image.hpp"
#include "timeline.hpp"

namespace insight_trace::engine {

struct CoreJob {
    CoreIdentity identity;
    int kernel = 0;
    uint64_t args = 0;
};

// Global memory that L2 holds when the run begins.
struct HeldRange {
    uint64_t address, bytes;
    bool dirty;
};

// Chips that run beside this one. They take turns: a chip whose cores all wait lets the others go on.
class OtherChips {
  public:
    virtual ~OtherChips() = default;
    virtual bool wait() = 0;   // until they may have changed something; false: they will not any more
    virtual void helped() = 0; // a wait is over
};

struct Job {
    std::string records_path, result_path, gm_path;
    uint64_t gm_base = 0, gm_size = 0;
    double limit_seconds = 60;
    uint64_t limit_bytes = 4ull << 30;
    bool timing_only = false;
    bool warm = false;           // L2 holds what the same run left there
    std::vector<HeldRange> held; // and before that, these
    bool check = false;          // look for what is wrong when the run has ended
    bool numbers = false;        // look for the op that made the first NaN and the first infinity
    uint8_t unwritten = 0;       // what on-chip memory holds before anything is written
    uint64_t perturb = 0;        // not 0: hand the baton on at random, to test that nothing depends on it
    Parameters parameters;
    std::vector<Region> regions;
    std::vector<KernelImage> kernels;
    std::vector<CoreJob> cores;
    std::set<std::pair<std::string, uint32_t>> left_out; // lines whose flags and barriers do not happen
    std::vector<Change> changes;                         // of single tile ops
    JournalOptions journal;
    bool watches_calls() const { return numbers || !changes.empty() || journal.wanted(); }
    OtherChips *other_chips = nullptr; // that share global memory with this one
    // Blocks in several processes (shares.hpp): how many, where this one marks what it touches, and whom it
    // tells that a block met another one.
    size_t shares = 1;
    TouchedLines *touched = nullptr;
    void (*blocks_meet)() = nullptr;
};

// The last scalar store of a core to a place in global memory.
struct Written {
    uint16_t core;
    uint32_t row;
};

class Machine {
  public:
    Machine(Job &job, Records &records);
    // Runs every core to its end; throws the first Failure.
    void run() { run(0, threads_.size()); }
    // The same for the cores from `first` up to `end` alone, none of which has run.
    void run(size_t first, size_t end);
    // Places what the cores did on one axis of time, with the memory that they share.
    void place();
    // The same for a run that was cut off, as far as it came.
    void place_what_ran();
    const Timeline *timeline() const { return placed_whole_ ? timeline_.get() : nullptr; }
    // When the last core would end if the flags and barriers of these rows did not happen; records stay.
    int64_t cycles_without(const std::vector<uint32_t> &rows) const;
    // The time of a core's scalar unit, in thousandths: right for one core, else with nobody else on the
    // chip.
    int64_t now(const Core &core);
    // Hands the baton on until `ready` holds. `what` says what is waited for, for a deadlock report.
    void wait_until(Core &core, const std::string &what, const std::function<bool()> &ready);
    // Lets other cores run; for loops that poll memory which another core writes.
    void yield(Core &core);
    // The same, for a look at `address` that found `content`. When nothing but looks at unchanged memory
    // happens any more, the run ends as a deadlock.
    void poll(Core &core, uint64_t address, uint64_t content);
    void progressed() { idle_polls_ = 0; }
    // Where the order of cores is made up, others may come first at any instruction.
    void interrupt(Core &core) {
        if (job_.perturb && dice_() % 4 == 0) yield(core);
    }
    // A core looked at what cores of other blocks may do: their stores, or a flag of all blocks.
    void meets_other_blocks() {
        met_other_blocks_ = true;
        if (job_.blocks_meet) job_.blocks_meet();
    }
    bool met_other_blocks() const { return met_other_blocks_; }
    uint32_t add_meeting(std::vector<uint32_t> rows) {
        meetings_.push_back({std::move(rows), job_.parameters.cross_core_latency});
        return static_cast<uint32_t>(meetings_.size() - 1);
    }
    // A scalar store of another core that a load finds.
    uint32_t meet_store(const Written &store) {
        meetings_.push_back({{store.row}, 0});
        return static_cast<uint32_t>(meetings_.size() - 1);
    }
    const std::vector<Meeting> &meetings() const { return meetings_; }
    void take_over(Meeting meeting) { meetings_.push_back(std::move(meeting)); }
    // What steps that were taken over lie in.
    void keep(std::shared_ptr<void> memory) { kept_.push_back(std::move(memory)); }
    void wrote(uint64_t address, const Written &by) { written_[address] = by; }
    const Written *written(uint64_t address) const {
        auto found = written_.find(address);
        return found == written_.end() ? nullptr : &found->second;
    }

    Core &core(size_t index) { return *threads_[index].core; }
    size_t core_count() const { return threads_.size(); }
    uint32_t next_call() { return calls_++; } // counted where calls are watched
    Job &job() { return job_; }
    const Job &job() const { return job_; }
    const GlobalMemory &global_memory() const { return gm_; }
    // Synchronisation at this line is left out, to see what it costs.
    bool leaves_out(Site at) const {
        return !job_.left_out.empty() && at.file && job_.left_out.count({at.file, at.line});
    }
    CrossCore cross_core;
    NumberWatch numbers;

  private:
    enum class State { Ready, Blocked, Done };
    struct CoreThread {
        std::unique_ptr<Core> core;
        std::thread thread;
        std::condition_variable turn;
        State state = State::Ready;
        std::string what;
        Site where{};
        std::function<bool()> ready;
        std::vector<uint8_t> saved_state;
        uint64_t polled = 0; // the address it looked at last
    };
    void body(size_t index);
    // `stays`: the cores of the same block come first.
    void pass_on(std::unique_lock<std::mutex> &lock, size_t from, bool stays = true);
    bool pick_next(size_t from, bool stays);
    void swap_in(size_t index);
    void swap_out(size_t index);
    std::string deadlock_text() const;
    void hold(L2Cache &cache) const; // what L2 holds when the run begins
    void place_on(Timeline &timeline, L2Cache &cache, bool write_records) const;

    Job &job_;
    GlobalMemory gm_;
    std::vector<CoreThread> threads_;
    std::mutex mutex_;
    std::condition_variable finished_;
    size_t first_ = 0, end_ = 0; // the cores that run now
    size_t running_ = 0;
    bool over_ = false;
    std::unique_ptr<Failure> failure_;
    std::mt19937_64 dice_;
    std::unordered_map<uint64_t, Written> written_;
    std::unordered_map<uint64_t, uint64_t> seen_; // what polls found, by address
    uint64_t idle_polls_ = 0;
    std::vector<Meeting> meetings_;
    std::vector<std::shared_ptr<void>> kept_;
    Records &records_;
    struct OwnTimes { // of a core alone, for kernels of several cores that ask for the time
        OwnTimes(const Machine &machine, const TimelineCore &core);
        std::vector<TimelineCore> cores;
        L2Cache cache;
        Timeline timeline;
    };
    OwnTimes &own_times(size_t core);
    void new_timeline();

    std::vector<TimelineCore> placed_;
    std::unique_ptr<L2Cache> cache_;
    std::unique_ptr<Timeline> timeline_;
    bool online_ = false; // steps are placed as they come
    bool placed_whole_ = false;
    std::vector<std::unique_ptr<OwnTimes>> own_times_;
    bool met_other_blocks_ = false;
    uint32_t calls_ = 0;
};

Machine &current_machine();

} // namespace insight_trace::engine
