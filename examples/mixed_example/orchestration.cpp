// One mix for each tile of 64 rows.
#include <cstdint>
#include <vector>

#include "pto_orchestration_api.h"

extern "C" __attribute__((visibility("default"))) PTO2OrchestrationConfig
aicpu_orchestration_config(const ChipTaskArgs &) {
    return PTO2OrchestrationConfig{9};
}

extern "C" __attribute__((visibility("default"))) void aicpu_orchestration_entry(const ChipTaskArgs &args) {
    MixedKernels kernels;
    kernels.aic_kernel_id = 0;
    kernels.aiv0_kernel_id = 1;
    kernels.aiv1_kernel_id = 2;
    uint32_t shape[2] = {64, 64};
    for (uint32_t row = 0; row < args.tensor(0).ref().shapes[0]; row += 64) {
        uint32_t offset[2] = {row, 0};
        std::vector<ChipTensor> tiles;
        for (int i = 0; i < 9; ++i) tiles.push_back(args.tensor(i).ref().view(shape, offset));
        CoreTaskArgs task;
        for (int i = 0; i < 9; i += 3) {
            task.add_input(tiles[i], tiles[i + 1]);
            task.add_output(tiles[i + 2]);
        }
        PTO2_SCOPE() { rt_submit_task(kernels, task); }
    }
}
