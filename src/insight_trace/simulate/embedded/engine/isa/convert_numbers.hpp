// One number of a type as a number of another.
#pragma once

#include "elements.hpp"
#include "isa/rounding.hpp"

namespace insight_trace::engine {

struct Conversion {
    Round rounding;
    bool cuts;  // integers keep their low bits, else they are held at the largest number
    bool keeps; // infinities and NaN of 16-bit floats stay, else they are held
};

template <class To> To to_float(double x, Round rounding) {
    const bool narrow = !std::is_same_v<To, float>;
    const Format &format = std::is_same_v<To, half> ? kF16 : narrow ? kBF16 : kF32;
    const uint32_t code = encode(x, format, rounding, false);
    To value;
    if constexpr (std::is_same_v<To, float>)
        value = bits_float(code);
    else
        value.bits = static_cast<uint16_t>(code);
    return value;
}

template <class To> To to_integer(double x, const Conversion &how) {
    if (x != x) return 0;
    const double rounded = to_integral(x, how.rounding);
    constexpr double low = static_cast<double>(std::numeric_limits<To>::min()),
                     high = static_cast<double>(std::numeric_limits<To>::max());
    if (how.cuts) { // the low bits of 64, which hold the largest numbers that there are
        if (rounded >= 0x1p63) return static_cast<To>(std::numeric_limits<int64_t>::max());
        if (rounded < -0x1p63) return static_cast<To>(std::numeric_limits<int64_t>::min());
        return static_cast<To>(static_cast<int64_t>(rounded));
    }
    if (rounded <= low) return std::numeric_limits<To>::min();
    if (rounded >= high) return std::numeric_limits<To>::max();
    return static_cast<To>(rounded);
}

template <class From, class To> To converted(From x, const Conversion &how) {
    if constexpr (std::is_integral_v<From> && std::is_integral_v<To>) {
        if (how.cuts) return static_cast<To>(x);
        const auto value = static_cast<int64_t>(x);
        const auto low = static_cast<int64_t>(std::numeric_limits<To>::min()),
                   high = static_cast<int64_t>(std::numeric_limits<To>::max());
        return static_cast<To>(value < low ? low : value > high ? high : value);
    } else if constexpr (std::is_integral_v<To>) {
        return to_integer<To>(static_cast<double>(float(x)), how);
    } else if constexpr (std::is_same_v<From, int64_t>) {
        return to_float<To>(sticky_double(x), how.rounding);
    } else if constexpr (std::is_same_v<From, To>) {
        return To(static_cast<float>(to_integral(static_cast<double>(float(x)), how.rounding)));
    } else {
        return to_float<To>(static_cast<double>(x), how.rounding);
    }
}

template <class From, class To>
HOT_LOOP void convert_lanes(void *to, const void *from, const void *context, int64_t count) {
    To *out = static_cast<To *>(to);
    const From *x = static_cast<const From *>(from);
    const Conversion how = *static_cast<const Conversion *>(context);
    for (int64_t i = 0; i < count; ++i) out[i] = converted<From, To>(x[i], how);
}
// To the nearest, or exactly: what the compiler has a loop for.
template <class From, class To>
HOT_LOOP void convert_nearest(void *to, const void *from, const void *, int64_t count) {
    To *out = static_cast<To *>(to);
    const From *x = static_cast<const From *>(from);
    for (int64_t i = 0; i < count; ++i) out[i] = To(static_cast<float>(x[i]));
}

} // namespace insight_trace::engine
