// Instructions and functions of the device compiler that only the AscendC library calls (vector_calls.hpp and
// cube.hpp have the others).
#pragma once

#include "insight_trace/vector_calls.hpp"
#include "pto/common/constants.hpp"

enum mem_t : uint8_t { L1, L0A, L0B, L0C, UB };
#if !defined(PTO_NPU_ARCH_A5)
// Registers of another chip's vector unit: the headers name their types on every chip.
struct vector_bool {};
struct vector_align {};
struct vector_address {};
#endif

namespace insight_trace {
// Something that lies in global memory, where the library tells that by type.
template <class T> struct InGlobalMemory : T {};

// Where UB of the running core begins; asked for once.
inline __attribute__((section("insight_trace_block_local"))) uint64_t ub_base = 0;

// An offset in UB, as the library keeps it in its tensors, as an address.
inline uint64_t on_chip_address(uint64_t address, INSIGHT_TRACE_AT) {
#if defined(__DAV_VEC__) && !defined(__INSIGHT_TRACE_HOST__)
    constexpr uint64_t kLargest = 1 << 20;
    if (address >= kLargest) return address;
    if (!ub_base) ub_base = INSIGHT_TRACE_CALL(LocalBase, Space::UB, 1, 0);
    return address + ub_base;
#else
    return address;
#endif
}

// A cast as the kernel wrote it, but a small number that becomes a pointer is an offset in UB.
template <class To, class From>
#if defined(__GNUC__)
[[gnu::always_inline]]
#endif
inline constexpr To on_chip_cast(From &&from, INSIGHT_TRACE_AT) {
    using Value = std::remove_cv_t<std::remove_reference_t<From>>;
    if constexpr (std::is_pointer_v<To> && std::is_integral_v<Value>)
        return reinterpret_cast<To>(on_chip_address(static_cast<uint64_t>(from), at));
    else
        return reinterpret_cast<To>(from);
}

// Arrays that a kernel declares in a memory of its core (`__ubuf__ float x[64];`). The library's tensors are
// counted up from the start of UB and of L1: the places of arrays are counted down from the end, in UB from
// what the library keeps for itself. The other memories are filled from the start.
struct OnChipArray {
    uint32_t key, offset, bytes; // the key of its declaration
    Space space;
};
inline __attribute__((section("insight_trace_block_local"))) OnChipArray on_chip_arrays[96] = {};

inline uint64_t on_chip_place(Space space, uint64_t bytes, uint32_t key, Site at) {
    const bool from_start = space != Space::UB && space != Space::L1;
    const bool table = space == Space::Bias || space == Space::Scaling;
    const uint64_t unit = space == Space::UB || space == Space::L1 ? 32 : space == Space::L0C ? 1024 : 512;
    const uint64_t size = space == Space::UB    ? PTO_UBUF_SIZE_BYTES - (8 << 10)
                          : space == Space::L1  ? PTO_CBUF_SIZE_BYTES
                          : space == Space::L0C ? PTO_L0C_SIZE_BYTES
                          : table               ? 4 << 10
                                                : PTO_L0A_SIZE_BYTES;
    uint64_t used = 0; // from the end or from the start
    for (OnChipArray &one : on_chip_arrays) {
        if (one.bytes == 0) {
            const uint64_t taken = (used + bytes + unit - 1) / unit * unit;
            if (taken > size) break;
            one = {key, uint32_t(from_start ? used : size - taken), uint32_t(bytes), space};
        } else if (one.key != key || one.bytes != bytes || one.space != space) {
            if (one.space == space)
                used = from_start ? (one.offset + one.bytes + unit - 1) / unit * unit : size - one.offset;
            continue;
        }
#if defined(__DAV_VEC__)
        return space == Space::UB ? one.offset + INSIGHT_TRACE_CALL(LocalBase, Space::UB, 1, 0) : one.offset;
#else
        return one.offset;
#endif
    }
    insight_trace_intrinsic(
        Intrinsic::Unsupported,
        reinterpret_cast<uint64_t>("arrays in a memory of the core that are more than it holds"), 0, 0, at);
    return 0;
}
template <class Array> inline Array &on_chip_array(Space space, uint32_t key, INSIGHT_TRACE_AT) {
    return *reinterpret_cast<Array *>(on_chip_place(space, sizeof(Array), key, at));
}
} // namespace insight_trace

