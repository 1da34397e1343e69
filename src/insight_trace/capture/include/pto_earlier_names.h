// Names that orchestrations used between April and August 2026 for what is called otherwise today.
#pragma once

#include "pto_types.h"

using L2TaskArgs = ChipTaskArgs;
using L0TaskArgs = CoreTaskArgs;

// Arguments of a scene were no tensors yet, and were made into ones.
inline ChipTensor from_tensor_arg(const ChipTensor &tensor, bool manual = false, int32_t version = 0) {
    ChipTensor made = tensor;
    made.manual_dep = manual;
    made.version = version;
    return made;
}

#define pto2_rt_submit_task       rt_submit_task
#define pto2_rt_submit_aic_task   rt_submit_aic_task
#define pto2_rt_submit_aiv_task   rt_submit_aiv_task
#define pto2_rt_submit_dummy_task rt_submit_dummy_task
#define pto2_rt_report_fatal      rt_report_fatal
#define pto2_rt_is_fatal          rt_is_fatal
#define pto2_rt_scope_begin       rt_scope_begin
#define pto2_rt_scope_end         rt_scope_end
#define LOG_ALWAYS(...)           LOG_INFO(__VA_ARGS__)
