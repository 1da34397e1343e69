// Processes that run dispatches on modelled cores. They are made once, share global memory, and take one
// piece of work at a time; a crash or a hang ends one of them with a report and nothing else.
#pragma once

#include <sys/types.h>
#include <vector>

#include "job.hpp"

namespace insight_trace::capture {

inline constexpr int kMaxCores = 512; // in one piece of work
// Room is kept for all of them, so that addresses do not depend on how many there are.
inline constexpr uint64_t kMaxWorkers = 64;
inline constexpr uint64_t kRowBytes = 512; // an args array and its two contexts
inline constexpr uint64_t kDescriptorBytes = 32 * sizeof(ChipTensor);

// A condition that a kernel leaves behind: its task is only done when it holds.
struct Condition {
    uint64_t address;
    uint64_t cookie;
    uint32_t expected;
    uint32_t engine;
    int32_t type; // 0: the counter at the address has reached the expected value
    uint32_t reserved;
};
static_assert(sizeof(Condition) == 32, "kernels write 32 bytes");
inline constexpr uint32_t kMaxConditions = 64;
struct alignas(64) Conditions {
    uint32_t count;
    int32_t error;
    uint64_t reserved[7];
    Condition list[kMaxConditions];
};
inline constexpr uint64_t kPayloadBytes = kDescriptorBytes + kMaxCores * (kRowBytes + sizeof(Conditions));

struct CoreOrder {
    int32_t kernel; // row of Job::kernels
    int32_t block, block_count, lane;
    uint64_t args;
};

inline constexpr size_t kMaxRemarks = 4; // of one piece of work
struct Remark {
    char text[256];
    char file[512];
    int line;
};

// In memory that runner and worker share.
struct WorkOrder {
    int32_t core_count;
    // The answer: whether a core looked at what other blocks do, how long it took, what is to be said of it.
    bool met_other_blocks;
    int64_t cycles;
    size_t remark_count;
    Remark remarks[kMaxRemarks];
    CoreOrder cores[kMaxCores];
    Failure failure;
};

class Workers {
  public:
    void start(Job &job, uint64_t payload_base);
    int count() const { return static_cast<int>(list_.size()); }
    WorkOrder &order(int worker) { return *list_[static_cast<size_t>(worker)].order; }
    uint64_t payload(int worker) const { return list_[static_cast<size_t>(worker)].payload; }
    void go(int worker);
    bool busy(int worker) const { return list_[static_cast<size_t>(worker)].busy; }
    // Waits until a worker is done or gone; -1: none within that time, or a signal came.
    int wait(int milliseconds);
    void end();

  private:
    struct Worker {
        pid_t process = 0;
        int channel = -1;
        WorkOrder *order = nullptr;
        uint64_t payload = 0;
        bool busy = false;
    };
    std::vector<Worker> list_;
};

} // namespace insight_trace::capture
