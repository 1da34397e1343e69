// Waits for a second of the system counter, then says how long it was.
#include <cstdint>
#include <pto/pto-inst.hpp>

#include "common/platform_config.h"
#include "tensor.h"

extern "C" void kernel_entry(int64_t *args) {
    auto *tensor = reinterpret_cast<ChipTensor *>(args[0]);
    const int64_t start = get_sys_cnt();
    while (get_sys_cnt() - start < static_cast<int64_t>(PLATFORM_PROF_SYS_CNT_FREQ)) {
    }
    reinterpret_cast<int32_t *>(tensor->buffer.addr)[0] = static_cast<int32_t>(get_sys_cnt() - start);
}
