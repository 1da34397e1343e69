// What an orchestration includes: tensors, task arguments, submit, scopes. Written against the names that
// orchestrations use; the work is done in the capture runner.
#pragma once

#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "pto_earlier_names.h"
#include "pto_types.h"

#define PTO2_ERROR_NONE                       0
#define PTO2_ERROR_SCOPE_DEADLOCK             1
#define PTO2_ERROR_HEAP_RING_DEADLOCK         2
#define PTO2_ERROR_FLOW_CONTROL_DEADLOCK      3
#define PTO2_ERROR_DEP_POOL_OVERFLOW          4
#define PTO2_ERROR_INVALID_ARGS               5
#define PTO2_ERROR_DEPENDENCY_OVERFLOW        6
#define PTO2_ERROR_REQUIRE_SYNC_START_INVALID 7
#define PTO2_ERROR_TENSOR_WAIT_TIMEOUT        8
#define PTO2_ERROR_EXPLICIT_ORCH_FATAL        9
#define PTO2_ERROR_SCOPE_TASKS_OVERFLOW       10
#define PTO2_ERROR_TENSORMAP_OVERFLOW         11
#define PTO2_ERROR_SCHEDULER_TIMEOUT          100
#define PTO2_MAX_RING_DEPTH                   4

struct PTO2OrchestrationConfig {
    int expected_arg_count;
};
#define PTO2_ORCHESTRATION_CONFIG_DEFINED

namespace insight_trace::capture {
template <class Args>
inline TaskOutputTensors submit(CallKind kind, const MixedKernels &kernels, const Args &args, Site site) {
    TaskOutputTensors made;
    if (insight_trace_capture_is_fatal()) return made;
    const ChipTensor *outputs[CORE_MAX_TENSOR_ARGS];
    uint32_t count = 0;
    TaskCall call = args.call(kind, kernels, site);
    made.set_task_id({insight_trace_capture_submit(&call, outputs, &count)});
    for (uint32_t i = 0; i < count; ++i) made.materialize_output(*outputs[i]);
    return made;
}

[[gnu::format(printf, 3, 4)]] inline void report(int32_t code, Site site, const char *format, ...) {
    char text[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    insight_trace_capture_fatal(code, text, site);
}
[[gnu::format(printf, 2, 3)]] inline void say(bool shown, const char *format, ...) {
    if (!shown) return;
    va_list list;
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
}
} // namespace insight_trace::capture

// --- submit

inline TaskOutputTensors rt_submit_task(const MixedKernels &kernels, const CoreTaskArgs &args,
                                        INSIGHT_TRACE_HERE) {
    return insight_trace::capture::submit(insight_trace::capture::CallKind::Kernels, kernels, args, site);
}
inline TaskOutputTensors rt_submit_aic_task(int32_t kernel, const CoreTaskArgs &args, INSIGHT_TRACE_HERE) {
    MixedKernels kernels;
    kernels.aic_kernel_id = kernel;
    return rt_submit_task(kernels, args, site);
}
inline TaskOutputTensors rt_submit_aiv_task(int32_t kernel, const CoreTaskArgs &args, INSIGHT_TRACE_HERE) {
    MixedKernels kernels;
    kernels.aiv0_kernel_id = kernel;
    return rt_submit_task(kernels, args, site);
}
inline TaskOutputTensors rt_submit_dummy_task(const CoreTaskArgs &args, INSIGHT_TRACE_HERE) {
    return insight_trace::capture::submit(insight_trace::capture::CallKind::Dummy, {}, args, site);
}

inline TaskOutputTensors alloc_tensors(const CoreTaskArgs &args, INSIGHT_TRACE_HERE) {
    return insight_trace::capture::submit(insight_trace::capture::CallKind::Allocate, {}, args, site);
}
inline TaskOutputTensors alloc_tensors(const TensorCreateInfo infos[], uint32_t count, INSIGHT_TRACE_HERE) {
    CoreTaskArgs args;
    for (uint32_t i = 0; i < count; ++i) args.add_output(infos[i]);
    return alloc_tensors(args, site);
}
// One overload for each count, so that the caller's line can follow.
#define INSIGHT_TRACE_ALLOC(parameters, ...)                                                                 \
    inline TaskOutputTensors alloc_tensors parameters {                                                      \
        CoreTaskArgs args;                                                                                   \
        args.add_output(__VA_ARGS__);                                                                        \
        return alloc_tensors(args, site);                                                                    \
    }
using InsightTraceInfo = const TensorCreateInfo;
INSIGHT_TRACE_ALLOC((InsightTraceInfo & a, INSIGHT_TRACE_HERE), a)
INSIGHT_TRACE_ALLOC((InsightTraceInfo & a, InsightTraceInfo &b, INSIGHT_TRACE_HERE), a, b)
INSIGHT_TRACE_ALLOC((InsightTraceInfo & a, InsightTraceInfo &b, InsightTraceInfo &c, INSIGHT_TRACE_HERE), a,
                    b, c)
INSIGHT_TRACE_ALLOC((InsightTraceInfo & a, InsightTraceInfo &b, InsightTraceInfo &c, InsightTraceInfo &d,
                     INSIGHT_TRACE_HERE),
                    a, b, c, d)
template <class... More>
inline TaskOutputTensors alloc_tensors(InsightTraceInfo &a, InsightTraceInfo &b, InsightTraceInfo &c,
                                       InsightTraceInfo &d, InsightTraceInfo &e, const More &...more) {
    CoreTaskArgs args;
    args.add_output(a, b, c, d, e, more...);
    return alloc_tensors(args);
}

// --- scopes

inline void rt_scope_begin(PTO2ScopeMode mode = PTO2ScopeMode::AUTO, INSIGHT_TRACE_HERE) {
    insight_trace_capture_scope(true, mode == PTO2ScopeMode::MANUAL, site);
}
inline void rt_scope_end(INSIGHT_TRACE_HERE) { insight_trace_capture_scope(false, false, site); }
inline void rt_orchestration_done() {}

class PTO2ScopeGuard {
  public:
    explicit PTO2ScopeGuard(PTO2ScopeMode mode = PTO2ScopeMode::AUTO, INSIGHT_TRACE_HERE) : site_(site) {
        insight_trace_capture_scope(true, mode == PTO2ScopeMode::MANUAL, site);
    }
    ~PTO2ScopeGuard() { insight_trace_capture_scope(false, false, site_); }
    PTO2ScopeGuard(const PTO2ScopeGuard &) = delete;

