// A barrier of one block more than there are.
#include <cstdint>
#include <pto/pto-inst.hpp>

#include "intrinsic.h"
#include "tensor.h"

extern "C" void kernel_entry(int64_t *args) {
    auto *tensor = reinterpret_cast<ChipTensor *>(args[0]);
    auto *counter = reinterpret_cast<int32_t *>(tensor->buffer.addr);
    set_st_atomic_cfg(ATOMIC_S32, ATOMIC_SUM);
    st_atomic<int32_t>(1, counter);
    const int32_t wanted = get_block_num(args) + static_cast<int32_t>(args[1]);
    while (static_cast<int32_t>(ld_dev(counter, 0)) < wanted) {
    }
}
