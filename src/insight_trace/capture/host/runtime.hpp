// The host runtime: takes tasks from the orchestration, finds what each must wait for, runs them on the
// workers in an order that respects it, and records them.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <set>
#include <vector>

#include "graph.hpp"
#include "recorder.hpp"
#include "workers.hpp"

namespace insight_trace::capture {

// Thrown when every dispatch that the job asks for is recorded: there is nothing left to do.
struct AllPicked {};

struct Scope {
    uint64_t heap_begin = 0, heap_end = 0;
    uint32_t running = 0; // tasks of this scope, and of scopes in it, that are not done
    bool closed = false;
    bool manual = false; // tasks wait only for those that they name
};

struct TaskTensor {
    ChipTensor tensor;
    TensorArgType tag;
    Role role;
    uint64_t before = 0, after = 0; // places in the payload file
};

struct Task {
    uint32_t number = 0; // in the order of submission
    uint64_t id = 0;
    int rows[3] = {-1, -1, -1}; // of Job::kernels: cube, vector 0, vector 1
    std::vector<TaskTensor> tensors;
    std::vector<uint64_t> scalars;
    std::vector<uint8_t> scalar_types;
    uint64_t marked = 0, ambiguous = 0;
    int32_t block_count = 1;
    bool sync_start = false;
    uint8_t predicate_op = 0;
    ChipTensor predicate_tensor{};
    uint64_t predicate_address = 0;
    int64_t predicate_target = 0;
    Site site{};
    uint32_t dispatch_id = 0; // of its first block
    uint32_t picked = 0;      // of the dispatches that the job asks for, how many are its own
    int64_t cycles = 0;

    uint32_t waits_for = 0;
    std::vector<uint32_t> followers;
    std::vector<std::shared_ptr<Scope>> scopes;
    int32_t next_block = 0, blocks_left = 1;
    std::vector<Condition> conditions; // that still have to hold when its blocks are done

    bool dispatched() const { return next_block > 0; }
};

class Runtime {
  public:
    Runtime(Job &job, Recorder &recorder, Workers &workers);

    uint64_t submit(const TaskCall &call, const ChipTensor **outputs, uint32_t &output_count);
    void scope_begin(bool manual = false);
    void scope_end(Site site);
    uint64_t get(const ChipTensor &tensor, uint32_t ndims, const uint32_t *indices, Site site);
    void set(const ChipTensor &tensor, uint32_t ndims, const uint32_t *indices, uint64_t value, Site site);
    void finish(); // until every task is done

    // After a failure: what the tasks that were running have written so far.
    void record_unfinished();
    std::string running_text() const;

    uint64_t tasks() const { return next_number_; }
    uint64_t dispatches() const { return next_dispatch_; }
    uint64_t completed() const { return completed_; }
    uint64_t marked() const { return marked_; }
    std::string remark_text() const;
    void write_graph() const;
    Site last_site{};
    const Task *failed_task = nullptr;

  private:
    uint64_t new_id();
    void make_outputs(const TaskCall &call, Task &task, const ChipTensor **outputs, uint32_t &count);
    void choose_roles(Task &task);
    uint32_t picked_of(const Task &task);
    void find_dependencies(Task &task, const TaskCall &call);
    void wait_for(Task &task, uint32_t number);
    void wait_for_access(const ChipTensor &tensor, bool readers_too);
    Buffer &buffer_of(const ChipTensor &tensor, Site site);
    uint64_t element_address(const ChipTensor &tensor, uint32_t ndims, const uint32_t *indices, Site site);
    void assign();               // ready work to idle workers
    void turn(int milliseconds); // one round of assigning and waiting
    void dispatch(Task &task, int worker);
    void pass_over(Task &task); // instead of running it
    void need_values(const ChipTensor &tensor, const char *who, Site site);
    bool predicate_holds(const Task &task) const;
    int32_t blocks_at_once(const Task &task) const;
    void end_of_work(int worker);
    Conditions &conditions_of(int worker, int32_t core) const;
    void take_conditions(Task &task, int worker);
    void complete_deferred();
    void fail_if_stuck();
    void complete(Task &task);
    void settle();
    void record(Task &task, Stage stage, int32_t block, bool partial);
    Row row_of(const Task &task, int32_t block) const;
    uint16_t core_id(const Task &task, int32_t block) const;

    Job &job_;
    Recorder &recorder_;
    Workers &workers_;
    Buffers buffers_;
    Graph graph_;
    bool graphs_ = false;
    std::map<uint32_t, std::unique_ptr<Task>> tasks_; // not yet done, by number
    std::map<uint64_t, uint32_t> number_of_;          // of tasks not yet done, by id
    std::set<uint32_t> ready_;
    std::set<uint32_t> deferred_; // whose blocks are done and whose conditions do not hold yet
    std::vector<Task *> at_work_; // by worker
    std::vector<int32_t> blocks_at_work_;
    // Whether blocks of a kernel may run apart, by row of Job::kernels: they wait for each other unless a run
    // of several has shown that they do not.
    enum class Blocks : uint8_t { Unknown, Apart, Together };
    std::vector<Blocks> blocks_of_;
    std::deque<ChipTensor> outputs_; // orchestrations hold references to these
    std::vector<std::shared_ptr<Scope>> scopes_;
    std::vector<uint32_t> ring_next_;
    uint32_t next_number_ = 0, next_dispatch_ = 0;
    uint64_t completed_ = 0, marked_ = 0, picked_left_;
    bool first_found_ = false;
    std::map<std::pair<std::string, int>, std::string> remarks_; // by file and line
    std::mt19937_64 dice_;
};

// Set by a signal: the run is to end.
extern volatile int g_stop_signal;

} // namespace insight_trace::capture
