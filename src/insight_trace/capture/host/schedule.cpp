// The other half of the runtime: which task runs when, and on which worker.
#include <algorithm>
#include <cstring>

#include "chips.hpp"
#include "pto_types.h"
#include "runtime.hpp"
#include "text.hpp"

namespace insight_trace::capture {

using engine::Fault;

volatile int g_stop_signal = 0;

static constexpr int kArgSlots = 50;
static constexpr int kLocalContextSlot = 48, kGlobalContextSlot = 49;
static constexpr uint64_t kContextOffset = kArgSlots * 8;

// Behind slot 48 and 49.
struct LocalContext {
    int32_t block_idx, block_num;
    uint64_t count, error, list; // addresses in Conditions
    uint32_t capacity;
    uint64_t task;
};
struct GlobalContext {
    int32_t sub_block_id;
    uint64_t workspace[2];
};
static_assert(kContextOffset + sizeof(LocalContext) + sizeof(GlobalContext) <= kRowBytes);

static bool has_kernel(const Task &task) {
    return task.rows[0] >= 0 || task.rows[1] >= 0 || task.rows[2] >= 0;
}

void Runtime::assign() {
    while (!ready_.empty()) {
        auto chosen = ready_.begin();
        if (job_.shuffle) std::advance(chosen, static_cast<long>(dice_() % ready_.size()));
        Task &task = *tasks_.at(*chosen);
        if (job_.hollow && task.predicate_op)
            need_values(task.predicate_tensor, "a predicate looks at", task.site);
        if (!has_kernel(task) || (!task.dispatched() && !predicate_holds(task))) {
            ready_.erase(chosen);
            complete(task);
            continue;
        }
        if (job_.hollow) {
            ready_.erase(chosen);
            pass_over(task);
            continue;
        }
        int idle = -1;
        for (int w = 0; w < workers_.count() && idle < 0; ++w)
            if (!workers_.busy(w)) idle = w;
        if (idle < 0) return;
        dispatch(task, idle);
        if (task.next_block == task.block_count) ready_.erase(task.number);
    }
}

void Runtime::turn(int milliseconds) {
    assign();
    // what other chips do wakes nobody here
    const int patience = job_.node && !deferred_.empty() ? 2 : 100;
    int worker = workers_.wait(milliseconds < 0 ? patience : milliseconds);
    if (worker < 0 && milliseconds < 0) fail_if_stuck();
    if (g_stop_signal) throw engine::Failure(Fault::Environment, {}, "the run was interrupted");
    if (worker < 0) return;
    Task &task = *at_work_[static_cast<size_t>(worker)];
    if (workers_.order(worker).failure.failed) {
        failed_task = &task;
        throw workers_.order(worker).failure;
    }
    end_of_work(worker);
    take_conditions(task, worker);
    if (task.blocks_left == 0) deferred_.insert(task.number);
    complete_deferred();
    assign();
}

void Runtime::finish() {
    while (!tasks_.empty()) turn(-1);
    recorder_.flush();
}

bool Runtime::predicate_holds(const Task &task) const {
    if (!task.predicate_op) return true;
    uint64_t size = get_element_size(task.predicate_tensor.dtype);
    int64_t value = 0;
    memcpy(&value, reinterpret_cast<const void *>(task.predicate_address), size);
    unsigned unused = static_cast<unsigned>(64 - 8 * size);
    value = static_cast<int64_t>(static_cast<uint64_t>(value) << unused) >> unused;
    switch (static_cast<PredicateOp>(task.predicate_op)) {
    case PredicateOp::EQ:
        return value == task.predicate_target;
    case PredicateOp::NE:
        return value != task.predicate_target;
    case PredicateOp::GT:
        return value > task.predicate_target;
    case PredicateOp::LT:
        return value < task.predicate_target;
    case PredicateOp::GE:
        return value >= task.predicate_target;
    case PredicateOp::LE:
        return value <= task.predicate_target;
    default:
        return true;
    }
}

// As many as the chip has cores for stand side by side there, and may wait for each other. Here they need the
// same worker for that, so a kernel's first task keeps them together; if none looked at another, later tasks
// of the kernel are spread over all workers.
int32_t Runtime::blocks_at_once(const Task &task) const {
    if (task.sync_start) return task.block_count;
    bool apart = true;
    int vectors = (task.rows[1] >= 0) + (task.rows[2] >= 0);
    for (int row : task.rows)
        apart = apart && (row < 0 || blocks_of_[static_cast<size_t>(row)] == Blocks::Apart);
    if (apart) return 1;
    return task.rows[0] >= 0 || vectors > 1 ? job_.clusters : 2 * job_.clusters;
}

void Runtime::end_of_work(int worker) {
    auto index = static_cast<size_t>(worker);
    Task &task = *at_work_[index];
    bool together = workers_.order(worker).met_other_blocks;
    if (together || blocks_at_work_[index] > 1)
        for (int row : task.rows) {
            if (row < 0) continue;
            Blocks &known = blocks_of_[static_cast<size_t>(row)];
            if (known != Blocks::Together) known = together ? Blocks::Together : Blocks::Apart;
        }
    at_work_[index] = nullptr;
    task.blocks_left -= blocks_at_work_[index];
    task.cycles = std::max(task.cycles, workers_.order(worker).cycles);
    const WorkOrder &order = workers_.order(worker);
    for (size_t i = 0; i < order.remark_count; ++i)
        remarks_.emplace(std::pair(std::string(order.remarks[i].file), order.remarks[i].line),
                         order.remarks[i].text);
}

// --- conditions that outlive a kernel

Conditions &Runtime::conditions_of(int worker, int32_t core) const {
    uint64_t first = workers_.payload(worker) + kDescriptorBytes + kMaxCores * kRowBytes;
    return reinterpret_cast<Conditions *>(first)[core];
}

void Runtime::take_conditions(Task &task, int worker) {
    for (int32_t core = 0; core < workers_.order(worker).core_count; ++core) {
        Conditions &left = conditions_of(worker, core);
        if (!left.count && !left.error) continue;
        failed_task = &task;
        if (left.error)
            engine::fail(Fault::Kernel, {}, "the kernel reported error %d of asynchronous completion",
                         left.error);
        for (uint32_t i = 0; i < std::min(left.count, kMaxConditions); ++i) {
            const Condition &condition = left.list[i];
            if (condition.type != 0)
                engine::fail(Fault::NotSupported, {},
                             "the task ends with an event of a DMA engine, which is not there");
            if (condition.address % 4 || !buffers_.find(condition.address))
                engine::fail(Fault::Kernel, {},
                             "the task waits for a counter at 0x%llx, which is in no buffer",
                             static_cast<unsigned long long>(condition.address));
            task.conditions.push_back(condition);
        }
        failed_task = nullptr;
    }
}

static uint32_t counter_at(uint64_t address) { return *reinterpret_cast<const volatile uint32_t *>(address); }

void Runtime::complete_deferred() {
    for (auto next = deferred_.begin(); next != deferred_.end();) {
        Task &task = *tasks_.at(*next);
        auto holds = [](const Condition &c) { return counter_at(c.address) >= c.expected; };
        bool done = std::all_of(task.conditions.begin(), task.conditions.end(), holds);
        next = done ? deferred_.erase(next) : std::next(next);
        if (done) complete(task);
    }
}

// Nothing runs and nothing can start: whoever waits now waits for ever.
void Runtime::fail_if_stuck() {
    if (job_.node) complete_deferred();
    if (deferred_.empty() || !ready_.empty()) return;
    for (int w = 0; w < workers_.count(); ++w)
        if (workers_.busy(w)) return;
    complete_deferred();
    if (deferred_.empty() || !ready_.empty()) return;
    if (job_.node && !chips_of(job_).hopeless) return;
    failed_task = tasks_.at(*deferred_.begin()).get();
    for (const Condition &c : failed_task->conditions)
        if (counter_at(c.address) < c.expected)
            engine::fail(
                Fault::Kernel, {},
                "deadlock: the task waits for the counter at 0x%llx to reach %u; it is %u, and no task "
                "is left that could raise it",
                static_cast<unsigned long long>(c.address), c.expected, counter_at(c.address));
}

// Lays out what the cores of some of a task's blocks get as arguments.
void Runtime::dispatch(Task &task, int worker) {
    if (!task.dispatched())
        for (int32_t block = 0; block < (graphs_ ? 1 : task.block_count); ++block)
            record(task, Stage::Before, block, false);
    int32_t first = task.next_block, last = std::min(task.block_count, first + blocks_at_once(task));
    WorkOrder &order = workers_.order(worker);
    uint64_t payload = workers_.payload(worker);
    order.core_count = 0;
    for (size_t i = 0; i < task.tensors.size(); ++i)
        memcpy(reinterpret_cast<void *>(payload + i * sizeof(ChipTensor)), &task.tensors[i].tensor,
               sizeof(ChipTensor));
    for (int32_t block = first; block < last; ++block)
        for (int member = 0; member < 3; ++member) {
            if (task.rows[member] < 0) continue;
            if (order.core_count == kMaxCores)
                throw OrchestrationError("a task that starts on more than " + std::to_string(kMaxCores) +
                                             " cores at once cannot be run",
                                         task.site);
            uint64_t row = payload + kDescriptorBytes + static_cast<uint64_t>(order.core_count) * kRowBytes;
            auto *slots = reinterpret_cast<uint64_t *>(row);
            memset(slots, 0, kRowBytes);
            for (size_t i = 0; i < task.tensors.size(); ++i) slots[i] = payload + i * sizeof(ChipTensor);
            for (size_t i = 0; i < task.scalars.size(); ++i) slots[task.tensors.size() + i] = task.scalars[i];
            auto *local = reinterpret_cast<LocalContext *>(row + kContextOffset);
            auto *global = reinterpret_cast<GlobalContext *>(local + 1);
            int32_t lane = member == 2 ? 1 : 0;
            local->block_idx = block;
            local->block_num = task.block_count;
            Conditions &left = conditions_of(worker, order.core_count);
            left.count = 0;
            left.error = 0;
            local->count = reinterpret_cast<uint64_t>(&left.count);
            local->error = reinterpret_cast<uint64_t>(&left.error);
            local->list = reinterpret_cast<uint64_t>(left.list);
            local->capacity = kMaxConditions;
            local->task = task.id;
            global->sub_block_id = lane;
            // nobody looks into them: what needs a DMA engine says so itself
            for (uint64_t &workspace : global->workspace) workspace = payload;
            slots[kLocalContextSlot] = reinterpret_cast<uint64_t>(local);
            slots[kGlobalContextSlot] = reinterpret_cast<uint64_t>(global);
            order.cores[order.core_count++] = {task.rows[member], block, task.block_count, lane, row};
        }
    task.next_block = last;
    blocks_at_work_[static_cast<size_t>(worker)] = last - first;
    at_work_[static_cast<size_t>(worker)] = &task;
    workers_.go(worker);
}

// Notes what it would have written: whoever asks for that content has to be told that it is not there.
void Runtime::pass_over(Task &task) {
    task.next_block = task.block_count;
    record(task, Stage::Before, 0, false);
    for (const TaskTensor &argument : task.tensors)
        if (argument.role != Role::Input)
            if (Buffer *buffer = buffers_.find(argument.tensor.buffer.addr)) buffer->hollow = true;
    complete(task);
}

void Runtime::need_values(const ChipTensor &tensor, const char *who, Site site) {
    Buffer *buffer = buffers_.find(tensor.buffer.addr);
    if (!buffer || !buffer->hollow) return;
    engine::fail(Fault::NotSupported, {site.file, static_cast<uint32_t>(site.line)},
                 "values: %s what a task computes, and no kernel is run", who);
}

void Runtime::write_graph() const {
    if (graphs_) graph_.write(job_.graph_path);
}

void Runtime::complete(Task &task) {
    if (task.dispatched()) record(task, Stage::After, 0, false);
    if (graphs_) graph_.done(task.number, task.cycles, has_kernel(task) && !task.dispatched());
    ++completed_;
    picked_left_ -= task.picked;
    bool last_one = task.picked && picked_left_ == 0;
    for (auto &scope : task.scopes)
        if (--scope->running == 0 && scope->closed && job_.rings)
            buffers_.release(scope->heap_begin, scope->heap_end);
    std::vector<uint32_t> followers = std::move(task.followers);
    number_of_.erase(task.id);
    tasks_.erase(task.number);
    for (uint32_t number : followers) {
        Task &follower = *tasks_.at(number);
        if (--follower.waits_for == 0) ready_.insert(number);
    }
    if (last_one) {
        recorder_.flush();
        throw AllPicked();
    }
}

// Other workers end what they are at; their own time limit bounds this.
void Runtime::settle() {
    auto some_at_work = [&] {
        for (int w = 0; w < workers_.count(); ++w)
            if (workers_.busy(w)) return true;
        return false;
    };
    while (!g_stop_signal && some_at_work()) {
        int worker = workers_.wait(100);
        if (worker < 0 || workers_.order(worker).failure.failed) continue;
        Task &task = *at_work_[static_cast<size_t>(worker)];
        end_of_work(worker);
        if (task.blocks_left == 0) record(task, Stage::After, 0, false);
    }
}

void Runtime::record_unfinished() {
    settle();
    std::set<Task *> done;
    for (Task *task : at_work_)
        if (task && done.insert(task).second) record(*task, Stage::After, 0, true);
    for (uint32_t number : deferred_) record(*tasks_.at(number), Stage::After, 0, true);
    recorder_.flush();
}

std::string Runtime::remark_text() const {
    std::string out;
    for (const auto &[place, text] : remarks_)
        out += "remark\t" + engine::escaped(place.first) + "\t" + std::to_string(place.second) + "\t" +
               engine::escaped(text) + "\n";
    return out;
}

std::string Runtime::running_text() const {
    const Task *task = failed_task;
    for (Task *other : at_work_)
        if (!task && other) task = other;
    if (!task) return "";
    char text[64];
    snprintf(text, sizeof text, "0x%016llx", static_cast<unsigned long long>(task->id));
    std::string out = "task\t" + std::string(text) + "\t" + std::to_string(task->dispatch_id);
    for (int row : task->rows)
        if (row >= 0) out += "\t" + std::to_string(job_.kernels[static_cast<size_t>(row)].func_id);
    return out + "\nsubmitted\t" + engine::escaped(task->site.file ? task->site.file : "") + "\t" +
           std::to_string(task->site.line) + "\n";
}

} // namespace insight_trace::capture
