// Checks that kernels write for debug builds.
#pragma once

#define PTO_ASSERT(condition, ...)
#define PTO_CPU_ASSERT(condition, ...)
