// The current device for a while.
#pragma once

#include <c10/core/DeviceGuard.h>

#include "torch_npu/csrc/core/npu/NPUStream.h"

namespace c10_npu {
class NPUGuard {
  public:
    explicit NPUGuard(c10::DeviceIndex device) : guard_(c10::Device(c10::DeviceType::PrivateUse1, device)) {}
    explicit NPUGuard(c10::Device device) : guard_(device) {}

  private:
    c10::DeviceGuard guard_;
};
using OptionalNPUGuard = c10::OptionalDeviceGuard;
} // namespace c10_npu
