// Floats of eight and four bits: what each pattern stands for.
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

// Four bits: no infinity, no NaN.
inline float e2m1_to_float(uint8_t bits) {
    static constexpr float values[] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
    return bits & 8 ? -values[bits & 7] : values[bits & 7];
}
inline float e1m2_to_float(uint8_t bits) {
    static constexpr float values[] = {0.0f, 0.25f, 0.5f, 0.75f, 1.0f, 1.25f, 1.5f, 1.75f};
    return bits & 8 ? -values[bits & 7] : values[bits & 7];
}

// HiFloat8 (arXiv 2409.16626): a prefix of two to four bits says how many bits the exponent has, and so how
// many are left for the mantissa. Exponents have a sign and a leading one that is not stored. Prefix 0000 are
// powers of two from 2^-22 to 2^-16; there is one zero, and its negative is not a number.
inline float hif8_to_float(uint8_t bits) {
    const int low = bits & 0x7f;
    const uint32_t sign = (bits & 0x80u) << 24;
    auto power = [&](int exponent) { return bits_float(sign | static_cast<uint32_t>(exponent + 127) << 23); };
    if (low < 8) { // 0000
        if (low == 0) return sign ? bits_float(0x7fc00000u) : 0.0f;
        return power(low - 23);
    }
    if ((low & 0x7f) == 0x6f) return bits_float(sign | 0x7f800000u);
    const int width = low >= 0x20 ? (low >> 5) + 1 : low >= 0x10 ? 1 : 0; // bits of the exponent
    const int mantissa_bits = width > 2 ? 5 - width : 3;
    const int field = low >> mantissa_bits & ((1 << width) - 1);
    const int magnitude = width ? (1 << (width - 1)) | (field & ((1 << (width - 1)) - 1)) : 0;
    const bool negative = width && field >> (width - 1);
    const int mantissa = low & ((1 << mantissa_bits) - 1);
    return power(negative ? -magnitude : magnitude) *
           (1.0f + static_cast<float>(mantissa) / static_cast<float>(1 << mantissa_bits));
}

// A power of two from 2^-127 on.
inline float e8m0_to_float(uint8_t bits) {
    if (bits == 0xff) return bits_float(0x7fc00000u);
    return bits ? bits_float(static_cast<uint32_t>(bits) << 23) : bits_float(0x00400000u);
}

} // namespace insight_trace
