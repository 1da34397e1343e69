// The lower runtime as device tests use it.
#pragma once

#include <cstdint>

using rtError_t = int;
constexpr rtError_t RT_ERROR_NONE = 0;

extern "C" {
rtError_t rtGetC2cCtrlAddr(uint64_t *address, uint32_t *size);
rtError_t rtGetAiCoreCount(uint32_t *count);
}
