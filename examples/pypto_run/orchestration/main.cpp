// Scales the first blocks of x, then squares every block of the result by a task of its own.
#include <stdint.h>

#include "pto_orchestration_api.h"

extern "C" {

__attribute__((visibility("default"))) PTO2OrchestrationConfig
aicpu_orchestration_config(const ChipStorageTaskArgs &orch_args) {
    (void)orch_args;
    return PTO2OrchestrationConfig{.expected_arg_count = 3};
}

__attribute__((visibility("default"))) void aicpu_orchestration_entry(const ChipStorageTaskArgs &orch_args) {
    Tensor ext_x = from_tensor_arg(orch_args.tensor(0));
    Tensor ext_z = from_tensor_arg(orch_args.tensor(2));
    int64_t n_blocks = static_cast<int64_t *>(orch_args.tensor(1).data_as<void>())[0];

    PTO2_SCOPE() {
        uint32_t y_shapes[2] = {128, 64};
        TensorCreateInfo y_info(y_shapes, 2, DataType::FLOAT32);
        TaskOutputTensors allocated = alloc_tensors(y_info);
        const Tensor &y = allocated.get_ref(0);

        Arg first;
        first.add_input(ext_x);
        first.add_inout(y);
        first.add_scalar(to_u64(0.5f));
        first.add_scalar(n_blocks);
        pto2_rt_submit_aiv_task(0, first);

        for (uint32_t block = 0; block < 8; ++block) {
            uint32_t shapes[2] = {16, 64};
            uint32_t offsets[2] = {block * 16, 0};
            Tensor from = y.view(shapes, offsets);
            Tensor to = ext_z.view(shapes, offsets);
            Arg next;
            next.add_input(from);
            next.add_output(to);
            pto2_rt_submit_aiv_task(1, next);
        }
    }
}

} // extern "C"
