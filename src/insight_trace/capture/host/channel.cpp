#include "channel.hpp"

#include <cstdio>
#include <set>
#include <sstream>
#include <vector>

#include "pto_types.h"

namespace insight_trace::capture {

namespace {

// The fields of one line, taken one after the other. capture/orchestrate.py writes them.
class Line {
  public:
    explicit Line(const std::string &text) : in_(text) {}
    std::string text() {
        std::string field;
        std::getline(in_, field, '\t');
        return field;
    }
    uint64_t number() { return std::stoull(text()); }
    int64_t signed_number() { return std::stoll(text()); }
    Site site() {
        static std::set<std::string> files; // a site's text must stay
        std::string file = text();
        return {files.insert(file).first->c_str(), static_cast<int>(signed_number())};
    }
    ChipTensor tensor() {
        ChipTensor made{};
        made.buffer.addr = number();
        made.buffer.size = number();
        made.owner_task_id = PTO2TaskId::invalid();
        made.start_offset = number();
        made.dtype = static_cast<DataType>(number());
        made.ndims = static_cast<uint32_t>(number());
        for (uint32_t d = 0; d < made.ndims; ++d) made.shapes[d] = static_cast<uint32_t>(number());
        for (uint32_t d = 0; d < made.ndims; ++d) made.strides[d] = static_cast<uint32_t>(number());
        made.settle();
        return made;
    }
    TensorCreateInfo info() {
        uint32_t shapes[MAX_TENSOR_DIMS] = {};
        auto dtype = static_cast<DataType>(number());
        auto ndims = static_cast<uint32_t>(number());
        for (uint32_t d = 0; d < ndims; ++d) shapes[d] = static_cast<uint32_t>(number());
        TensorCreateInfo made(shapes, ndims, dtype);
        made.has_initial_value = number() != 0;
        made.initial_value = number();
        return made;
    }
    std::vector<uint32_t> indices() {
        std::vector<uint32_t> made(number());
        for (uint32_t &index : made) index = static_cast<uint32_t>(number());
        return made;
    }

  private:
    std::istringstream in_;
};

std::string submit(Line &line) {
    TaskCall call{};
    call.site = line.site();
    call.kind = static_cast<CallKind>(line.number());
    for (int32_t &kernel : call.kernels) kernel = static_cast<int32_t>(line.signed_number());
    call.block_count = static_cast<int32_t>(line.number());
    call.sync_start = line.number() != 0;
    call.early = line.number() != 0;
    call.marked = line.number();
    std::vector<int32_t> tags(line.number());
    std::vector<ChipTensor> tensors(tags.size());
    std::vector<TensorCreateInfo> infos(tags.size());
    std::vector<const void *> pointers(tags.size());
    for (size_t i = 0; i < tags.size(); ++i) {
        tags[i] = static_cast<int32_t>(line.number());
        if (tags[i] == static_cast<int32_t>(TensorArgType::OUTPUT)) {
            infos[i] = line.info();
            pointers[i] = &infos[i];
        } else {
            tensors[i] = line.tensor();
            pointers[i] = &tensors[i];
        }
    }
    std::vector<uint64_t> scalars(line.number());
    std::vector<uint8_t> types(scalars.size());
    for (size_t i = 0; i < scalars.size(); ++i) {
        scalars[i] = line.number();
        types[i] = static_cast<uint8_t>(line.number());
    }
    std::vector<uint64_t> dependencies(line.number());
    for (uint64_t &id : dependencies) id = line.number();
    call.tensor_count = static_cast<int32_t>(tags.size());
    call.tensors = pointers.data();
    call.tags = tags.data();
    call.scalar_count = static_cast<int32_t>(scalars.size());
    call.scalars = scalars.data();
    call.scalar_types = types.data();
    call.dependency_count = static_cast<uint32_t>(dependencies.size());
    call.dependencies = dependencies.data();
    const ChipTensor *outputs[CORE_MAX_TENSOR_ARGS];
    uint32_t count = 0;
    std::string answer = std::to_string(insight_trace_capture_submit(&call, outputs, &count));
    for (uint32_t i = 0; i < count; ++i) answer += "\t" + std::to_string(outputs[i]->buffer.addr);
    return answer;
}

std::string serve(Line &line) {
    std::string verb = line.text();
    if (verb == "submit") return submit(line);
    if (verb == "scope") {
        Site site = line.site();
        insight_trace_capture_scope(line.number() != 0, false, site);
        return "";
    }
    if (verb == "get" || verb == "set") {
        Site site = line.site();
        ChipTensor tensor = line.tensor();
        std::vector<uint32_t> at = line.indices();
        auto ndims = static_cast<uint32_t>(at.size());
        if (verb == "get") return std::to_string(insight_trace_capture_get(&tensor, ndims, at.data(), site));
        insight_trace_capture_set(&tensor, ndims, at.data(), line.number(), site);
        return "";
    }
    Site site = line.site();
    throw OrchestrationError(line.text(), site); // "fail": the other side says what happened
}

} // namespace

void serve_channel(int file) {
    FILE *in = fdopen(file, "r+");
    char *text = nullptr;
    size_t room = 0;
    for (ssize_t length; in && (length = getline(&text, &room, in)) > 0;) {
        std::string received(text, static_cast<size_t>(length - 1));
        if (received == "done") return;
        Line line(received);
        std::string answer = serve(line) + "\n";
        fseek(in, 0, SEEK_CUR);
        if (fputs(answer.c_str(), in) < 0 || fflush(in) != 0) break;
    }
    throw OrchestrationError("the orchestration ended without a word", {});
}

} // namespace insight_trace::capture
