// The code and the bits of an element type of a kernel.
#pragma once

#include <type_traits>

#include "insight_trace/abi.hpp"
#include "insight_trace/numbers.hpp"

namespace insight_trace {

// A library may have a type of its own for them.
template <class T> constexpr bool kIsInt4 = std::is_same_v<T, int4b_t>;

template <class T> constexpr Type type_of() {
    using U = std::remove_cv_t<T>;
    if constexpr (std::is_same_v<U, float>)
        return Type::F32;
    else if constexpr (std::is_same_v<U, half>)
        return Type::F16;
    else if constexpr (std::is_same_v<U, bfloat16_t>)
        return Type::BF16;
    else if constexpr (std::is_same_v<U, bool>)
        return Type::Bool;
    else if constexpr (std::is_same_v<U, float8_e4m3_t>)
        return Type::F8E4M3;
    else if constexpr (std::is_same_v<U, float8_e5m2_t>)
        return Type::F8E5M2;
    else if constexpr (std::is_same_v<U, float8_e8m0_t>)
        return Type::F8E8M0;
    else if constexpr (std::is_same_v<U, hifloat8_t>)
        return Type::HiF8;
    else if constexpr (std::is_same_v<U, float4_e2m1x2_t>)
        return Type::F4E2M1;
    else if constexpr (std::is_same_v<U, float4_e1m2x2_t>)
        return Type::F4E1M2;
    else if constexpr (kIsInt4<U>)
        return Type::I4;
    else if constexpr (std::is_integral_v<U> && sizeof(U) == 1)
        return std::is_signed_v<U> ? Type::I8 : Type::U8;
    else if constexpr (std::is_integral_v<U> && sizeof(U) == 2)
        return std::is_signed_v<U> ? Type::I16 : Type::U16;
    else if constexpr (std::is_integral_v<U> && sizeof(U) == 4)
        return std::is_signed_v<U> ? Type::I32 : Type::U32;
    else {
        static_assert(std::is_integral_v<U> && sizeof(U) == 8,
                      "element type that the tile API does not know");
        return std::is_signed_v<U> ? Type::I64 : Type::U64;
    }
}

template <class T> constexpr uint64_t value_bits(T value) {
    if constexpr (sizeof(T) == 8)
        return __builtin_bit_cast(uint64_t, value);
    else if constexpr (sizeof(T) == 4)
        return __builtin_bit_cast(uint32_t, value);
    else if constexpr (sizeof(T) == 2)
        return __builtin_bit_cast(uint16_t, value);
    else
        return __builtin_bit_cast(uint8_t, value);
}
template <class T> T bits_value(uint64_t bits) {
    if constexpr (sizeof(T) == 8)
        return __builtin_bit_cast(T, bits);
    else if constexpr (sizeof(T) == 4)
        return __builtin_bit_cast(T, static_cast<uint32_t>(bits));
    else if constexpr (sizeof(T) == 2)
        return __builtin_bit_cast(T, static_cast<uint16_t>(bits));
    else
        return __builtin_bit_cast(T, static_cast<uint8_t>(bits));
}

} // namespace insight_trace
