// The tile API in one include, as kernels name it.
#pragma once

#include "pto/comm/pto_comm_inst.hpp"
#include "pto/common/call_forms.hpp"
#include "pto/common/fifo.hpp"
#include "pto/common/fifo_conversion.hpp"
#include "pto/common/fixpipe.hpp"
#include "pto/common/tile_fifo.hpp"
#include "pto/common/utils.hpp"

// Where the device's loader finds what kind of launch a kernel is for; the job says that here.
#define PTO_SYNCALL_AIV_KERNEL_META(kernel)                         static_assert(true)
#define PTO_SYNCALL_AIC_KERNEL_META(kernel)                         static_assert(true)
#define PTO_SYNCALL_MIX_AIC_KERNEL_META(kernel, aicRatio, aivRatio) static_assert(true)
