// Registers of the vector unit (950), and the words by which the device compiler names forms of instructions
// on them. A word is a value of a type of its own: libraries hand on either.
#pragma once

#include "insight_trace/device.hpp"
#include "insight_trace/register_forms.hpp"
#include "insight_trace/type_codes.hpp"

constexpr uint32_t CCE_VL = insight_trace::kBytesOfRegister;

namespace insight_trace {

template <class T> struct Register {
    using Element = T;
    alignas(32) uint8_t bytes[kBytesOfRegister];
    Register() { __builtin_memcpy(bytes, kUnwrittenRegister, sizeof kUnwrittenRegister); }
    template <class U> explicit Register(const Register<U> &other) {
        __builtin_memcpy(bytes, other.bytes, sizeof bytes);
    }
};
// A library's own type of a register converts to ours.
template <class R, class = void> struct RegisterTraits {
    static constexpr bool known = false;
};
template <class T> struct RegisterTraits<Register<T>> {
    static constexpr bool known = true;
    using Element = T;
};
template <class R> struct RegisterTraits<R, std::void_t<typename R::RegType>> {
    static constexpr bool known = true;
    using Element = typename R::RegType::Element;
};
template <class R> using TraitsOf = RegisterTraits<std::remove_cv_t<std::remove_reference_t<R>>>;
template <class R> constexpr bool is_register = TraitsOf<R>::known;
template <class R> using ElementOf = typename TraitsOf<R>::Element;
template <class R> inline uint8_t *register_bytes(R &reg) {
    return static_cast<Register<ElementOf<R>> &>(const_cast<std::remove_cv_t<R> &>(reg)).bytes;
}

template <class E, E value> struct Word {
    constexpr operator E() const { return value; }
};

} // namespace insight_trace

enum class Spr : uint8_t { AR = 74 };
// Elements of a register.
constexpr uint32_t ELE_CNT_B8 = CCE_VL, ELE_CNT_B16 = CCE_VL / 2, ELE_CNT_B32 = CCE_VL / 4;

