// Formats of storage: the simulated device has plain ones alone.
#pragma once

#include <ATen/ATen.h>
#include <vector>

namespace at_npu {
namespace native {
inline int64_t get_npu_format(const at::Tensor &) { return 2; } // ND
inline std::vector<int64_t> get_npu_storage_sizes(const at::Tensor &tensor) {
    return {static_cast<int64_t>(tensor.storage().nbytes() / tensor.itemsize())};
}
inline at::Tensor npu_format_cast(const at::Tensor &tensor, int64_t) { return tensor; }
inline at::Tensor empty_with_format(at::IntArrayRef sizes, const at::TensorOptions &options, int64_t = 2,
                                    bool = false) {
    return at::empty(sizes, options);
}
} // namespace native
} // namespace at_npu
