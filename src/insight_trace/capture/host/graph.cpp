#include "graph.hpp"

#include <algorithm>
#include <cstdio>

#include "pto_types.h"

namespace insight_trace::capture {

using engine::fail;
using engine::Fault;

// Whether two views of a buffer share an element. Views with the same strides are boxes of one grid; others
// share whatever lies between their ends.
static bool overlap(const ChipTensor &one, const ChipTensor &other) {
    auto [begin, end] = byte_range(one);
    auto [from, to] = byte_range(other);
    if (begin >= to || from >= end) return false;
    if (one.ndims != other.ndims || one.dtype != other.dtype) return true;
    uint64_t left = one.start_offset, right = other.start_offset;
    for (uint32_t d = 0; d < one.ndims; ++d) {
        uint64_t step = one.strides[d];
        if (step != other.strides[d] || step == 0) return true;
        bool inside = d == 0 || (uint64_t(one.shapes[d]) * step <= one.strides[d - 1] &&
                                 uint64_t(other.shapes[d]) * step <= one.strides[d - 1]);
        if (!inside) return true;
        uint64_t a = left / step, b = right / step;
        if (a >= b + other.shapes[d] || b >= a + one.shapes[d]) return false;
        left %= step;
        right %= step;
    }
    return true;
}

static bool covers(const ChipTensor &whole, const ChipTensor &part) {
    auto [begin, end] = byte_range(whole);
    auto [from, to] = byte_range(part);
    return whole.is_contiguous && begin <= from && to <= end;
}

void Graph::wait_for(uint32_t before, uint32_t after, bool orchestrator) {
    if (before >= after) return;
    for (size_t i = first_edge_; i < edges_.size(); ++i)
        if (edges_[i].before == before && edges_[i].orchestrator == orchestrator) return;
    edges_.push_back({before, after, orchestrator});
}

// The rules of the runtime: whoever is given a tensor waits for the task that allocated it; readers, and
// those that read and write, wait for earlier writers; who only writes waits for nobody, and nobody waits for
// readers.
void Graph::add(const TaskCall &call, uint64_t id, uint32_t dispatch_id, bool manual, Buffers &buffers) {
    auto number = static_cast<uint32_t>(tasks_.size());
    GraphTask task{};
    task.id = id;
    for (int i = 0; i < 3; ++i) task.func[i] = call.kind == CallKind::Kernels ? call.kernels[i] : -1;
    task.dispatch_id = dispatch_id;
    task.block_count = static_cast<uint32_t>(call.block_count);
    task.line = call.site.line;
    task.sync_start = call.sync_start;
    task.early = call.early;
    tasks_.push_back(task);
    number_of_[id] = number;
    if (edges_.size() && edges_.back().after != number) first_edge_ = edges_.size();
    for (uint32_t i = 0; i < call.dependency_count; ++i)
        if (auto found = number_of_.find(call.dependencies[i]); found != number_of_.end())
            wait_for(found->second, number, false);
    for (int i = 0; !manual && i < call.tensor_count; ++i) {
        auto tag = static_cast<TensorArgType>(call.tags[i]);
        if (tag == TensorArgType::OUTPUT) continue;
        const auto &tensor = *static_cast<const ChipTensor *>(call.tensors[i]);
        if (auto owner = number_of_.find(tensor.owner_task_id.raw); owner != number_of_.end())
            wait_for(owner->second, number, false);
        Buffer *buffer = buffers.find(tensor.buffer.addr);
        bool reads = tag == TensorArgType::INPUT || tag == TensorArgType::INOUT;
        if (!buffer || !reads || tensor.manual_dep) continue;
        auto met = [&](const Written &earlier) {
            if (!overlap(tensor, earlier.tensor)) return false;
            wait_for(earlier.task, number, false);
            return tag == TensorArgType::INOUT && covers(tensor, earlier.tensor);
        };
        auto &written = buffer->written;
        written.erase(std::remove_if(written.begin(), written.end(), met), written.end());
    }
    for (int i = 0; !manual && i < call.tensor_count; ++i) {
        auto tag = static_cast<TensorArgType>(call.tags[i]);
        if (tag != TensorArgType::INOUT && tag != TensorArgType::OUTPUT_EXISTING) continue;
        const auto &tensor = *static_cast<const ChipTensor *>(call.tensors[i]);
        if (!tensor.manual_dep) made(number, tensor, buffers);
    }
}

void Graph::made(uint32_t task, const ChipTensor &tensor, Buffers &buffers) {
    Buffer *buffer = buffers.find(tensor.buffer.addr);
    if (buffer) buffer->written.push_back({task, tensor});
}

void Graph::waited(const ChipTensor &tensor, Buffers &buffers) {
    Buffer *buffer = buffers.find(tensor.buffer.addr);
    if (!buffer) return;
    auto next = static_cast<uint32_t>(tasks_.size());
    if (edges_.size() && edges_.back().after != next) first_edge_ = edges_.size();
    for (const Written &earlier : buffer->written)
        if (overlap(tensor, earlier.tensor)) wait_for(earlier.task, next, true);
}

void Graph::done(uint32_t task, int64_t cycles, bool skipped) {
    tasks_[task].cycles = cycles;
    tasks_[task].skipped = skipped;
}

void Graph::write(const std::string &path) const {
    FILE *file = fopen(path.c_str(), "wb");
    uint64_t counts[2] = {tasks_.size(), edges_.size()};
    bool good = file && fwrite(counts, sizeof counts, 1, file) == 1 &&
                fwrite(tasks_.data(), sizeof(GraphTask), tasks_.size(), file) == tasks_.size() &&
                fwrite(edges_.data(), sizeof(GraphEdge), edges_.size(), file) == edges_.size();
    if (file) good = fclose(file) == 0 && good;
    if (!good) fail(Fault::Environment, {}, "the tasks cannot be written to %s", path.c_str());
}

} // namespace insight_trace::capture
