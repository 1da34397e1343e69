// Force-included before every kernel: what the device compiler has built in.
// Kernels compile as device code (__CPU_SIM and __COSTMODEL stay undefined).
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "insight_trace/abi.hpp"
#include "insight_trace/numbers.hpp"

#ifndef __CCE_AICORE__
#define __CCE_AICORE__ 220
#endif
#ifndef __CCE__
#define __CCE__ 1
#endif

// The kinds of core under the names of their chips, by which kernels guard code.
#if defined(__DAV_VEC__) && defined(PTO_NPU_ARCH_A2A3)
#define __DAV_C220_VEC__ 1
#elif defined(__DAV_CUBE__) && defined(PTO_NPU_ARCH_A2A3)
#define __DAV_C220_CUBE__ 1
#elif defined(__DAV_VEC__) && defined(PTO_NPU_ARCH_A5)
#define __DAV_C310_VEC__ 1
#elif defined(__DAV_CUBE__) && defined(PTO_NPU_ARCH_A5)
#define __DAV_C310_CUBE__ 1
#endif

#if defined(PTO_NPU_ARCH_A5)
#define __DAV_C310__ 1
#endif

#define __gm__
#define __ubuf__
#define __cbuf__
#define __ca__
#define __cb__
#define __cc__
#define __fbuf__
#define __biasbuf__
#define __global__
#define __aicore__
#define __host_aicore__
#define __sync_alias__
#define AICORE
#define PTO_INLINE   inline
#define PTO_INST     inline
#define PTO_INTERNAL inline
#define OP_NAME(name)
#define OP_TYPE(name)
#define __tf__
#define __fp16 half
#define __in__
#define __out__
#define __inout__
// `[aicore]` is the device compiler's own attribute syntax; with this it reads `[[maybe_unused]]`.
#define aicore [maybe_unused]
// State that each core has for itself: the engine swaps this section when it changes cores.
#define block_local gnu::section("insight_trace_block_local")
extern "C" {
// Bounds of that section, from the linker; null in a kernel without such state.
extern __attribute__((weak, visibility("hidden"))) char __start_insight_trace_block_local[];
extern __attribute__((weak, visibility("hidden"))) char __stop_insight_trace_block_local[];
__attribute__((weak, visibility("default"))) char *insight_trace_state_begin =
    __start_insight_trace_block_local;
__attribute__((weak, visibility("default"))) char *insight_trace_state_end = __stop_insight_trace_block_local;
}

// Where a call stands. In a tile library of the vendor's that is a line of its headers: there the engine
// takes the place in the object instead, and the debug lines say which line of the kernel it was inlined
// into.
#if defined(INSIGHT_TRACE_LIBRARY)
#define INSIGHT_TRACE_AT ::insight_trace::Site at = {}
#else
#define INSIGHT_TRACE_AT ::insight_trace::Site at = ::insight_trace::Site::here()
#endif

enum pipe_t : uint8_t {
    PIPE_S = 0,
    PIPE_V = 1,
    PIPE_M = 2,
    PIPE_MTE1 = 3,
    PIPE_MTE2 = 4,
    PIPE_MTE3 = 5,
    PIPE_ALL = 6,
    PIPE_MTE4 = 7,
    PIPE_MTE5 = 8,
    PIPE_V2 = 9,
    PIPE_FIX = 10,
};
namespace insight_trace {
// Pipes by the numbers of the device; the modelled chips have no work for MTE4, MTE5 and V2.
constexpr PipeId pipe_id(pipe_t pipe) {
    return pipe == PIPE_FIX ? PipeId::FIX : pipe <= PIPE_ALL ? static_cast<PipeId>(pipe) : PipeId::COUNT;
}
} // namespace insight_trace
enum event_t : uint8_t {
    EVENT_ID0 = 0,
    EVENT_ID1,
    EVENT_ID2,
    EVENT_ID3,
    EVENT_ID4,
    EVENT_ID5,
    EVENT_ID6,
    EVENT_ID7,
};
enum class cache_line_t : uint64_t { SINGLE_CACHE_LINE = 0, ENTIRE_DATA_CACHE = 1 };
enum class dcci_dst_t : uint64_t {
    CACHELINE_ALL = 0,
    CACHELINE_UB = 1,
    CACHELINE_OUT = 2,
    CACHELINE_ATOMIC = 3
};
constexpr cache_line_t SINGLE_CACHE_LINE = cache_line_t::SINGLE_CACHE_LINE;
constexpr cache_line_t ENTIRE_DATA_CACHE = cache_line_t::ENTIRE_DATA_CACHE;
constexpr dcci_dst_t CACHELINE_ALL = dcci_dst_t::CACHELINE_ALL;
constexpr dcci_dst_t CACHELINE_UB = dcci_dst_t::CACHELINE_UB;
constexpr dcci_dst_t CACHELINE_OUT = dcci_dst_t::CACHELINE_OUT;
constexpr dcci_dst_t CACHELINE_ATOMIC = dcci_dst_t::CACHELINE_ATOMIC;
enum mem_dsb_t : uint8_t { DSB_ALL = 0, DSB_DDR = 1, DSB_UB = 2, DSB_SEQ = 3 };

