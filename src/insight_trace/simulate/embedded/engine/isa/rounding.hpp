// Conversions between number formats, exact in every rounding mode.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace insight_trace::engine {

// As pto::RoundMode.
enum class Round : uint8_t { None, Rint, Away, Floor, Ceil, Trunc, Odd };

// The integer beside `value` that the mode asks for. Odd: the odd one of the two beside an inexact value.
double to_integral(double value, Round mode);

// A binary format of sign, exponent and mantissa.
struct Format {
    int exponent_bits, mantissa_bits;
    bool infinity;    // the largest exponent means infinity and NaN; else only its last code is NaN
    uint32_t largest; // code of the largest finite number
    uint32_t not_a_number;
};
constexpr Format kF32{8, 23, true, 0x7f7fffff, 0x7fc00000};
constexpr Format kF16{5, 10, true, 0x7bff, 0x7e00};
constexpr Format kBF16{8, 7, true, 0x7f7f, 0x7fc0};
constexpr Format kF8E4M3{4, 3, false, 0x7e, 0x7f};
constexpr Format kF8E5M2{5, 2, true, 0x7b, 0x7e};

// Code of `value` in the format. Overflow: infinity where the mode rounds away from zero and the format has
// one, else the largest finite number; `saturate` makes it that in any case.
uint32_t encode(double value, const Format &format, Round mode, bool saturate);
double decode(uint32_t code, const Format &format);

// A 64-bit integer as a double that rounds to any shorter format as the integer itself would: bits that do
// not fit leave a trace in the last one.
double sticky_double(int64_t value);
double sticky_double(uint64_t value);

} // namespace insight_trace::engine
