// A single task; its rows say how many blocks it has.
#include <cstdint>

#include "pto_orchestration_api.h"

extern "C" __attribute__((visibility("default"))) PTO2OrchestrationConfig
aicpu_orchestration_config(const ChipTaskArgs &) {
    return PTO2OrchestrationConfig{3};
}

extern "C" __attribute__((visibility("default"))) void aicpu_orchestration_entry(const ChipTaskArgs &args) {
    const ChipTensor &x = args.tensor(0).ref();
    CoreTaskArgs task;
    task.add_input(x);
    task.add_output(args.tensor(1).ref());
    float factor = from_u64<float>(args.scalar(0));
    task.add_scalar(factor);
    task.launch_spec.set_block_num(static_cast<int16_t>(x.shapes[0] / 16));
    rt_submit_aiv_task(0, task);
}