inline void set_flag(pipe_t from, pipe_t to, int64_t event, INSIGHT_TRACE_AT) {
    insight_trace_set_flag(insight_trace::pipe_id(from), insight_trace::pipe_id(to), event, at);
}
inline void wait_flag(pipe_t from, pipe_t to, int64_t event, INSIGHT_TRACE_AT) {
    insight_trace_wait_flag(insight_trace::pipe_id(from), insight_trace::pipe_id(to), event, at);
}
inline void pipe_barrier(pipe_t pipe, INSIGHT_TRACE_AT) {
    insight_trace_barrier(insight_trace::pipe_id(pipe), at);
}

namespace insight_trace {
template <class P> inline uint64_t as_bits(P value) {
    if constexpr (std::is_pointer_v<P>)
        return reinterpret_cast<uint64_t>(value);
    else if constexpr (std::is_floating_point_v<P>)
        return float_bits(static_cast<float>(value));
    else
        return static_cast<uint64_t>(value);
}
} // namespace insight_trace

#define INSIGHT_TRACE_CALL(which, a, b, c)                                                                   \
    insight_trace_intrinsic(::insight_trace::Intrinsic::which, ::insight_trace::as_bits(a),                  \
                            ::insight_trace::as_bits(b), ::insight_trace::as_bits(c), at)

// The line and the destination may be plain numbers too.
template <class P, class Line> inline void dcci(P address, Line line, INSIGHT_TRACE_AT) {
    INSIGHT_TRACE_CALL(Dcci, address, line, 0);
}
template <class P, class Line, class Destination,
          std::enable_if_t<!std::is_same_v<Destination, ::insight_trace::Site>, int> = 0>
inline void dcci(P address, Line line, Destination destination, INSIGHT_TRACE_AT) {
    INSIGHT_TRACE_CALL(Dcci, address, line, destination);
}
inline void dsb(mem_dsb_t kind, INSIGHT_TRACE_AT) { INSIGHT_TRACE_CALL(Dsb, kind, 0, 0); }
inline void set_mask_norm(INSIGHT_TRACE_AT) { INSIGHT_TRACE_CALL(SetMaskNorm, 0, 0, 0); }
inline void set_mask_count(INSIGHT_TRACE_AT) { INSIGHT_TRACE_CALL(SetMaskCount, 0, 0, 0); }
inline void set_vector_mask(uint64_t high, uint64_t low, INSIGHT_TRACE_AT) {
    INSIGHT_TRACE_CALL(SetVectorMask, high, low, 0);
}
inline void set_ctrl(uint64_t value, INSIGHT_TRACE_AT) { INSIGHT_TRACE_CALL(SetCtrl, value, 0, 0); }
inline uint64_t get_ctrl(INSIGHT_TRACE_AT) { return INSIGHT_TRACE_CALL(GetCtrl, 0, 0, 0); }
inline uint64_t sbitset0(uint64_t value, int bit) { return value & ~(1ull << bit); }
inline uint64_t sbitset1(uint64_t value, int bit) { return value | (1ull << bit); }
// Functions of the device compiler, by value and without templates: users have templates of these names.
// Generated code mixes widths: get_block_idx() has 64 bits, its constants 32.
#define INSIGHT_TRACE_EXTREMES(T, A, B)                                                                      \
    constexpr T max(A a, B b) { return static_cast<T>(a) < static_cast<T>(b) ? b : a; }                      \
    constexpr T min(A a, B b) { return static_cast<T>(b) < static_cast<T>(a) ? b : a; }