// --- registers and hints without a meaning for values here
template <class T> inline void dc_preload(T *, int64_t) {} // the data cache is filled at the first access
inline void icache_preload(int64_t) {}
inline void set_l1_3d_size(uint64_t size, INSIGHT_TRACE_AT) {
    if (size) insight_trace::not_modelled("set_l1_3d_size: loads of images that wrap around in L1", at);
}
inline void set_lrelu_alpha(uint64_t) {} // the relu that reads it is refused where it is asked for
inline uint64_t get_pc() { return reinterpret_cast<uint64_t>(__builtin_return_address(0)); }
inline int64_t get_fpc(INSIGHT_TRACE_AT) {
    return static_cast<int64_t>(INSIGHT_TRACE_CALL(GetSpr, ::insight_trace::Spr::FPC, 0, 0));
}
namespace bisheng::cce {
inline void metrics_prof_start() {}
inline void metrics_prof_stop() {}
} // namespace bisheng::cce
inline void asc_prof_start() {}
inline void asc_prof_stop() {}
// Where checking tools hook in.
inline void __sync_all_stub(int, bool) {}
// IBSet and IBWait call these where they begin and where they end. What they load between is the word that
// they wait for: the checker knows it by that, also where it is there at the first look.
inline void __ib_set_stub(int, int, bool, INSIGHT_TRACE_AT) { INSIGHT_TRACE_CALL(LookAtWords, 0, 0, 0); }
inline void __ib_wait_stub(int, int, bool, INSIGHT_TRACE_AT) { INSIGHT_TRACE_CALL(LookAtWords, 0, 0, 0); }

// Where the messages between the cube and the vector cores of a block lie.
inline __attribute__((section("insight_trace_block_local"))) uint8_t *insight_trace_kfc_workspace = nullptr;
template <class T> inline void __set_kfc_workspace_addr(T *address) {
    insight_trace_kfc_workspace = reinterpret_cast<uint8_t *>(address);
}
inline uint8_t *__get_kfc_workspace_addr() { return insight_trace_kfc_workspace; }
namespace insight_trace {
// The memory that the cores of a block of the 950 share for messages: a part of that workspace stands for it.
inline uint64_t shared_scratch(INSIGHT_TRACE_AT) {
    constexpr uint64_t kFirst = 12 << 20, kEach = 1 << 16;
    if (!insight_trace_kfc_workspace)
        not_modelled("messages between the cores of a block without a __kfc_workspace__", at);
    return reinterpret_cast<uint64_t>(insight_trace_kfc_workspace) + kFirst +
           uint64_t(get_block_idx(at)) * kEach;
}
// What another core writes there, looked at again and again: the others have their turn.
template <class T> inline T *refreshed(T *place, INSIGHT_TRACE_AT) {
    dcci(place, SINGLE_CACHE_LINE, CACHELINE_OUT, at);
    return place;
}
} // namespace insight_trace

