// The tasks of a run as the device's runtime orders them: who waits for whom, and how each wants to be
// started.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "buffers.hpp"

namespace insight_trace::capture {

// Read by capture/task_graph.py; the layout is the same there.
struct GraphTask {
    uint64_t id;
    int64_t cycles;  // of the whole task; 0 where it was not run
    int32_t func[3]; // func ids of the cube and the two vector members, -1: none
    uint32_t dispatch_id;
    uint32_t block_count;
    int32_t line;
    uint8_t sync_start, early, skipped; // skipped: its predicate did not hold
    uint8_t reserved[5];
};
static_assert(sizeof(GraphTask) == 48, "the reader has this size");

struct GraphEdge {
    uint32_t before, after; // numbers of tasks
    uint32_t orchestrator;  // 1: not the task waits but the orchestration, before it submits the task
};

class Graph {
  public:
    // A task with what it waits for. Tasks come in the order of their numbers.
    void add(const TaskCall &call, uint64_t id, uint32_t dispatch_id, bool manual, Buffers &buffers);
    void made(uint32_t task, const ChipTensor &tensor,
              Buffers &buffers); // a tensor that the runtime allocated
    // The orchestration waits for whoever writes the tensor, and submits its next task afterwards.
    void waited(const ChipTensor &tensor, Buffers &buffers);
    void done(uint32_t task, int64_t cycles, bool skipped);
    void write(const std::string &path) const;

  private:
    void wait_for(uint32_t before, uint32_t after, bool orchestrator);
    std::vector<GraphTask> tasks_;
    std::vector<GraphEdge> edges_;
    std::map<uint64_t, uint32_t> number_of_;
    size_t first_edge_ = 0; // of the task that is being added
};

} // namespace insight_trace::capture
