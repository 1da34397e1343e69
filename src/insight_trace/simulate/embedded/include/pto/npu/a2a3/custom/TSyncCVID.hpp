// The cube core of a block tells its vector cores which slot of a communication buffer the block uses: that
// of its own number, so that blocks that run at the same time have different ones.
#pragma once

#include "pto/pto-inst.hpp"

namespace pto {

constexpr int kCvCommSlotBytes = 512;
constexpr int kCvMaxCores = 25;

template <int SlotBytes = kCvCommSlotBytes, int MaxCores = kCvMaxCores>
AICORE inline int TSYNC_CVID([[maybe_unused]] int block, [[maybe_unused]] __gm__ uint8_t *buffer) {
    static_assert(MaxCores > 0, "a block needs a slot");
    [[maybe_unused]] constexpr uint64_t flag = 12, cube_and_vector = 2;
    auto *told = reinterpret_cast<__gm__ volatile uint32_t *>(buffer + int64_t(block) * SlotBytes);
#if defined(__DAV_CUBE__)
    const int slot = static_cast<int>(get_coreid() & 0x7f) % MaxCores;
    *told = static_cast<uint32_t>(slot);
    dcci((__gm__ void *)told, SINGLE_CACHE_LINE);
    dsb(DSB_DDR);
    ffts_cross_core_sync(PIPE_MTE2, 1 | cube_and_vector << 4 | flag << 8);
    return slot;
#else
    dcci((__gm__ void *)told, SINGLE_CACHE_LINE);
    wait_flag_dev(flag);
    return static_cast<int>(*told);
#endif
}

} // namespace pto
