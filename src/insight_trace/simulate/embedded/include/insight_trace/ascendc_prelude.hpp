// What is force-included before a kernel that compiles against the AscendC headers of an asc-devkit checkout:
// the device compiler's own words, types and instructions, then the library's headers as they are.
#pragma once

#define INSIGHT_TRACE_LIBRARY
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <tuple>
#include <typeinfo>
#include <utility>

// The library has an int4b_t of its own.
#define int4b_t insight_trace_int4b_t
#include "insight_trace/device.hpp"
#include "insight_trace/vector_calls.hpp"
#if defined(PTO_NPU_ARCH_A5)
#include "insight_trace/ascendc_950.hpp"
#endif
#undef int4b_t
#include "insight_trace/ascendc_calls.hpp"

#define __CCE_IS_AICORE__ 1
#define __NPU_DEVICE__    1
#define __ssbuf__
// The parameter in which the messages between the cores of a block lie (program/compile.py sets it at entry).
#define __kfc_workspace__ __attribute__((insight_trace_kfc_workspace))
#define __simd_vf__
#define __simd_callee__
#define __simt_vf__
#define __simt_callee__
#define __no_simd_vf_fusion__
#define __sync_noalias__
#define __check_sync_alias__
#define __in_pipe__(...)
#define __out_pipe__(...)
#define __inout_pipe__(...)
#define __forceinline__ inline
#if !defined(INSIGHT_TRACE_PROGRAM) // a program's launches read these (program.hpp)
#define __cube__
#define __vector__
#define __mix__(...)
#endif
// A constant of any type by its bytes, as the device compiler has it built in.
template <class T> constexpr T convert_from_bytes(const uint8_t *bytes) {
    struct {
        uint8_t each[sizeof(T)];
    } all{};
    for (size_t i = 0; i < sizeof(T); ++i) all.each[i] = bytes[i];
    return __builtin_bit_cast(T, all);
}
using float16_t = half;
using float32_t = float;
using __cce_scalar::dec;
using __cce_scalar::inc;

#include "impl/utils/common_types.h"
namespace insight_trace {
template <> constexpr bool kIsInt4<::int4b_t> = true;
}

// Text of a kernel is printed as it runs, not through a buffer that the host reads later; and of the
// library's functions that dump tensors some differ only by the memory that a pointer is of.
#define IMPL_UTILS_DEBUG_ASC_AICORE_PRINTF_IMPL_H
#define IMPL_UTILS_DEBUG_ASC_AICORE_DUMP_IMPL_H
#define IMPL_UTILS_DEBUG_ASC_PRINTF_SIMT_IMPL_H
#define IMPL_UTILS_DEBUG_ASC_TIME_SIMT_IMPL_H
#define IMPL_UTILS_DEBUG_ASC_ASSERT_SIMT_IMPL_H
#define IMPL_UTILS_DEBUG_ASC_SIMD_PRINTF_IMPL_H
#define g_sysPrintFifoSpace insight_trace_no_print_buffer
#if defined(PTO_NPU_ARCH_A5)
namespace __cce_scalar {
using ::copy_ubuf_to_ubuf;
}
#define __ASC_DISABLE_RESERVED_UBUF__ // where vector functions would print to
#endif
#include "impl/utils/debug/asc_debug_utils.h"
#undef __ASC_DISABLE_RESERVED_UBUF__
#undef g_sysPrintFifoSpace

#include "insight_trace/ascendc_print.hpp"

// The library's tensors keep offsets, and read and write UB by turning them into pointers. A number below
// 1 MiB that becomes a pointer is an offset in UB; instructions take the low 20 bits of an address anyway.
#if defined(__DAV_VEC__) && !defined(__INSIGHT_TRACE_HOST__)
#define reinterpret_cast ::insight_trace::on_chip_cast
#endif
#include "utils/debug/asc_time.h"
#if defined(PTO_NPU_ARCH_A5)
using __asc_aicore::asc_mark_stamp;
#endif
#if defined(PTO_NPU_ARCH_A2A3)
#define L2_CACHE_HINT // SetL2CacheHint adds an offset to addresses, which the runtime chooses
#endif
#define workgroup_local gnu::weak // one of all sources of a program
#include "kernel_operator.h"
#undef workgroup_local
// Which cores a kernel is for stays in the text, where program/core_kinds.py reads it.
#undef KERNEL_TASK_TYPE
#undef KERNEL_TASK_TYPE_DEFAULT
#define KERNEL_TASK_TYPE(key, value)    (void)"KERNEL_TASK_TYPE(" #key "," #value;
#define KERNEL_TASK_TYPE_DEFAULT(value) (void)"KERNEL_TASK_TYPE_DEFAULT(" #value;

#include "utils/debug/asc_assert.h"
using __asc_aicore::__assert_fail_msg; // the device compiler finds it without its namespace
// Arrays in a memory of the core get their places from program/on_chip_arrays.py.
#undef __ubuf__
#undef __cbuf__
#undef __ca__
#undef __cb__
#undef __cc__
#undef __fbuf__
#undef __biasbuf__
#define __ubuf__    __attribute__((insight_trace_in_UB))
#define __cbuf__    __attribute__((insight_trace_in_L1))
#define __ca__      __attribute__((insight_trace_in_L0A))
#define __cb__      __attribute__((insight_trace_in_L0B))
#define __cc__      __attribute__((insight_trace_in_L0C))
#define __fbuf__    __attribute__((insight_trace_in_Scaling))
#define __biasbuf__ __attribute__((insight_trace_in_Bias))
#if defined(__INSIGHT_TRACE_HOST__)
// Kernels are read as device code on the host, too; what follows is host code.
#undef __NPU_DEVICE__
#define __NPU_HOST__ 1
#endif
