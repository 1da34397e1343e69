#include "isa/rounding.hpp"

namespace insight_trace::engine {

// Whole numbers at or above 0 are rounded to neighbour `low` or `low` + 1; `rest` in [0, 1) is what is
// between.
static bool rounds_up(double low, double rest, bool negative, Round mode) {
    if (rest == 0) return false;
    bool odd = std::fmod(low, 2.0) != 0;
    switch (mode) {
    case Round::Away:
        return rest >= 0.5;
    case Round::Floor:
        return negative;
    case Round::Ceil:
        return !negative;
    case Round::Trunc:
        return false;
    case Round::Odd:
        return !odd;
    default:
        return rest > 0.5 || (rest == 0.5 && odd);
    }
}

double to_integral(double value, Round mode) {
    if (!std::isfinite(value)) return value;
    double magnitude = std::fabs(value), low = std::floor(magnitude);
    if (rounds_up(low, magnitude - low, std::signbit(value), mode)) low += 1;
    return std::copysign(low, value);
}

uint32_t encode(double value, const Format &format, Round mode, bool saturate) {
    bool negative = std::signbit(value);
    uint32_t sign = negative ? 1u << (format.exponent_bits + format.mantissa_bits) : 0u;
    if (std::isnan(value)) return format.not_a_number;
    uint32_t infinity = ((1u << format.exponent_bits) - 1u) << format.mantissa_bits;
    if (std::isinf(value)) {
        if (saturate) return sign | format.largest;
        return format.infinity ? sign | infinity : format.not_a_number | sign;
    }
    if (value == 0) return sign;
    int bias = (1 << (format.exponent_bits - 1)) - 1, exponent;
    double magnitude = std::fabs(value);
    std::frexp(magnitude, &exponent);
    exponent -= 1; // of the leading bit
    int least = 1 - bias;
    bool subnormal = exponent < least;
    int unit = (subnormal ? least : exponent) - format.mantissa_bits; // exponent of the last bit
    double scaled = std::ldexp(magnitude, -unit), low = std::floor(scaled);
    if (rounds_up(low, scaled - low, negative, mode)) low += 1;
    uint64_t mantissa = static_cast<uint64_t>(low), hidden = 1ull << format.mantissa_bits;
    // a mantissa that was rounded up to the next power of two carries into the exponent by itself
    uint64_t code =
        subnormal ? mantissa
                  : (static_cast<uint64_t>(exponent + bias) << format.mantissa_bits) + (mantissa - hidden);
    if (code <= format.largest) return sign | static_cast<uint32_t>(code);
    bool outward =
        mode != Round::Trunc && mode != Round::Odd && mode != (negative ? Round::Ceil : Round::Floor);
    if (saturate || !outward) return sign | format.largest;
    return sign | (format.infinity ? infinity : format.not_a_number);
}

double decode(uint32_t code, const Format &format) {
    uint32_t mantissa = code & ((1u << format.mantissa_bits) - 1u);
    uint32_t exponent = code >> format.mantissa_bits & ((1u << format.exponent_bits) - 1u);
    bool negative = code >> (format.mantissa_bits + format.exponent_bits) & 1u;
    int bias = (1 << (format.exponent_bits - 1)) - 1;
    double magnitude;
    if ((code & ((1u << (format.exponent_bits + format.mantissa_bits)) - 1u)) > format.largest)
        magnitude = format.infinity && mantissa == 0 ? std::numeric_limits<double>::infinity()
                                                     : std::numeric_limits<double>::quiet_NaN();
    else if (exponent == 0)
        magnitude = std::ldexp(double(mantissa), 1 - bias - format.mantissa_bits);
    else
        magnitude = std::ldexp(double(mantissa | 1u << format.mantissa_bits),
                               static_cast<int>(exponent) - bias - format.mantissa_bits);
    return negative ? -magnitude : magnitude;
}

double sticky_double(uint64_t value) {
    uint64_t lost = value & 0x7ff;
    if (value >> 53 && lost) value = (value & ~0x7ffull) | 0x800;
    return static_cast<double>(value);
}
double sticky_double(int64_t value) {
    uint64_t magnitude = value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
    double result = sticky_double(magnitude);
    return value < 0 ? -result : result;
}

} // namespace insight_trace::engine
