// Streams of the simulated device, as extensions name them.
#pragma once

#include <c10/core/Device.h>
#include <cstdint>

#include "acl/acl.h"

namespace c10_npu {

class NPUStream {
  public:
    explicit NPUStream(aclrtStream stream) : stream_(stream) {}
    // The argument asks whether queued work is handed over first: nothing waits in a queue here.
    aclrtStream stream(bool = true) const { return stream_; }
    operator aclrtStream() const { return stream_; }
    int synchronize() const { return aclrtSynchronizeStream(stream_); }
    int64_t id() const { return reinterpret_cast<int64_t>(stream_); }

  private:
    aclrtStream stream_;
};

NPUStream getCurrentNPUStream(c10::DeviceIndex device = -1);
NPUStream getDefaultNPUStream(c10::DeviceIndex device = -1);
NPUStream getNPUStreamFromPool(c10::DeviceIndex device = -1);
void setCurrentNPUStream(NPUStream stream);
int GetDevice(int32_t *device);
int SetDevice(c10::DeviceIndex device);
c10::DeviceIndex current_device();

} // namespace c10_npu
