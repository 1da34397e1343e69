// What kind of device a tensor is on.
#pragma once

#include <ATen/ATen.h>

namespace torch_npu {
namespace utils {
inline c10::DeviceType get_npu_device_type() { return c10::DeviceType::PrivateUse1; }
inline bool is_npu(const at::Tensor &tensor) {
    return tensor.device().type() == c10::DeviceType::PrivateUse1;
}
} // namespace utils
} // namespace torch_npu