#define INSIGHT_TRACE_WORD(kind, name, value) constexpr ::insight_trace::Word<kind, kind::value> name{};
#define INSIGHT_TRACE_LOAD(name)              INSIGHT_TRACE_WORD(::insight_trace::DistLoad, name, name)
INSIGHT_TRACE_LOAD(NORM)
INSIGHT_TRACE_LOAD(BRC_B8)
INSIGHT_TRACE_LOAD(BRC_B16)
INSIGHT_TRACE_LOAD(BRC_B32)
INSIGHT_TRACE_LOAD(US)
INSIGHT_TRACE_LOAD(US_B8)
INSIGHT_TRACE_LOAD(US_B16)
INSIGHT_TRACE_LOAD(DS)
INSIGHT_TRACE_LOAD(DS_B8)
INSIGHT_TRACE_LOAD(DS_B16)
INSIGHT_TRACE_LOAD(UNPK_B8)
INSIGHT_TRACE_LOAD(UNPK_B16)
INSIGHT_TRACE_LOAD(UNPK_B32)
INSIGHT_TRACE_LOAD(UNPK4_B8)
INSIGHT_TRACE_LOAD(BLK)
INSIGHT_TRACE_LOAD(E2B_B16)
INSIGHT_TRACE_LOAD(E2B_B32)
INSIGHT_TRACE_LOAD(DINTLV_B8)
INSIGHT_TRACE_LOAD(DINTLV_B16)
INSIGHT_TRACE_LOAD(DINTLV_B32)
INSIGHT_TRACE_LOAD(BDINTLV)
INSIGHT_TRACE_LOAD(PK)
#undef INSIGHT_TRACE_LOAD
#define INSIGHT_TRACE_STORE(name) INSIGHT_TRACE_WORD(::DistVST, name, DIST_##name)
INSIGHT_TRACE_STORE(NORM_B8)
INSIGHT_TRACE_STORE(NORM_B16)
INSIGHT_TRACE_STORE(NORM_B32)
INSIGHT_TRACE_STORE(ONEPT_B8)
INSIGHT_TRACE_STORE(ONEPT_B16)
INSIGHT_TRACE_STORE(ONEPT_B32)
INSIGHT_TRACE_STORE(PK_B16)
INSIGHT_TRACE_STORE(PK_B32)
INSIGHT_TRACE_STORE(PK_B64)
INSIGHT_TRACE_STORE(PK4_B32)
INSIGHT_TRACE_STORE(INTLV_B8)
INSIGHT_TRACE_STORE(INTLV_B16)
INSIGHT_TRACE_STORE(INTLV_B32)
INSIGHT_TRACE_STORE(MRG4CHN_B8)
INSIGHT_TRACE_STORE(MRG2CHN_B8)
INSIGHT_TRACE_STORE(MRG2CHN_B16)
#undef INSIGHT_TRACE_STORE
#define INSIGHT_TRACE_PATTERN(name) INSIGHT_TRACE_WORD(::insight_trace::Pattern, PAT_##name, name)
INSIGHT_TRACE_PATTERN(ALL)
INSIGHT_TRACE_PATTERN(VL1)
INSIGHT_TRACE_PATTERN(VL2)
INSIGHT_TRACE_PATTERN(VL3)
INSIGHT_TRACE_PATTERN(VL4)
INSIGHT_TRACE_PATTERN(VL8)
INSIGHT_TRACE_PATTERN(VL16)
INSIGHT_TRACE_PATTERN(VL32)
INSIGHT_TRACE_PATTERN(VL64)
INSIGHT_TRACE_PATTERN(VL128)
INSIGHT_TRACE_PATTERN(M3)
INSIGHT_TRACE_PATTERN(M4)
INSIGHT_TRACE_PATTERN(H)
INSIGHT_TRACE_PATTERN(Q)
INSIGHT_TRACE_PATTERN(ALLF)
#undef INSIGHT_TRACE_PATTERN
INSIGHT_TRACE_WORD(::insight_trace::Merging, MODE_ZEROING, Zeroing)
INSIGHT_TRACE_WORD(::insight_trace::Merging, MODE_MERGING, Merging)
INSIGHT_TRACE_WORD(::insight_trace::Merging, MODE_UNKNOWN, Unknown)
INSIGHT_TRACE_WORD(::insight_trace::Stored, MODE_NO_STORED, No)
INSIGHT_TRACE_WORD(::insight_trace::Stored, MODE_STORED, Yes)
INSIGHT_TRACE_WORD(::insight_trace::Post, NO_POST_UPDATE, No)
INSIGHT_TRACE_WORD(::insight_trace::Post, POST_UPDATE, Update)
INSIGHT_TRACE_WORD(::insight_trace::Part, PART_EVEN, EVEN)
INSIGHT_TRACE_WORD(::insight_trace::Part, PART_ODD, ODD)
INSIGHT_TRACE_WORD(::insight_trace::Part, PART_P0, P0)
INSIGHT_TRACE_WORD(::insight_trace::Part, PART_P1, P1)
INSIGHT_TRACE_WORD(::insight_trace::Part, PART_P2, P2)
INSIGHT_TRACE_WORD(::insight_trace::Part, PART_P3, P3)
INSIGHT_TRACE_WORD(::insight_trace::Saturation, RS_DISABLE, Disable)
INSIGHT_TRACE_WORD(::insight_trace::Saturation, RS_ENABLE, Enable)
INSIGHT_TRACE_WORD(::insight_trace::Half, LOWER, Lower)
INSIGHT_TRACE_WORD(::insight_trace::Half, HIGHER, Higher)
INSIGHT_TRACE_WORD(::insight_trace::Position, POS_LOWEST, Lowest)
INSIGHT_TRACE_WORD(::insight_trace::Position, POS_HIGHEST, Highest)
INSIGHT_TRACE_WORD(::insight_trace::Direction, INC_ORDER, Rising)
INSIGHT_TRACE_WORD(::insight_trace::Direction, DEC_ORDER, Falling)
INSIGHT_TRACE_WORD(::insight_trace::Bins, Bin_N0, Low)
INSIGHT_TRACE_WORD(::insight_trace::Bins, Bin_N1, High)
INSIGHT_TRACE_WORD(::Spr, SPR_AR, AR)
#define INSIGHT_TRACE_BARRIER(name) INSIGHT_TRACE_WORD(::insight_trace::Barrier, name, name)
INSIGHT_TRACE_BARRIER(VST_VLD)
INSIGHT_TRACE_BARRIER(VST_VST)
INSIGHT_TRACE_BARRIER(VLD_VST)
INSIGHT_TRACE_BARRIER(VV_ALL)
INSIGHT_TRACE_BARRIER(VST_LD)
INSIGHT_TRACE_BARRIER(VST_ST)
INSIGHT_TRACE_BARRIER(VLD_ST)
INSIGHT_TRACE_BARRIER(VS_ALL)
INSIGHT_TRACE_BARRIER(SV_ALL)
#undef INSIGHT_TRACE_BARRIER

