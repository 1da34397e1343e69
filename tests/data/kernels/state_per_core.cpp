// State that each core has for itself, kept across a wait for all others.
#include <cstdint>
#include <pto/pto-inst.hpp>

#include "intrinsic.h"
#include "tensor.h"

[[block_local]] static int32_t mine;

extern "C" void kernel_entry(int64_t *args) {
    auto *tensor = reinterpret_cast<ChipTensor *>(args[0]);
    auto *out = reinterpret_cast<int32_t *>(tensor->buffer.addr);
    const int32_t block = get_block_idx(args);
    mine = 100 + block;
    ffts_cross_core_sync(PIPE_MTE3, 1 | 0 << 4 | 5 << 8);
    wait_flag_dev(5);
    out[block] = mine;
}
