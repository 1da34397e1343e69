// half, bfloat16_t and the narrower storage types, exact on every compiler: bits plus conversions.
// Shared by kernels and by the engine.
#pragma once

#include <cstdint>
#include <cstring>

namespace insight_trace {

constexpr uint32_t float_bits(float value) { return __builtin_bit_cast(uint32_t, value); }
constexpr float bits_float(uint32_t bits) { return __builtin_bit_cast(float, bits); }

// Nearest, ties to even; NaN stays NaN (quiet), overflow becomes infinity.
constexpr uint16_t float_to_bf16(float value) {
    uint32_t bits = float_bits(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
    return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

constexpr float bf16_to_float(uint16_t bits) { return bits_float(static_cast<uint32_t>(bits) << 16); }

// Without branches, so that compilers turn loops over halves into vector code.
constexpr uint16_t float_to_half(float value) {
    uint32_t bits = float_bits(value);
    uint32_t sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
    uint32_t normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - 0x38000000u) >> 13;
    // the last bit of 0.5f weighs as much as the smallest subnormal half: the sum rounds to it
    uint32_t small = float_bits(bits_float(magnitude) + 0.5f) - 0x3f000000u;
    uint32_t large = magnitude > 0x7f800000u ? 0x7e00u | ((magnitude >> 13) & 0x3ffu) : 0x7c00u;
    uint32_t code = magnitude < 0x38800000u ? small : normal;
    return static_cast<uint16_t>(sign | (magnitude >= 0x477ff000u ? large : code)); // rounds to 65536 or more
}

constexpr float half_to_float(uint16_t bits) {
    uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
    // the exponents differ by 112, for subnormals too
    float scaled = bits_float(static_cast<uint32_t>(bits & 0x7fffu) << 13) * 0x1p112f;
    uint32_t special = (bits & 0x7c00u) == 0x7c00u ? 0x7f800000u : 0u;
    return bits_float(float_bits(scaled) | special | sign);
}

} // namespace insight_trace

// A 16-bit float that computes as float, as the kernels' scalar code does.
#define INSIGHT_TRACE_FLOAT16(name, encode, decode)                                                          \
    struct name {                                                                                            \
        uint16_t bits;                                                                                       \
        name() = default;                                                                                    \
        template <class T>                                                                                   \
        constexpr name(T value) : bits(insight_trace::encode(static_cast<float>(value))) {}                  \
        constexpr operator float() const { return insight_trace::decode(bits); }                             \
        constexpr name &operator+=(float other) { return *this = name(float(*this) + other); }               \
        constexpr name &operator-=(float other) { return *this = name(float(*this) - other); }               \
        constexpr name &operator*=(float other) { return *this = name(float(*this) * other); }               \
        constexpr name &operator/=(float other) { return *this = name(float(*this) / other); }               \
    }

INSIGHT_TRACE_FLOAT16(half, float_to_half, half_to_float);
INSIGHT_TRACE_FLOAT16(bfloat16_t, float_to_bf16, bf16_to_float);
#undef INSIGHT_TRACE_FLOAT16

// Storage only: kernels move them, convert them with TCVT and multiply them with TMATMUL, never compute in
// them.
struct float8_e4m3_t {
    uint8_t bits;
};
struct float8_e5m2_t {
    uint8_t bits;
};
struct float8_e8m0_t {
    uint8_t bits;
};
struct hifloat8_t {
    uint8_t bits;
};
struct float4_e2m1x2_t {
    uint8_t bits;
};
struct float4_e1m2x2_t {
    uint8_t bits;
};
struct int4b_t {
    uint8_t bits;
};