namespace __cce_simd {
using RoundRType = ::insight_trace::Word<::insight_trace::Rounding, ::insight_trace::Rounding::R>;
using RoundAType = ::insight_trace::Word<::insight_trace::Rounding, ::insight_trace::Rounding::A>;
using RoundFType = ::insight_trace::Word<::insight_trace::Rounding, ::insight_trace::Rounding::F>;
using RoundCType = ::insight_trace::Word<::insight_trace::Rounding, ::insight_trace::Rounding::C>;
using RoundZType = ::insight_trace::Word<::insight_trace::Rounding, ::insight_trace::Rounding::Z>;
using RoundOType = ::insight_trace::Word<::insight_trace::Rounding, ::insight_trace::Rounding::O>;
using RoundHType = ::insight_trace::Word<::insight_trace::Rounding, ::insight_trace::Rounding::H>;
} // namespace __cce_simd
constexpr __cce_simd::RoundRType ROUND_R{};
constexpr __cce_simd::RoundAType ROUND_A{};
constexpr __cce_simd::RoundFType ROUND_F{};
constexpr __cce_simd::RoundCType ROUND_C{};
constexpr __cce_simd::RoundZType ROUND_Z{};
constexpr __cce_simd::RoundOType ROUND_O{};
constexpr __cce_simd::RoundHType ROUND_H{};
#undef INSIGHT_TRACE_WORD

using vector_u8 = insight_trace::Register<uint8_t>;
using vector_s8 = insight_trace::Register<int8_t>;
using vector_u16 = insight_trace::Register<uint16_t>;
using vector_s16 = insight_trace::Register<int16_t>;
using vector_u32 = insight_trace::Register<uint32_t>;
using vector_s32 = insight_trace::Register<int32_t>;
using vector_u64 = insight_trace::Register<uint64_t>;
using vector_s64 = insight_trace::Register<int64_t>;
using vector_f16 = insight_trace::Register<half>;
using vector_bf16 = insight_trace::Register<bfloat16_t>;
using vector_f32 = insight_trace::Register<float>;
using vector_f8e4m3 = insight_trace::Register<float8_e4m3_t>;
using vector_f8e5m2 = insight_trace::Register<float8_e5m2_t>;
using vector_f8e8m0 = insight_trace::Register<float8_e8m0_t>;
using vector_hif8 = insight_trace::Register<hifloat8_t>;
using vector_f4e2m1x2 = insight_trace::Register<float4_e2m1x2_t>;
using vector_f4e1m2x2 = insight_trace::Register<float4_e1m2x2_t>;
using vector_s4x2 = insight_trace::Register<int4b_t>;
using vector_bool = insight_trace::Predicate;
using vector_align = insight_trace::AlignRegister;
struct vector_address {
    uint32_t offset;
};
