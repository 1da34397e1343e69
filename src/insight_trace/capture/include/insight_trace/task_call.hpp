// What a compiled orchestration and the capture runner agree on: plain data and a handful of functions that
// the orchestration finds in the runner when it is loaded.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

struct ChipTensor;

namespace insight_trace::capture {

// A line of the orchestration.
struct Site {
    const char *file;
    int line;
};

// The line of whoever calls a function that has INSIGHT_TRACE_HERE as its last parameter.
struct Here : Site {
    constexpr Here(const char *file_ = __builtin_FILE(), int line_ = __builtin_LINE()) : Site{file_, line_} {}
};
#define INSIGHT_TRACE_HERE ::insight_trace::capture::Site site = ::insight_trace::capture::Here()

// Ends the orchestration: what it did wrong, and where.
struct OrchestrationError : std::runtime_error {
    Site site;
    OrchestrationError(const std::string &text, Site site_) : std::runtime_error(text), site(site_) {}
};

struct Predicate {
    const ChipTensor *tensor;
    uint32_t ndims;
    const uint32_t *indices;
    uint8_t op; // PredicateOp; 0: no predicate
    int64_t target;
};

enum class CallKind : int32_t { Kernels, Allocate, Dummy };

struct TaskCall {
    CallKind kind;
    int32_t kernels[3]; // func ids of the cube and the two vector members, -1: none
    int32_t tensor_count;
    const void *const *tensors; // ChipTensor, or TensorCreateInfo where the tag is OUTPUT
    const int32_t *tags;        // TensorArgType
    int32_t scalar_count;
    const uint64_t *scalars;
    const uint8_t *scalar_types; // DataType
    uint64_t marked;             // bit n: argument n was given to dump()
    uint64_t ambiguous;
    uint32_t dependency_count;
    const uint64_t *dependencies;
    int32_t block_count;
    bool sync_start;
    bool early; // may be placed before those that it waits for are done
    Predicate predicate;
    const char *error; // what went wrong when the arguments were put together, or null
    Site site;
};

} // namespace insight_trace::capture

extern "C" {
// Returns the task's id; `outputs` gets the tensors that the runtime made for it.
uint64_t insight_trace_capture_submit(const insight_trace::capture::TaskCall *call,
                                      const ChipTensor **outputs, uint32_t *output_count);
void insight_trace_capture_scope(bool begin, bool manual, insight_trace::capture::Site site);
uint64_t insight_trace_capture_get(const ChipTensor *tensor, uint32_t ndims, const uint32_t *indices,
                                   insight_trace::capture::Site site);
void insight_trace_capture_set(const ChipTensor *tensor, uint32_t ndims, const uint32_t *indices,
                               uint64_t value, insight_trace::capture::Site site);
int32_t insight_trace_capture_cores(bool cube);
void insight_trace_capture_fatal(int32_t code, const char *text, insight_trace::capture::Site site);
bool insight_trace_capture_is_fatal();
}