// --- other forms of instructions
#if !defined(PTO_NPU_ARCH_A5)
// The bias table by its number.
template <class S>
inline void copy_cbuf_to_bt(uint64_t dst, S *src, uint16_t convert, uint16_t pieces, uint16_t length,
                            uint16_t src_gap, uint16_t dst_gap, INSIGHT_TRACE_AT) {
    copy_cbuf_to_bt(reinterpret_cast<void *>(dst), src, convert, pieces, length, src_gap, dst_gap, at);
}
#endif
// The bias by its place in the table: the upper half of the accumulator's address.
template <class C, class A, class B>
inline void mad(C *acc, A *left, B *right, uint64_t bias, uint16_t m, uint16_t k, uint16_t n,
                uint8_t unit_flag, bool whole_steps, bool from_bias, bool from_zero, INSIGHT_TRACE_AT) {
    const uint64_t both = (reinterpret_cast<uint64_t>(acc) & 0xffffffff) | bias << 32;
    mad(from_bias ? reinterpret_cast<C *>(both) : acc, left, right, m, k, n, unit_flag, whole_steps,
        from_bias, from_zero, at);
}
#if !defined(PTO_NPU_ARCH_A5)
// With offsets of the operands.
#define INSIGHT_TRACE_OFFSETS(name)                                                                          \
    template <class C, class A, class B>                                                                     \
    inline void name(C *acc, A *left, B *right, uint16_t m, uint16_t k, uint16_t n, uint8_t offset,          \
                     uint8_t mask, uint8_t unit_flag, bool whole_steps, bool weights, bool from_bias,        \
                     bool from_zero, INSIGHT_TRACE_AT) {                                                     \
        if (offset || mask || weights) insight_trace::not_modelled(#name " with an offset", at);             \
        name(acc, left, right, m, k, n, unit_flag, whole_steps, from_bias, from_zero, at);                   \
    }
INSIGHT_TRACE_OFFSETS(mad)
INSIGHT_TRACE_OFFSETS(mad_s4)
#undef INSIGHT_TRACE_OFFSETS
#endif
#define INSIGHT_TRACE_FLAGGED(name)                                                                          \
    template <class T, class V>                                                                              \
    inline void name(T *dst, T *src, V value, uint8_t repeats, uint16_t dst_block, uint16_t src_block,       \
                     uint8_t dst_repeat, uint8_t src_repeat, bool first, bool second, INSIGHT_TRACE_AT) {    \
        if (first || second) insight_trace::not_modelled(#name " with a flag", at);                          \
        name(dst, src, value, repeats, dst_block, src_block, uint16_t(dst_repeat), uint16_t(src_repeat),     \
             at);                                                                                            \
    }
INSIGHT_TRACE_FLAGGED(vmaxs)
INSIGHT_TRACE_FLAGGED(vmins)
#undef INSIGHT_TRACE_FLAGGED
inline void set_st_atomic_cfg(uint64_t word, INSIGHT_TRACE_AT) {
    set_st_atomic_cfg(word & 7, word >> 3 & 3, at);
}
// An immediate in pieces of 16 bits.
constexpr uint64_t get_imm(uint64_t a, uint64_t b) { return a | b << 16; }
constexpr uint64_t get_imm(uint64_t a, uint64_t b, uint64_t c) { return a | b << 16 | c << 32; }
constexpr uint64_t get_imm(uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
    return a | b << 16 | c << 32 | d << 48;
}

// --- what is not modelled: a kernel that comes to it ends with its name and line
#define INSIGHT_TRACE_REFUSED(name)                                                                          \
    template <class... T> inline void name(T...) {                                                           \
        ::insight_trace::not_modelled(#name " is not modelled", ::insight_trace::Site{});                    \
    }
#define INSIGHT_TRACE_REFUSED_VALUE(name)                                                                    \
    inline int64_t name() {                                                                                  \
        ::insight_trace::not_modelled(#name " is not modelled", ::insight_trace::Site{});                    \
        return 0;                                                                                            \
    }
#define INSIGHT_TRACE_AIPP(number) INSIGHT_TRACE_REFUSED(set_aipp_spr_##number)
INSIGHT_TRACE_AIPP(0)
INSIGHT_TRACE_AIPP(1)
INSIGHT_TRACE_AIPP(2)
INSIGHT_TRACE_AIPP(3)
INSIGHT_TRACE_AIPP(4)
INSIGHT_TRACE_AIPP(5)
INSIGHT_TRACE_AIPP(6)
INSIGHT_TRACE_AIPP(7)
INSIGHT_TRACE_AIPP(8)
INSIGHT_TRACE_AIPP(9)
INSIGHT_TRACE_AIPP(10)
INSIGHT_TRACE_AIPP(11)
INSIGHT_TRACE_AIPP(12)
INSIGHT_TRACE_AIPP(13)
INSIGHT_TRACE_AIPP(14)
INSIGHT_TRACE_AIPP(15)
INSIGHT_TRACE_AIPP(16)
INSIGHT_TRACE_AIPP(17)
INSIGHT_TRACE_AIPP(18)
INSIGHT_TRACE_AIPP(19)
INSIGHT_TRACE_AIPP(20)
INSIGHT_TRACE_AIPP(21)
INSIGHT_TRACE_AIPP(22)
INSIGHT_TRACE_AIPP(23)
INSIGHT_TRACE_AIPP(24)
#undef INSIGHT_TRACE_AIPP
INSIGHT_TRACE_REFUSED(set_data_exp_0)
INSIGHT_TRACE_REFUSED(set_data_exp_1)
INSIGHT_TRACE_REFUSED(set_data_exp_2)
INSIGHT_TRACE_REFUSED(set_data_exp_3)
INSIGHT_TRACE_REFUSED(set_l0_set_value_bf16)
INSIGHT_TRACE_REFUSED(set_l0_set_value_h)
INSIGHT_TRACE_REFUSED(set_l0a_2d)
INSIGHT_TRACE_REFUSED(set_l0b_2d)
INSIGHT_TRACE_REFUSED(set_l1_2d)
inline void set_pcie_rd_ctrl(uint64_t word) {
    if (word)
        ::insight_trace::not_modelled("set_pcie_rd_ctrl of another word than 0", ::insight_trace::Site{});
}
INSIGHT_TRACE_REFUSED(set_lpcnt)
INSIGHT_TRACE_REFUSED(set_condition_flag)
INSIGHT_TRACE_REFUSED(load_gm_to_ca_s4)
INSIGHT_TRACE_REFUSED(load_gm_to_cb_s4)
INSIGHT_TRACE_REFUSED(vaddreluconv_vdeqs162b8)
INSIGHT_TRACE_REFUSED(vreduce)
#if !defined(PTO_NPU_ARCH_A5)
INSIGHT_TRACE_REFUSED(vstas)
INSIGHT_TRACE_REFUSED(vstus)
#endif
INSIGHT_TRACE_REFUSED_VALUE(get_arch_ver)
INSIGHT_TRACE_REFUSED_VALUE(get_condition_flag)
INSIGHT_TRACE_REFUSED_VALUE(get_l2_in_main)
INSIGHT_TRACE_REFUSED_VALUE(get_l2_vaddr_base)
INSIGHT_TRACE_REFUSED_VALUE(get_lpcnt)
INSIGHT_TRACE_REFUSED_VALUE(get_overflow_status)
INSIGHT_TRACE_REFUSED_VALUE(get_para_base)
#if defined(PTO_NPU_ARCH_A5)
inline int64_t get_shmem_sz() { return PTO_UBUF_SIZE_BYTES; } // of UB, with what the library keeps for itself
#else
INSIGHT_TRACE_REFUSED_VALUE(get_shmem_sz)
#endif
INSIGHT_TRACE_REFUSED_VALUE(get_smmu_tag_ver)
INSIGHT_TRACE_REFUSED_VALUE(get_st_atomic_cfg)
INSIGHT_TRACE_REFUSED_VALUE(get_stack_phy_base)
INSIGHT_TRACE_REFUSED_VALUE(get_status)
INSIGHT_TRACE_REFUSED_VALUE(get_sys_va_base)
INSIGHT_TRACE_REFUSED_VALUE(get_thread_dim)
INSIGHT_TRACE_REFUSED_VALUE(get_thread_id)
#undef INSIGHT_TRACE_REFUSED
#undef INSIGHT_TRACE_REFUSED_VALUE
