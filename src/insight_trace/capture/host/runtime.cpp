#include "runtime.hpp"

#include <algorithm>
#include <cstring>

namespace insight_trace::capture {

using engine::Fault;

static constexpr uint32_t kMaxOutstanding = 1024;
static constexpr size_t kRings = 4; // scope depths that have a count of their own

Runtime::Runtime(Job &job, Recorder &recorder, Workers &workers)
    : job_(job), recorder_(recorder), workers_(workers),
      at_work_(static_cast<size_t>(workers.count()), nullptr),
      blocks_at_work_(static_cast<size_t>(workers.count()), 0),
      blocks_of_(job.kernels.size(), Blocks::Unknown), ring_next_(kRings, 0),
      picked_left_(job.picked_kernels.empty() ? job.picked.size() : 1), dice_(job.shuffle) {
    graphs_ = !job.graph_path.empty();
    buffers_.start(job);
    scope_begin(); // the one that the whole orchestration stands in
}

[[noreturn]] static void wrong(const std::string &text, Site site) { throw OrchestrationError(text, site); }

// --- scopes

void Runtime::scope_begin(bool manual) {
    auto scope = std::make_shared<Scope>();
    scope->manual = manual || (!scopes_.empty() && scopes_.back()->manual);
    scope->heap_begin = buffers_.heap_position();
    scopes_.push_back(scope);
}

void Runtime::scope_end(Site site) {
    if (scopes_.size() <= 1) wrong("a scope ends that was never begun", site);
    auto scope = scopes_.back();
    scopes_.pop_back();
    scope->closed = true;
    scope->heap_end = buffers_.heap_position();
    if (!scope->running && job_.rings) buffers_.release(scope->heap_begin, scope->heap_end);
}

uint64_t Runtime::new_id() {
    size_t ring = job_.rings ? std::min(scopes_.size() - 1, kRings - 1) : 0;
    return (static_cast<uint64_t>(ring) << 32) | ring_next_[ring]++;
}

// --- submit

uint64_t Runtime::submit(const TaskCall &call, const ChipTensor **outputs, uint32_t &output_count) {
    last_site = call.site;
    if (call.error) wrong(call.error, call.site);
    if (call.block_count < 1) wrong("a task needs at least one block", call.site);
    auto owned = std::make_unique<Task>();
    Task &task = *owned;
    task.site = call.site;
    for (int i = 0; i < 3; ++i) {
        if (call.kernels[i] < 0) continue;
        task.rows[i] = job_.kernel_row(call.kernels[i]);
        if (task.rows[i] < 0)
            wrong("there is no kernel with func id " + std::to_string(call.kernels[i]), call.site);
        bool cube = job_.kernels[static_cast<size_t>(task.rows[i])].cube;
        if (cube != (i == 0))
            wrong("func id " + std::to_string(call.kernels[i]) + " is " + (cube ? "a cube" : "a vector") +
                      " kernel and was submitted as the other",
                  call.site);
    }
    if (call.kind == CallKind::Kernels && task.rows[0] < 0 && task.rows[1] < 0 && task.rows[2] < 0)
        wrong("a task without a kernel was submitted", call.site);

    task.number = next_number_++;
    task.id = new_id();
    task.marked = call.marked;
    task.ambiguous = call.ambiguous;
    marked_ += call.marked != 0;
    task.block_count = task.blocks_left = call.block_count;
    task.sync_start = call.sync_start;
    task.scalars.assign(call.scalars, call.scalars + call.scalar_count);
    task.scalar_types.assign(call.scalar_types, call.scalar_types + call.scalar_count);
    if (call.predicate.op) {
        if (!call.predicate.tensor) wrong("a predicate without a tensor", call.site);
        task.predicate_op = call.predicate.op;
        task.predicate_tensor = *call.predicate.tensor;
        task.predicate_address =
            element_address(*call.predicate.tensor, call.predicate.ndims, call.predicate.indices, call.site);
        task.predicate_target = call.predicate.target;
    }
    bool runs = call.kind == CallKind::Kernels;
    if (graphs_) graph_.add(call, task.id, runs ? next_dispatch_ : 0, scopes_.back()->manual, buffers_);
    make_outputs(call, task, outputs, output_count);
    if (call.kind == CallKind::Allocate) return task.id;

    if (!runs) task.rows[0] = task.rows[1] = task.rows[2] = -1;
    if (runs) {
        task.dispatch_id = next_dispatch_;
        next_dispatch_ += static_cast<uint32_t>(task.block_count);
        task.picked = picked_of(task);
    }
    choose_roles(task);
    task.scopes = scopes_;
    for (auto &scope : task.scopes) ++scope->running;
    if (!job_.hollow) find_dependencies(task, call);
    uint64_t id = task.id;
    uint32_t number = task.number;
    number_of_[id] = number;
    if (!task.waits_for) ready_.insert(number);
    tasks_[number] = std::move(owned);
    assign();
    if (!job_.hollow) turn(0);
    if (g_stop_signal) throw engine::Failure(Fault::Environment, {}, "the run was interrupted");
    while (tasks_.size() >= kMaxOutstanding) turn(-1);
    return id;
}

uint32_t Runtime::picked_of(const Task &task) {
    if (!job_.picked_kernels.empty()) {
        std::set<int32_t> members;
        for (int row : task.rows)
            if (row >= 0) members.insert(job_.kernels[static_cast<size_t>(row)].func_id);
        bool asked = job_.picked_task == UINT64_MAX || job_.picked_task == task.id;
        if (first_found_ || !asked || members != job_.picked_kernels) return 0;
        first_found_ = true;
        return 1;
    }
    auto from = job_.picked.lower_bound(task.dispatch_id);
    auto to = job_.picked.lower_bound(task.dispatch_id + static_cast<uint32_t>(task.block_count));
    return static_cast<uint32_t>(std::distance(from, to));
}

void Runtime::make_outputs(const TaskCall &call, Task &task, const ChipTensor **outputs, uint32_t &count) {
    count = 0;
    for (int i = 0; i < call.tensor_count; ++i) {
        auto tag = static_cast<TensorArgType>(call.tags[i]);
        if (tag != TensorArgType::OUTPUT) {
            task.tensors.push_back({*static_cast<const ChipTensor *>(call.tensors[i]), tag, Role::Input});
            continue;
        }
        const auto &info = *static_cast<const TensorCreateInfo *>(call.tensors[i]);
        uint64_t bytes = info.buffer_size_bytes();
        auto *address = reinterpret_cast<void *>(buffers_.allocate(bytes));
        ChipTensor made = make_tensor_external(address, info.shapes, info.ndims, info.dtype, info.manual_dep);
        made.owner_task_id = {task.id};
        if (info.has_initial_value) {
            uint64_t size = get_element_size(info.dtype);
            for (uint64_t at = 0; at < bytes; at += size)
                memcpy(static_cast<uint8_t *>(address) + at, &info.initial_value, size);
        }
        if (graphs_) graph_.made(task.number, made, buffers_);
        task.tensors.push_back({made, tag, Role::Output});
        outputs_.push_back(made);
        outputs[count++] = &outputs_.back();
    }
}

// Whether every tensor was declared as read. A kernel whose task says so writes to what it calls inputs.
static bool writes_nothing(const Task &task) {
    auto read = [](const TaskTensor &argument) { return argument.tag == TensorArgType::INPUT; };
    return std::all_of(task.tensors.begin(), task.tensors.end(), read);
}

// A signature of fewer tensors than the task has is one of other arguments: its places mean nothing here.
static bool describes(const std::string &signature, const Task &task) {
    auto tensors = std::count_if(signature.begin(), signature.end(), [](char c) { return c != 'S'; });
    return static_cast<size_t>(tensors) >= task.tensors.size();
}

// A kernel's signature decides where it covers the task, as it does in the device's dumps.
void Runtime::choose_roles(Task &task) {
    bool none_written = writes_nothing(task);
    for (size_t slot = 0; slot < task.tensors.size(); ++slot) {
        TaskTensor &argument = task.tensors[slot];
        argument.role = none_written                           ? Role::InOut
                        : argument.tag == TensorArgType::INPUT ? Role::Input
                        : argument.tag == TensorArgType::INOUT || argument.tag == TensorArgType::NO_DEP
                            ? Role::InOut
                            : Role::Output;
        for (int row : task.rows) {
            if (row < 0) continue;
            const std::string &signature = job_.kernels[static_cast<size_t>(row)].signature;
            if (!describes(signature, task)) continue;
            char letter = slot < signature.size() ? signature[slot] : 'S';
            if (letter == 'S') continue;
            argument.role = letter == 'I' ? Role::Input : letter == 'O' ? Role::Output : Role::InOut;
            break;
        }
        if (task.rows[0] < 0 && task.rows[1] < 0 && task.rows[2] < 0) continue;
        bool marked = task.marked >> slot & 1;
        bool wanted = job_.picks() ? task.picked > 0 : recorder_.wants_payload(marked);
        uint64_t bytes = wanted ? argument.tensor.nbytes() : 0;
        if (argument.role != Role::Output) argument.before = recorder_.reserve(bytes);
        if (argument.role != Role::Input) argument.after = recorder_.reserve(bytes);
    }
}

// --- dependencies

Buffer &Runtime::buffer_of(const ChipTensor &tensor, Site site) {
    Buffer *buffer = buffers_.find(tensor.buffer.addr);
    if (!buffer) {
        char text[128];
        snprintf(text, sizeof text, "a tensor at address 0x%llx lies in no buffer of this run",
                 static_cast<unsigned long long>(tensor.buffer.addr));
        wrong(text, site);
    }
    return *buffer;
}

void Runtime::wait_for(Task &task, uint32_t number) {
    auto found = tasks_.find(number);
    if (found == tasks_.end()) return;
    auto &followers = found->second->followers;
    if (!followers.empty() && followers.back() == task.number) return;
    followers.push_back(task.number);
    ++task.waits_for;
}

// Reads wait for earlier writes of the same bytes; writes wait for earlier reads and writes.
void Runtime::find_dependencies(Task &task, const TaskCall &call) {
    auto depend = [&](const ChipTensor &tensor, bool writes, Buffer &buffer) {
        auto [begin, end] = byte_range(tensor);
        auto gone = [&](const Access &a) { return !tasks_.count(a.task); };
        auto &list = buffer.accesses;
        if (list.size() > 64 && list.size() > 2 * tasks_.size())
            list.erase(std::remove_if(list.begin(), list.end(), gone), list.end());
        for (const Access &earlier : list)
            if ((writes || earlier.writes) && earlier.begin < end && begin < earlier.end)
                wait_for(task, earlier.task);
    };
    bool none_written = writes_nothing(task);
    for (const TaskTensor &argument : task.tensors) {
        Buffer &buffer = buffer_of(argument.tensor, call.site);
        bool writes = none_written || argument.tag != TensorArgType::INPUT;
        if (argument.tag == TensorArgType::NO_DEP) continue;
        depend(argument.tensor, writes, buffer);
    }
    if (task.predicate_op) depend(task.predicate_tensor, false, buffer_of(task.predicate_tensor, call.site));
    for (uint32_t i = 0; i < call.dependency_count; ++i) {
        auto found = number_of_.find(call.dependencies[i]);
        if (found != number_of_.end()) wait_for(task, found->second);
    }
    for (const TaskTensor &argument : task.tensors) {
        if (argument.tag == TensorArgType::NO_DEP) continue;
        auto [begin, end] = byte_range(argument.tensor);
        if (begin == end) continue;
        buffer_of(argument.tensor, call.site)
            .accesses.push_back(
                {begin, end, task.number, none_written || argument.tag != TensorArgType::INPUT});
    }
}

// --- the orchestration's own reads and writes

uint64_t Runtime::element_address(const ChipTensor &tensor, uint32_t ndims, const uint32_t *indices,
                                  Site site) {
    if (ndims != tensor.ndims) wrong("as many indices are needed as the tensor has dimensions", site);
    for (uint32_t d = 0; d < ndims; ++d)
        if (indices[d] >= tensor.shapes[d])
            wrong("index " + std::to_string(indices[d]) + " of a dimension of " +
                      std::to_string(tensor.shapes[d]),
                  site);
    buffer_of(tensor, site);
    return tensor.buffer.addr + tensor.compute_flat_offset(indices, ndims) * get_element_size(tensor.dtype);
}

void Runtime::wait_for_access(const ChipTensor &tensor, bool readers_too) {
    auto [begin, end] = byte_range(tensor);
    std::set<uint32_t> waited;
    for (const Access &access : buffer_of(tensor, last_site).accesses)
        if ((readers_too || access.writes) && access.begin < end && begin < access.end)
            waited.insert(access.task);
    auto running = [&] {
        return std::any_of(waited.begin(), waited.end(), [&](uint32_t n) { return tasks_.count(n) != 0; });
    };
    while (running()) turn(-1);
}

uint64_t Runtime::get(const ChipTensor &tensor, uint32_t ndims, const uint32_t *indices, Site site) {
    last_site = site;
    uint64_t address = element_address(tensor, ndims, indices, site);
    if (job_.hollow) need_values(tensor, "the orchestration reads", site);
    if (graphs_) graph_.waited(tensor, buffers_);
    wait_for_access(tensor, false);
    uint64_t value = 0;
    memcpy(&value, reinterpret_cast<const void *>(address), get_element_size(tensor.dtype));
    return value;
}

void Runtime::set(const ChipTensor &tensor, uint32_t ndims, const uint32_t *indices, uint64_t value,
                  Site site) {
    last_site = site;
    uint64_t address = element_address(tensor, ndims, indices, site);
    wait_for_access(tensor, true);
    memcpy(reinterpret_cast<void *>(address), &value, get_element_size(tensor.dtype));
}

// --- what is recorded of a task

uint16_t Runtime::core_id(const Task &task, int32_t block) const {
    uint32_t turn = task.dispatch_id + static_cast<uint32_t>(block);
    auto clusters = static_cast<uint32_t>(job_.clusters);
    // cube cores first, then the vector cores, as the runtime numbers them
    return static_cast<uint16_t>(task.rows[0] >= 0 ? turn % clusters : clusters + turn % (2 * clusters));
}

Row Runtime::row_of(const Task &task, int32_t block) const {
    Row row{};
    row.task_id = task.id;
    row.dispatch_id = task.dispatch_id + static_cast<uint32_t>(block);
    row.block_idx = static_cast<uint32_t>(block);
    row.block_count = static_cast<uint32_t>(task.block_count);
    row.core_id = core_id(task, block);
    row.subtask = task.rows[0] >= 0 ? 0 : 1;
    int members = 0;
    for (int i = 0; i < 3; ++i)
        if (task.rows[i] >= 0) {
            row.func[members++] = job_.kernels[static_cast<size_t>(task.rows[i])].func_id;
            if (members == 1) row.subtask = static_cast<uint8_t>(i);
        }
    row.func_count = static_cast<uint8_t>(members);
    row.core_type = members > 1 ? 2 : task.rows[0] >= 0 ? 0 : 1;
    return row;
}

void Runtime::record(Task &task, Stage stage, int32_t block, bool partial) {
    if (!recorder_.on() || (job_.picks() && !task.picked)) return;
    Row row = row_of(task, block);
    row.stage = static_cast<uint8_t>(stage);
    if (stage == Stage::After) row.cycles = static_cast<uint64_t>(task.cycles);
    row.partial = partial;
    for (size_t i = 0; i < task.tensors.size(); ++i) {
        const TaskTensor &argument = task.tensors[i];
        if (argument.role == (stage == Stage::Before ? Role::Output : Role::Input)) continue;
        bool marked = task.marked >> i & 1;
        if (!job_.picks() && !recorder_.wants(marked)) continue;
        const ChipTensor &tensor = argument.tensor;
        row.arg_index = static_cast<uint8_t>(i);
        row.role = static_cast<uint8_t>(argument.role);
        row.scalar = 0;
        row.dtype = static_cast<uint8_t>(tensor.dtype);
        row.ndims = static_cast<uint8_t>(tensor.ndims);
        row.contiguous = tensor.is_contiguous;
        memcpy(row.shape, tensor.shapes, sizeof row.shape);
        memcpy(row.strides, tensor.strides, sizeof row.strides);
        row.start_offset = tensor.start_offset;
        row.pointer = tensor.buffer.addr;
        Buffer *buffer = buffers_.find(tensor.buffer.addr);
        row.buffer_size = buffer ? buffer->size : tensor.buffer.size;
        row.bin_offset = row.bin_size = 0;
        if (job_.picks() || recorder_.wants_payload(marked)) {
            row.bin_size = tensor.nbytes();
            row.bin_offset = stage == Stage::Before ? argument.before : argument.after;
            // blocks of one task share what was taken when its first one was dispatched
            if (block == 0) recorder_.payload(tensor, row.bin_offset);
        }
        recorder_.append(row);
    }
    if (stage == Stage::After) return;
    for (size_t i = 0; i < task.scalars.size(); ++i) {
        size_t slot = task.tensors.size() + i;
        if (!job_.picks() && !recorder_.wants(task.marked >> slot & 1)) continue;
        Row scalar = row_of(task, block);
        scalar.arg_index = static_cast<uint8_t>(slot);
        scalar.scalar = 1;
        scalar.contiguous = 1;
        scalar.dtype = task.scalar_types[i];
        scalar.value = task.scalars[i];
        scalar.ambiguous = task.ambiguous >> slot & 1;
        recorder_.append(scalar);
    }
}

} // namespace insight_trace::capture
