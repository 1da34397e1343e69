// Vector registers as kernels use them in functions of their own: filled, loaded and stored. Each load and
// store is a move of the vector unit; arithmetic on registers is not modelled.
#pragma once

#include "insight_trace/raw.hpp"

constexpr uint32_t CCE_VL = 256; // bytes of a register

#define __VEC_SCOPE__ // what follows is one function of the vector unit

template <class T> struct RegTensor {
    T lane[CCE_VL / sizeof(T)];
};
using vector_u8 = RegTensor<uint8_t>;
using vector_s8 = RegTensor<int8_t>;
using vector_u16 = RegTensor<uint16_t>;
using vector_s16 = RegTensor<int16_t>;
using vector_u32 = RegTensor<uint32_t>;
using vector_s32 = RegTensor<int32_t>;
using vector_f16 = RegTensor<half>;
using vector_f32 = RegTensor<float>;

// The first lanes are on.
struct MaskReg {
    uint32_t lanes;
};
using vector_bool = MaskReg;
struct UnalignReg {};
using vector_align = UnalignReg;

struct insight_trace_vector_mode {};
constexpr insight_trace_vector_mode MODE_ZEROING{}, MODE_MERGING{}, NORM{}, NORM_B8{}, NORM_B16{}, NORM_B32{},
    VST_VLD{}, VST_VST{}, VLD_VST{};

// Takes a register's worth of `count` away.
template <class T> inline MaskReg CreatePredicate(uint32_t &count) {
    constexpr uint32_t most = CCE_VL / sizeof(T);
    const uint32_t on = count < most ? count : most;
    count -= on;
    return {on};
}

inline void mem_bar(insight_trace_vector_mode) {} // a function's accesses are in order here

namespace insight_trace {
// Host bytes of UB from a pointer of this core on, checked; and the move that touches them.
template <class T> inline T *vector_access(T *pointer, uint64_t elements, Site at) {
    const uint64_t bytes = elements * sizeof(T);
    raw_copy(Space::UB, pointer, Space::UB, pointer, 1, bytes, bytes, bytes, at);
    const auto base = reinterpret_cast<uint64_t>(insight_trace_local(Space::UB, 0, 1, at));
    const auto address = reinterpret_cast<uint64_t>(pointer);
    const uint64_t offset = address >= base && address - base < (1u << 20) ? address - base : address;
    return static_cast<T *>(insight_trace_local(Space::UB, offset, bytes, at));
}
} // namespace insight_trace

template <class T, class V, class Mode>
inline void vdup(RegTensor<T> &reg, V value, const MaskReg &mask, Mode) {
    for (uint32_t i = 0; i < CCE_VL / sizeof(T); ++i) {
        if (i < mask.lanes)
            reg.lane[i] = static_cast<T>(value);
        else
            reg.lane[i] = T{};
    }
}
template <class T, class V> inline void vbr(RegTensor<T> &reg, V value) {
    for (T &lane : reg.lane) lane = static_cast<T>(value);
}
// Not the scalar unit's accesses.
#define INSIGHT_TRACE_NO_HOOKS __attribute__((no_sanitize("thread")))
template <class T, class Mode>
INSIGHT_TRACE_NO_HOOKS inline void vlds(RegTensor<T> &reg, T *pointer, int32_t offset, Mode,
                                        INSIGHT_TRACE_AT) {
    const T *from = insight_trace::vector_access(pointer + offset, CCE_VL / sizeof(T), at);
    for (uint32_t i = 0; i < CCE_VL / sizeof(T); ++i) reg.lane[i] = from[i];
}
template <class T, class Mode>
INSIGHT_TRACE_NO_HOOKS inline void vsts(const RegTensor<T> &reg, T *pointer, int32_t offset, Mode,
                                        const MaskReg &mask, INSIGHT_TRACE_AT) {
    T *to = insight_trace::vector_access(pointer + offset, mask.lanes, at);
    for (uint32_t i = 0; i < mask.lanes; ++i) to[i] = reg.lane[i];
}
// From an address that begins no block: the first half prepares, the second loads.
template <class T> inline void vldas(UnalignReg &, T *) {}
template <class T> inline void vldus(RegTensor<T> &reg, UnalignReg &, T *pointer, INSIGHT_TRACE_AT) {
    vlds(reg, pointer, 0, NORM, at);
}
