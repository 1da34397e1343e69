// Thousands of launches of a few kernels, timing only, in one start of the runner: a few processes that stay
// take one launch after the other. No process and no file is made for a launch; one that fails ends its
// process, and another takes its place.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <sys/types.h>
#include <unistd.h>
#include <vector>

#include "machine.hpp"

namespace insight_trace::engine {

// What is kept of a launch, as timings.py reads it.
struct TimingRow {
    enum Status : uint32_t { NotRun, Well, Failed };
    uint32_t status;
    uint32_t bound; // the pipe that works longest on one core
    int64_t cycles;
    int64_t first, last; // start of the first instruction, end of the last one before the core's END
    int64_t instructions;
    char text[984]; // of a failure: the head of a result (runner.py)
};
static_assert(sizeof(TimingRow) == 1024);

class Timings {
  public:
    // Launches that differ in some bytes of global memory alone.
    struct Group {
        uint64_t image = 0, gm_size = 0; // where its global memory begins in the file of images
        uint64_t address = 0, bytes = 0; // what differs
        uint64_t count = 0;
        std::vector<Region> regions;
        std::vector<CoreJob> cores;
    };
    struct Launch {
        const Group *group;
        uint64_t number; // of all
    };
    std::string rows_path, images_path, bytes_path;
    size_t at_once = 1;
    double seconds = 0; // for all of them
    std::vector<Group> groups;

    bool wanted() const { return !rows_path.empty(); }
    bool is_worker() const { return worker_ >= 0; }
    uint64_t largest_gm() const;
    // Returns in every process that runs launches; the one that was there before ends when all are done.
    void start();
    // The next launch, its global memory mapped at `base`; no group: there is none left.
    Launch next(uint64_t base);
    void done(const Launch &launch, uint64_t base, const TimingRow &row);
    [[noreturn]] void report(const std::string &head); // of the launch that this process runs
    // The kernel changed what the next launch would find: a new process goes on.
    [[noreturn]] void leave() { _exit(kStale); }

  private:
    static constexpr int kStale = 3;
    static constexpr size_t kMostWorkers = 64;
    struct Shared {
        std::atomic<uint64_t> next;
        std::array<std::atomic<uint64_t>, kMostWorkers> at; // a worker's launch and one; 0: none
    };

    uint64_t total_ = 0;
    std::vector<uint64_t> firsts_, blobs_; // of each group: its first launch, where its bytes begin
    TimingRow *rows_ = nullptr;
    Shared *shared_ = nullptr;
    int images_ = -1, bytes_ = -1;
    int worker_ = -1;
};

} // namespace insight_trace::engine
