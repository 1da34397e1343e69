// Conversions of the 950's functions between element types: every pair, in every rounding mode.
#include "isa/function_conversions.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "elements.hpp"
#include "isa/narrow_numbers.hpp"

namespace insight_trace::engine {

namespace {

bool is_float(Type type) {
    return type == Type::F32 || type == Type::F16 || type == Type::BF16 || type == Type::F8E4M3 ||
           type == Type::F8E5M2;
}

// Floats of four bits, two in a byte.
bool is_pair(Type type) { return type == Type::F4E2M1 || type == Type::F4E1M2; }
bool halves_of_bytes(Type type) { return is_pair(type) || type == Type::I4; }

struct FunctionConversion {
    Type from, to;
    Round mode;
    bool saturate;
    bool through_i32; // clamped to 32 bits before it wraps
};

template <class T> T integer(double rounded, const FunctionConversion &job) {
    if (rounded != rounded) return 0;
    if (job.saturate) {
        if (rounded <= static_cast<double>(std::numeric_limits<T>::min()))
            return std::numeric_limits<T>::min();
        if (rounded >= static_cast<double>(std::numeric_limits<T>::max()))
            return std::numeric_limits<T>::max();
        return static_cast<T>(rounded);
    }
    constexpr double i32_low = -2147483648.0, i32_high = 2147483647.0, i64_end = 9223372036854775808.0;
    if (job.through_i32) rounded = std::max(i32_low, std::min(i32_high, rounded));
    if (rounded >= i64_end) return static_cast<T>(std::numeric_limits<int64_t>::max());
    if (rounded < -i64_end) return static_cast<T>(std::numeric_limits<int64_t>::min());
    return static_cast<T>(static_cast<int64_t>(rounded));
}

template <class T> void load(const uint8_t *from, int count, double *to) {
    const T *typed = reinterpret_cast<const T *>(from);
    for (int i = 0; i < count; ++i) {
        if constexpr (sizeof(T) == 8)
            to[i] = sticky_double(typed[i]);
        else if constexpr (is_real<T>)
            to[i] = double(float(typed[i]));
        else
            to[i] = double(typed[i]);
    }
}

template <class T> void store(const double *from, int count, uint8_t *to, const FunctionConversion &job) {
    T *typed = reinterpret_cast<T *>(to);
    for (int i = 0; i < count; ++i) typed[i] = integer<T>(to_integral(from[i], job.mode), job);
}
template <class Code>
void store_code(const double *from, int count, uint8_t *to, const FunctionConversion &job,
                const Format &format, bool saturate) {
    Code *typed = reinterpret_cast<Code *>(to);
    for (int i = 0; i < count; ++i) typed[i] = static_cast<Code>(encode(from[i], format, job.mode, saturate));
}

// Two elements a byte, the first in the low half.
void store_nibbles(const double *from, int count, uint8_t *to, Round mode) {
    for (int i = 0; i < count; ++i) {
        double rounded = to_integral(from[i], mode);
        int value = rounded != rounded ? 0 : static_cast<int>(std::max(-8.0, std::min(7.0, rounded)));
        int shift = i % 2 * 4;
        to[i / 2] = static_cast<uint8_t>((to[i / 2] & ~(15 << shift)) | (value & 15) << shift);
    }
}
void load_nibbles(const uint8_t *from, int count, double *to) {
    for (int i = 0; i < count; ++i) {
        int value = from[i / 2] >> (i % 2 * 4) & 15;
        to[i] = value < 8 ? value : value - 16;
    }
}

// HiFloat8, and floats of four bits, of which two lie in a byte.
void load_narrow(Type type, const uint8_t *from, int count, double *to) {
    const bool pairs = is_pair(type);
    for (int i = 0; i < count; ++i)
        to[i] = double(narrow_number(type, pairs ? uint8_t(from[i / 2] >> (i % 2 * 4) & 15) : from[i]));
}
void store_narrow(const double *from, int count, uint8_t *to, const FunctionConversion &job) {
    for (int i = 0; i < count; ++i) {
        if (!is_pair(job.to)) { // always to nearest, halves away from zero
            to[i] = narrow_code(job.to, from[i], Round::Away);
            continue;
        }
        const int shift = i % 2 * 4, code = narrow_code(job.to, from[i], job.mode);
        to[i / 2] = static_cast<uint8_t>((to[i / 2] & ~(15 << shift)) | code << shift);
    }
}

void load_line(Type type, const uint8_t *from, int count, double *to) {
    if (type == Type::I4) return load_nibbles(from, count, to);
    if (type == Type::HiF8 || is_pair(type)) return load_narrow(type, from, count, to);
    if (type == Type::F8E4M3 || type == Type::F8E5M2) {
        const Format &format = type == Type::F8E4M3 ? kF8E4M3 : kF8E5M2;
        for (int i = 0; i < count; ++i) to[i] = decode(from[i], format);
        return;
    }
    with_type(type, [&](auto tag) { load<decltype(tag)>(from, count, to); });
}

void store_line(const double *from, int count, uint8_t *to, const FunctionConversion &job) {
    switch (job.to) {
    case Type::I4:
        return store_nibbles(from, count, to, job.mode);
    case Type::HiF8:
    case Type::F4E2M1:
    case Type::F4E1M2:
        return store_narrow(from, count, to, job);
    case Type::F32:
        if (job.from == Type::F32) // the same type: to a whole number
            for (int i = 0; i < count; ++i)
                reinterpret_cast<float *>(to)[i] = float(to_integral(from[i], job.mode));
        else
            store_code<uint32_t>(from, count, to, job, kF32, false);
        return;
    case Type::F16:
        return store_code<uint16_t>(from, count, to, job, kF16, false);
    case Type::BF16:
        return store_code<uint16_t>(from, count, to, job, kBF16, false);
    case Type::F8E4M3:
        return store_code<uint8_t>(from, count, to, job, kF8E4M3, job.saturate);
    case Type::F8E5M2:
        return store_code<uint8_t>(from, count, to, job, kF8E5M2, job.saturate);
    default:
        with_type(job.to, [&](auto tag) {
            using T = decltype(tag);
            if constexpr (std::is_integral_v<T>) store<T>(from, count, to, job);
        });
    }
}

template <class From, class To, class Body>
bool convert_fast(const uint8_t *from, int count, uint8_t *to, Body body) {
    const From *x = reinterpret_cast<const From *>(from);
    To *y = reinterpret_cast<To *>(to);
    for (int i = 0; i < count; ++i) y[i] = body(x[i]);
    return true;
}

// Pairs that kernels use all the time, without the way over double.
bool fast_line(const FunctionConversion &job, const uint8_t *from, int count, uint8_t *to) {
    bool nearest = job.mode == Round::Rint;
    switch (job.from) {
    case Type::F32:
        if (job.to == Type::BF16 && nearest)
            return convert_fast<float, uint16_t>(from, count, to, [](float x) { return float_to_bf16(x); });
        if (job.to == Type::F16 && nearest)
            return convert_fast<float, uint16_t>(from, count, to, [](float x) { return float_to_half(x); });
        return false;
    case Type::BF16:
        if (job.to != Type::F32) return false;
        return convert_fast<uint16_t, float>(from, count, to, [](uint16_t x) { return bf16_to_float(x); });
    case Type::F16:
        if (job.to != Type::F32) return false;
        return convert_fast<uint16_t, float>(from, count, to, [](uint16_t x) { return half_to_float(x); });
    case Type::I32:
        if (job.to != Type::F32 || !nearest) return false;
        return convert_fast<int32_t, float>(from, count, to, [](int32_t x) { return float(x); });
    default:
        return false;
    }
}

// Integers stay integers, so that 64 of their bits count.
bool integer_line(const FunctionConversion &job, const uint8_t *from, int count, uint8_t *to) {
    if (halves_of_bytes(job.from) || halves_of_bytes(job.to) || job.from == Type::HiF8 ||
        job.to == Type::HiF8)
        return false;
    if (is_float(job.from) || is_float(job.to) || job.from == Type::U64 || job.to == Type::U64) return false;
    with_type(job.from, [&](auto from_tag) {
        using From = decltype(from_tag);
        if constexpr (std::is_integral_v<From>)
            with_type(job.to, [&](auto to_tag) {
                using To = decltype(to_tag);
                if constexpr (std::is_integral_v<To>)
                    convert_fast<From, To>(from, count, to, [&](From x) {
                        int64_t value = static_cast<int64_t>(x);
                        if (job.saturate)
                            value = std::clamp(value, static_cast<int64_t>(std::numeric_limits<To>::min()),
                                               sizeof(To) == 8
                                                   ? std::numeric_limits<int64_t>::max()
                                                   : static_cast<int64_t>(std::numeric_limits<To>::max()));
                        return static_cast<To>(value);
                    });
            });
    });
    return true;
}

} // namespace

void execute_function_conversion(Core &core, const VectorInstruction &i) {
    const FunctionConversion job{i.from, i.to, static_cast<Round>(i.mode & 7), !(i.mode & kWraps),
                                 (i.mode & kThroughInt32) != 0};
    const int64_t count = i.mask.counts ? i.mask.count : 0;
    if (!i.mask.counts) core.unsupported("a conversion of a function that does not count its elements");
    auto bytes = [](Type type, int64_t elements) {
        return halves_of_bytes(type) ? (elements + 1) / 2 : elements * type_size(type);
    };
    uint8_t *to = core.local(Space::UB, i.dst.address, uint64_t(bytes(job.to, count)));
    const uint8_t *from = core.local(Space::UB, i.src0.address, uint64_t(bytes(job.from, count)));
    // the result may lie over the source: what is read must be out before anything is written
    const std::vector<uint8_t> kept(from, from + bytes(job.from, count));
    constexpr int kPiece = 256;
    double piece[kPiece];
    for (int64_t done = 0; done < count; done += kPiece) {
        const int some = static_cast<int>(std::min<int64_t>(kPiece, count - done));
        uint8_t *into = to + bytes(job.to, done);
        const uint8_t *source = kept.data() + bytes(job.from, done);
        if (!fast_line(job, source, some, into) && !integer_line(job, source, some, into)) {
            load_line(job.from, source, some, piece);
            store_line(piece, some, into, job);
        }
        if (holds_numbers(core, job.to)) hold_numbers(job.to, into, some);
    }
}

} // namespace insight_trace::engine