  private:
    insight_trace::capture::Site site_;
};
#define INSIGHT_TRACE_JOIN_(a, b) a##b
#define INSIGHT_TRACE_JOIN(a, b)  INSIGHT_TRACE_JOIN_(a, b)
#define PTO2_SCOPE_GUARD(...)                                                                                \
    [[maybe_unused]] PTO2ScopeGuard INSIGHT_TRACE_JOIN(scope_guard_, __COUNTER__) { __VA_ARGS__ }
#define PTO2_SCOPE(...) if (PTO2ScopeGuard INSIGHT_TRACE_JOIN(scope_guard_, __COUNTER__){__VA_ARGS__}; true)

// --- values, cores, errors, log

template <class T = uint64_t>
inline T get_tensor_data(const ChipTensor &tensor, uint32_t ndims, const uint32_t indices[],
                         INSIGHT_TRACE_HERE) {
    return from_u64<T>(insight_trace_capture_get(&tensor, ndims, indices, site));
}
template <class T = uint64_t>
inline void set_tensor_data(const ChipTensor &tensor, uint32_t ndims, const uint32_t indices[], T value,
                            INSIGHT_TRACE_HERE) {
    insight_trace_capture_set(&tensor, ndims, indices, to_u64(value), site);
}
inline int32_t rt_available_cluster_count() { return insight_trace_capture_cores(true); }
inline int32_t rt_available_aiv_count() { return insight_trace_capture_cores(false); }
inline bool rt_is_fatal() { return insight_trace_capture_is_fatal(); }

#define rt_report_fatal(code, ...) ::insight_trace::capture::report((code), {__FILE__, __LINE__}, __VA_ARGS__)
// Between two looks at memory that another core writes.
#define SPIN_WAIT_HINT() ((void)0)
#define LOG_ERROR(...)   ::insight_trace::capture::say(true, __VA_ARGS__)
#define LOG_WARN(...)    ::insight_trace::capture::say(true, __VA_ARGS__)
#define LOG_TIMING(...)  ::insight_trace::capture::say(false, __VA_ARGS__)
// Levels of detail that there were until July 2026.
#define LOG_INFO_V0(...) LOG_INFO(__VA_ARGS__)
#define LOG_INFO_V1(...) LOG_INFO(__VA_ARGS__)
#define LOG_INFO_V2(...) LOG_INFO(__VA_ARGS__)
#define LOG_INFO_V3(...) LOG_INFO(__VA_ARGS__)
#define LOG_INFO_V4(...) LOG_INFO(__VA_ARGS__)
#define LOG_INFO_V5(...) LOG_INFO(__VA_ARGS__)
#define LOG_INFO_V6(...) LOG_INFO(__VA_ARGS__)
#define LOG_INFO_V7(...) LOG_INFO(__VA_ARGS__)
#define LOG_INFO_V8(...) LOG_INFO(__VA_ARGS__)
#define LOG_INFO_V9(...) LOG_INFO(__VA_ARGS__)
#define LOG_INFO(...)    ::insight_trace::capture::say(false, __VA_ARGS__)
#define LOG_DEBUG(...)   ::insight_trace::capture::say(false, __VA_ARGS__)

// --- graphs: a graph that may be replayed is run as what it holds, each time

struct GraphScopeResult {
    bool execute_block = true;
    bool recording = false;
    PTO2TaskId task_id = PTO2TaskId::invalid();
    void *recording_handle = nullptr;
};
using GraphSubmitResult = GraphScopeResult;
constexpr uint64_t GRAPH_KEY(const char *text) {
    uint64_t hash = 1469598103934665603ull;
    for (; *text; ++text) hash = (hash ^ static_cast<uint8_t>(*text)) * 1099511628211ull;
    return hash;
}
template <class... Config>
inline GraphSubmitResult rt_submit_graph(void (*function)(const GraphTaskArgs &, Config...),
                                         const GraphTaskArgs &args, std::common_type_t<Config>... config) {
    function(args, config...);
    return {};
}
template <class... Config>
inline GraphSubmitResult rt_submit_graph(uint64_t, void (*function)(const GraphTaskArgs &, Config...),
                                         const GraphTaskArgs &args, std::common_type_t<Config>... config) {
    function(args, config...);
    return {};
}
inline void rt_graph_commit() {}

#include "pto_arg_with_deps.h"
