// Work that ends after its kernel: conditions that a kernel registers for the scheduler to wait for.
#pragma once

#include "intrinsic.h"
#include "pto/comm/pto_comm_inst.hpp"

constexpr uint32_t COMPLETION_ENGINE_SDMA = 0, COMPLETION_ENGINE_ROCE = 1, COMPLETION_ENGINE_URMA = 2,
                   COMPLETION_ENGINE_CCU = 3;
constexpr int32_t COMPLETION_TYPE_COUNTER = 0, COMPLETION_TYPE_SDMA_EVENT_RECORD = 1,
                  COMPLETION_TYPE_URMA_EVENT_HANDLE = 2;

struct CompletionToken {
    uint64_t addr;
    uint32_t expected_value;
    uint32_t engine;
    int32_t completion_type;
    uint64_t backend_cookie;
};

namespace pto2::detail {
inline void defer_error(AsyncCtx &context, int32_t code) {
    if (context.task_token.is_valid() && context.completion_error_code) *context.completion_error_code = code;
}
inline void defer_flush(AsyncCtx &context) {
    if (!context.task_token.is_valid() || !context.completion_count) return;
    dcci(reinterpret_cast<int32_t *>(reinterpret_cast<uint64_t>(context.completion_count) & ~63ull),
         SINGLE_CACHE_LINE, CACHELINE_OUT);
    dsb(DSB_DDR);
    pipe_barrier(PIPE_ALL);
}
} // namespace pto2::detail

inline bool async_ctx_is_deferred(const AsyncCtx &context) { return context.task_token.is_valid(); }

// False when the list is full, or when this task ends with its kernel.
inline bool register_completion_condition(AsyncCtx &context, const CompletionToken &token) {
    if (!context.task_token.is_valid() || !context.completion_count || !context.completion_entries)
        return false;
    const uint32_t index = *context.completion_count;
    if (index >= context.completion_capacity) {
        if (context.completion_error_code) *context.completion_error_code = PTO2_ERROR_ASYNC_WAIT_OVERFLOW;
        return false;
    }
    volatile DeferredCompletionEntry &entry = context.completion_entries[index];
    entry.addr = token.addr;
    entry.backend_cookie = token.backend_cookie;
    entry.expected_value = token.expected_value;
    entry.engine = token.engine;
    entry.completion_type = token.completion_type;
    entry._pad = 0;
    *context.completion_count = index + 1;
    return true;
}

inline void send_notification(volatile void *counter, int32_t value, pto::comm::NotifyOp op,
                              INSIGHT_TRACE_AT) {
    pto::comm::Signal signal(static_cast<int32_t *>(const_cast<void *>(counter)));
    pto::comm::TNOTIFY(signal, value, op, at);
}

inline void save_expected_notification_counter(AsyncCtx &context, volatile void *counter, uint32_t expected) {
    register_completion_condition(context, {reinterpret_cast<uint64_t>(counter), expected,
                                            COMPLETION_ENGINE_SDMA, COMPLETION_TYPE_COUNTER, 0});
    pto2::detail::defer_flush(context);
}
