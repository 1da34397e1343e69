// For each tile of 64 rows: a sum, two scalar additions that do not depend on each other, a product.
#include <cstdint>

#include "pto_orchestration_api.h"

namespace {

enum Kernel : int32_t { kAdd = 0, kAddScalar = 1, kMultiply = 2 };
constexpr uint32_t kRows = 64;

ChipTensor tile(const ChipTensor &tensor, uint32_t first) {
    uint32_t shape[2] = {kRows, tensor.shapes[1]}, offset[2] = {first, 0};
    return tensor.view(shape, offset);
}

} // namespace

extern "C" __attribute__((visibility("default"))) PTO2OrchestrationConfig
aicpu_orchestration_config(const ChipTaskArgs &) {
    return PTO2OrchestrationConfig{3};
}

extern "C" __attribute__((visibility("default"))) void aicpu_orchestration_entry(const ChipTaskArgs &args) {
    const ChipTensor &a = args.tensor(0).ref();
    uint32_t shape[2] = {kRows, a.shapes[1]};
    TensorCreateInfo made(shape, 2, DataType::FLOAT32);
    for (uint32_t row = 0; row < a.shapes[0]; row += kRows) {
        PTO2_SCOPE() {
            ChipTensor left = tile(a, row), right = tile(args.tensor(1).ref(), row);
            ChipTensor out = tile(args.tensor(2).ref(), row);

            CoreTaskArgs add;
            add.add_input(left, right);
            add.add_output(made);
            add.dump(left);
            TaskOutputTensors sum = rt_submit_aiv_task(kAdd, add);

            float one = 1.0f, two = 2.0f;
            int32_t count = static_cast<int32_t>(kRows);
            CoreTaskArgs plus_one;
            plus_one.add_input(sum.get_ref(0));
            plus_one.add_output(made);
            plus_one.add_scalar(one, count);
            plus_one.dump(made, one);
            TaskOutputTensors first = rt_submit_aiv_task(kAddScalar, plus_one);

            CoreTaskArgs plus_two;
            plus_two.add_input(sum.get_ref(0));
            plus_two.add_output(made);
            plus_two.add_scalar(two, count);
            TaskOutputTensors second = rt_submit_aiv_task(kAddScalar, plus_two);

            CoreTaskArgs multiply;
            multiply.add_input(first.get_ref(0), second.get_ref(0));
            multiply.add_output(out);
            multiply.dump();
            rt_submit_aiv_task(kMultiply, multiply);
        }
    }
}