INSIGHT_TRACE_EXTREMES(int32_t, int32_t, int32_t)
INSIGHT_TRACE_EXTREMES(uint32_t, uint32_t, uint32_t)
INSIGHT_TRACE_EXTREMES(int64_t, int64_t, int64_t)
INSIGHT_TRACE_EXTREMES(int64_t, int64_t, int32_t)
INSIGHT_TRACE_EXTREMES(int64_t, int32_t, int64_t)
INSIGHT_TRACE_EXTREMES(int64_t, int64_t, uint32_t)
INSIGHT_TRACE_EXTREMES(int64_t, uint32_t, int64_t)
INSIGHT_TRACE_EXTREMES(uint64_t, uint64_t, uint64_t)
INSIGHT_TRACE_EXTREMES(uint64_t, uint64_t, uint32_t)
INSIGHT_TRACE_EXTREMES(uint64_t, uint32_t, uint64_t)
INSIGHT_TRACE_EXTREMES(float, float, float)
#undef INSIGHT_TRACE_EXTREMES
inline void set_atomic_none(INSIGHT_TRACE_AT) { INSIGHT_TRACE_CALL(SetAtomicNone, 0, 0, 0); }
inline void set_atomic_add(INSIGHT_TRACE_AT) { INSIGHT_TRACE_CALL(SetAtomicAdd, 0, 0, 0); }
inline void set_atomic_f32(INSIGHT_TRACE_AT) { INSIGHT_TRACE_CALL(SetAtomicAdd, 1, 0, 0); }
inline void set_atomic_f16(INSIGHT_TRACE_AT) { INSIGHT_TRACE_CALL(SetAtomicAdd, 2, 0, 0); }
inline void set_atomic_bf16(INSIGHT_TRACE_AT) { INSIGHT_TRACE_CALL(SetAtomicAdd, 3, 0, 0); }
inline void set_atomic_s32(INSIGHT_TRACE_AT) { INSIGHT_TRACE_CALL(SetAtomicAdd, 4, 0, 0); }
inline void set_atomic_s16(INSIGHT_TRACE_AT) { INSIGHT_TRACE_CALL(SetAtomicAdd, 5, 0, 0); }
inline void set_atomic_s8(INSIGHT_TRACE_AT) { INSIGHT_TRACE_CALL(SetAtomicAdd, 6, 0, 0); }
inline void set_atomic_max(INSIGHT_TRACE_AT) { INSIGHT_TRACE_CALL(SetAtomicOp, 1, 0, 0); }
inline void set_atomic_min(INSIGHT_TRACE_AT) { INSIGHT_TRACE_CALL(SetAtomicOp, 2, 0, 0); }
inline int64_t get_sys_cnt(INSIGHT_TRACE_AT) {
    return static_cast<int64_t>(INSIGHT_TRACE_CALL(GetSysCnt, 0, 0, 0));
}
inline int64_t get_block_idx(INSIGHT_TRACE_AT) {
    return static_cast<int64_t>(INSIGHT_TRACE_CALL(GetBlockIdx, 0, 0, 0));
}
inline int64_t get_block_num(INSIGHT_TRACE_AT) {
    return static_cast<int64_t>(INSIGHT_TRACE_CALL(GetBlockNum, 0, 0, 0));
}
// The same as variables that the device compiler knows.
struct insight_trace_block_idx {
    operator int64_t() const { return get_block_idx(); }
};
struct insight_trace_block_num {
    operator int64_t() const { return get_block_num(); }
};
constexpr insight_trace_block_idx block_idx{};
constexpr insight_trace_block_num block_num{};
inline int64_t get_subblockid(INSIGHT_TRACE_AT) {
    return static_cast<int64_t>(INSIGHT_TRACE_CALL(GetSubBlockId, 0, 0, 0));
}
inline int64_t get_subblockdim(INSIGHT_TRACE_AT) {
    return static_cast<int64_t>(INSIGHT_TRACE_CALL(GetSubBlockDim, 0, 0, 0));
}
inline int64_t get_coreid(INSIGHT_TRACE_AT) {
    return static_cast<int64_t>(INSIGHT_TRACE_CALL(GetCoreId, 0, 0, 0));
}
inline void set_ffts_base_addr(uint64_t base, INSIGHT_TRACE_AT) {
    INSIGHT_TRACE_CALL(SetFftsBase, base, 0, 0);
}
inline uint64_t get_ffts_base_addr(INSIGHT_TRACE_AT) { return INSIGHT_TRACE_CALL(GetFftsBase, 0, 0, 0); }
inline void ffts_cross_core_sync(pipe_t pipe, uint64_t config, INSIGHT_TRACE_AT) {
    INSIGHT_TRACE_CALL(SetCrossCore, insight_trace::pipe_id(pipe), config, 0);
}
inline void wait_flag_dev(int64_t flag, INSIGHT_TRACE_AT) {
    INSIGHT_TRACE_CALL(WaitFlagDev, PIPE_S, flag, 0);
}
inline void wait_flag_dev(pipe_t pipe, int64_t flag, INSIGHT_TRACE_AT) {
    INSIGHT_TRACE_CALL(WaitFlagDev, insight_trace::pipe_id(pipe), flag, 0);
}
inline void set_intra_block(pipe_t pipe, int64_t flag, INSIGHT_TRACE_AT) {
    INSIGHT_TRACE_CALL(SetIntraBlock, insight_trace::pipe_id(pipe), flag, 0);
}
inline void wait_intra_block(pipe_t pipe, int64_t flag, INSIGHT_TRACE_AT) {
    INSIGHT_TRACE_CALL(WaitIntraBlock, insight_trace::pipe_id(pipe), flag, 0);
}
// Buffers by their number: a pipe takes one up when the pipe that had it before has given it back.
template <class Mode> inline void get_buf(pipe_t pipe, uint8_t number, Mode, INSIGHT_TRACE_AT) {
    INSIGHT_TRACE_CALL(GetBuffer, insight_trace::pipe_id(pipe), number, 0);
}
template <class Mode> inline void rls_buf(pipe_t pipe, uint8_t number, Mode, INSIGHT_TRACE_AT) {
    INSIGHT_TRACE_CALL(ReleaseBuffer, insight_trace::pipe_id(pipe), number, 0);
}
// Synchronisation that is not modelled: a kernel that uses it does not run, rather than run without it.
#define INSIGHT_TRACE_REFUSED(name)                                                                          \
    INSIGHT_TRACE_CALL(Unsupported, #name ": this synchronisation is not modelled", 0, 0)
template <class Event, class Memory>
inline void hset_flag(pipe_t, pipe_t, Event, Memory, bool, INSIGHT_TRACE_AT) {
    INSIGHT_TRACE_REFUSED(hset_flag);
}
template <class Event, class Memory>
inline void hwait_flag(pipe_t, pipe_t, Event, Memory, bool, INSIGHT_TRACE_AT) {
    INSIGHT_TRACE_REFUSED(hwait_flag);
}
#undef INSIGHT_TRACE_REFUSED
template <class T> inline auto ld_dev(T *address, int64_t offset = 0, INSIGHT_TRACE_AT) {
    using Value = std::remove_cv_t<T>;
    return static_cast<Value>(
        INSIGHT_TRACE_CALL(LoadDev, reinterpret_cast<uint64_t>(address) + offset, sizeof(T), 0));
}
template <class V, class T> inline void st_dev(V value, T *address, int64_t offset = 0, INSIGHT_TRACE_AT) {
    INSIGHT_TRACE_CALL(StoreDev, reinterpret_cast<uint64_t>(address) + offset, sizeof(T),
                       ::insight_trace::as_bits(static_cast<std::remove_cv_t<T>>(value)));
}
// Scalar stores that add (or take the larger, the smaller) in global memory.
enum atomic_type_t : uint8_t {
    ATOMIC_NONE = 0,
    ATOMIC_F32 = 1,
    ATOMIC_F16 = 2,
    ATOMIC_S16 = 3,
    ATOMIC_S32 = 4,
    ATOMIC_S8 = 5,
    ATOMIC_BF16 = 6,
};
enum atomic_op_t : uint8_t { ATOMIC_SUM = 0, ATOMIC_MAX = 1, ATOMIC_MIN = 2 };
inline void set_st_atomic_cfg(uint64_t type, uint64_t op, INSIGHT_TRACE_AT) {
    INSIGHT_TRACE_CALL(SetStoreAtomic, type, op, 0);
}
template <class V, class T> inline void st_atomic(V value, T *address, INSIGHT_TRACE_AT) {
    INSIGHT_TRACE_CALL(AtomicAdd, address, sizeof(T),
                       ::insight_trace::as_bits(static_cast<std::remove_cv_t<T>>(value)));
}
[[noreturn]] inline void trap(INSIGHT_TRACE_AT) {
    INSIGHT_TRACE_CALL(Trap, 0, 0, 0);
    __builtin_unreachable();
}

// Marks of the user's: ranges from TRACE_START to TRACE_STOP of a number, and moments. They cost no time
// (recording/user_marks.py has the codes).
namespace insight_trace {
inline void mark(uint64_t code, INSIGHT_TRACE_AT) { INSIGHT_TRACE_CALL(Nop, code, 0, 0); }
} // namespace insight_trace
#define TRACE_START(number) ::insight_trace::mark(0x80000000ull | (static_cast<uint64_t>(number) & 0xfffffff))
#define TRACE_STOP(number)  ::insight_trace::mark(0xc0000000ull | (static_cast<uint64_t>(number) & 0xfffffff))
namespace AscendC {
template <pipe_t pipe, uint16_t index> inline void MarkStamp(INSIGHT_TRACE_AT) {
    ::insight_trace::mark(0x40000000ull | static_cast<uint64_t>(pipe) << 16 | index, at);
}
} // namespace AscendC
