// Floats of eight bits: what each pattern stands for.
#pragma once

#include "insight_trace/numbers.hpp"

namespace insight_trace {

inline float narrow_to_float(uint8_t bits, int mantissa_bits, int bias) {
    const int exponent = (bits & 0x7f) >> mantissa_bits, mantissa = bits & ((1 << mantissa_bits) - 1);
    const float magnitude =
        exponent ? static_cast<float>((1 << mantissa_bits) + mantissa) : static_cast<float>(mantissa);
    const int power = (exponent ? exponent : 1) - bias - mantissa_bits;
    const float value = magnitude * bits_float(static_cast<uint32_t>(power + 127) << 23);
    return bits & 0x80 ? -value : value;
}

// No infinity; all ones is not a number.
inline float e4m3_to_float(uint8_t bits) {
    return (bits & 0x7f) == 0x7f ? bits_float(0x7fc00000u) : narrow_to_float(bits, 3, 7);
}

inline float e5m2_to_float(uint8_t bits) {
    if ((bits & 0x7c) != 0x7c) return narrow_to_float(bits, 2, 15);
    const uint32_t sign = (bits & 0x80u) << 24;
    return bits_float(sign | (bits & 3 ? 0x7fc00000u : 0x7f800000u));
}

// A power of two from 2^-127 on.
inline float e8m0_to_float(uint8_t bits) {
    if (bits == 0xff) return bits_float(0x7fc00000u);
    return bits ? bits_float(static_cast<uint32_t>(bits) << 23) : bits_float(0x00400000u);
}

} // namespace insight_trace
