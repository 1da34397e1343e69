// Constants of the platform that kernels compute with.
#pragma once

#include <cstdint>

// get_sys_cnt() ticks in a second.
#if defined(PTO_NPU_ARCH_A5)
constexpr uint64_t PLATFORM_PROF_SYS_CNT_FREQ = 1000000000;
#else
constexpr uint64_t PLATFORM_PROF_SYS_CNT_FREQ = 50000000;
#endif
