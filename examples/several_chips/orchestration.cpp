// What one chip runs: a single task.
#include "pto_orchestration_api.h"

extern "C" __attribute__((visibility("default"))) PTO2OrchestrationConfig
aicpu_orchestration_config(const ChipTaskArgs &) {
    return PTO2OrchestrationConfig{5};
}

extern "C" __attribute__((visibility("default"))) void aicpu_orchestration_entry(const ChipTaskArgs &args) {
    CoreTaskArgs task;
    task.add_input(args.tensor(0).ref());
    task.add_output(args.tensor(1).ref());
    task.add_inout(args.tensor(2).ref());
    task.add_scalar(args.scalar(0));
    task.add_scalar(args.scalar(1));
    PTO2_SCOPE() { rt_submit_aiv_task(0, task); }
}
