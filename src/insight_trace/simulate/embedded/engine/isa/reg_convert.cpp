// Conversions between the element types of registers.
//
// The narrower side lies in one of two, or of four, places of each lane of the wider one (`part`); what else
// is in the lanes of a narrower result becomes 0. The predicate is that of the source's elements. Past the
// largest number a result is held or cut as CTRL[60] says: 1 for all instructions by CTRL[48] and CTRL[59], 0
// for each by its own word.
#include <cmath>

#include "insight_trace/narrow.hpp"
#include "insight_trace/register_forms.hpp"
#include "isa/convert_numbers.hpp"
#include "isa/register_unit.hpp"
#include "isa/narrow_numbers.hpp"

namespace insight_trace::engine {

namespace {

bool is_pair(Type type) { return type == Type::I4 || type == Type::F4E2M1 || type == Type::F4E1M2; }
bool is_float(Type type) { return type == Type::F32 || type == Type::F16 || type == Type::BF16; }
bool is_narrow_float(Type type) {
    return type == Type::F8E4M3 || type == Type::F8E5M2 || type == Type::F8E8M0 || type == Type::HiF8 ||
           type == Type::F4E2M1 || type == Type::F4E1M2;
}

Round rounding_of(Rounding rounding) {
    switch (rounding) {
    case Rounding::A:
    case Rounding::H: // of HiFloat8: to nearest, halves away from zero, as far as it is published
        return Round::Away;
    case Rounding::F:
        return Round::Floor;
    case Rounding::C:
        return Round::Ceil;
    case Rounding::Z:
        return Round::Trunc;
    case Rounding::O:
        return Round::Odd;
    default:
        return Round::Rint;
    }
}

constexpr uint64_t bit(int which) { return 1ull << which; }

struct How {
    Conversion conversion;
    bool holds; // past the largest number of a float
};

How how_of(const RegisterCall &call) {
    const uint64_t control = call.core.control;
    const bool global = control & bit(60);
    const auto own = static_cast<Saturation>(call.option(1));
    const bool cuts = global ? control & bit(59) : own == Saturation::Disable;
    // from float to a 16-bit float the library names CTRL[59], the vendor's pages CTRL[48]
    const bool keeps = global ? control & (bit(48) | bit(59)) : own != Saturation::Enable;
    return {{rounding_of(static_cast<Rounding>(call.option(0))), cuts, keeps}, !keeps};
}

double narrow_value(Type type, uint8_t code) {
    switch (type) {
    case Type::F8E4M3:
        return double(e4m3_to_float(code));
    case Type::F8E5M2:
        return double(e5m2_to_float(code));
    case Type::F8E8M0:
        return double(e8m0_to_float(code));
    default:
        return double(narrow_number(type, code));
    }
}

uint8_t code_of(const RegisterCall &call, Type type, double value, const How &how) {
    const Round mode = how.conversion.rounding;
    switch (type) {
    case Type::F8E4M3:
    case Type::F8E5M2: {
        const Format &format = type == Type::F8E4M3 ? kF8E4M3 : kF8E5M2;
        if (std::isnan(value) && how.holds && !(call.core.control & bit(50))) return 0;
        return static_cast<uint8_t>(encode(value, format, mode, how.holds));
    }
    case Type::F8E8M0: { // the exponent alone
        if (std::isnan(value)) return 0xff;
        const uint32_t bits = float_bits(static_cast<float>(std::fabs(value)));
        return static_cast<uint8_t>(std::min<uint32_t>(bits >> 23, 0xfe));
    }
    case Type::HiF8: {
        if (std::isnan(value) && how.holds) return 0;
        const uint8_t code = hif8_code(value);
        return how.holds && (code & 0x7f) == 0x6f ? uint8_t((code & 0x80) | 0x6e) : code;
    }
    default:
        if (std::isnan(value)) return 0;
        return narrow_code(type, value, mode);
    }
}

template <class From, class To>
void all_numbers(void *to, const void *from, const Conversion &how, int count) {
    if constexpr (is_real<From> && is_real<To> && !std::is_same_v<From, To>) {
        if (how.rounding == Round::Rint) return convert_nearest<From, To>(to, from, nullptr, count);
    }
    convert_lanes<From, To>(to, from, &how, count);
}

// `count` numbers, one after the other.
void convert_run(const RegisterCall &call, void *to, const void *from, int count, const How &how) {
    const Type source = call.word.from, result = call.word.to;
    const auto *codes = static_cast<const uint8_t *>(from);
    if (is_narrow_float(source)) {
        if (!is_float(result)) call.unsupported("a conversion that the vector unit does not have");
        with_type(result, [&](auto tag) {
            using T = decltype(tag);
            if constexpr (is_real<T>)
                for (int i = 0; i < count; ++i)
                    static_cast<T *>(to)[i] = T(static_cast<float>(narrow_value(source, codes[i])));
        });
        return;
    }
    if (is_narrow_float(result)) {
        with_type(source, [&](auto tag) {
            using T = decltype(tag);
            const T *numbers = static_cast<const T *>(from);
            for (int i = 0; i < count; ++i)
                static_cast<uint8_t *>(to)[i] = code_of(call, result, double(float(numbers[i])), how);
        });
        return;
    }
    with_type(source, [&](auto from_tag) {
        using From = decltype(from_tag);
        with_type(result, [&](auto to_tag) {
            using To = decltype(to_tag);
            if constexpr (std::is_same_v<From, To> || (std::is_same_v<From, uint64_t> && is_real<To>))
                call.unsupported("a conversion that the vector unit does not have");
            else
                all_numbers<From, To>(to, from, how.conversion, count);
        });
    });
    if (how.holds && (result == Type::F16 || result == Type::BF16) && is_float(source))
        hold_numbers(result, to, count);
}

// Two numbers of four bits in a byte, the first in the low half: a byte stands for two lanes of the wider
// side.
void convert_pairs(const RegisterCall &call, const How &how) {
    const bool to_pairs = is_pair(call.word.to);
    const int wide = type_size(to_pairs ? call.word.from : call.word.to), part = call.option(2);
    if (wide != 2) call.unsupported("a conversion that the vector unit does not have");
    constexpr int lanes = kRegister / 2;
    uint8_t codes[lanes], result[kRegister] = {};
    if (to_pairs) {
        if (call.word.to == Type::I4) {
            const Conversion conversion{how.conversion.rounding, how.conversion.cuts, false};
            for (int i = 0; i < lanes; ++i) {
                double value = 0;
                with_type(call.word.from, [&](auto tag) {
                    value = double(float(reinterpret_cast<const decltype(tag) *>(call.a)[i]));
                });
                int number = to_integer<int8_t>(value, conversion);
                if (!conversion.cuts) number = std::max(-8, std::min(7, number));
                codes[i] = uint8_t(number & 15);
            }
        } else {
            convert_run(call, codes, call.a, lanes, how);
        }
        for (int i = 0; i < lanes / 2; ++i) // the predicate of the first of each two counts
            if (is_on(*call.mask, 4 * i))
                result[4 * i + part] = uint8_t((codes[2 * i] & 15) | codes[2 * i + 1] << 4);
        memcpy(call.dst, result, kRegister);
        return;
    }
    for (int i = 0; i < lanes / 2; ++i) {
        const uint8_t byte = call.a[4 * i + part];
        codes[2 * i] = byte & 15;
        codes[2 * i + 1] = byte >> 4;
    }
    if (call.word.from == Type::I4)
        with_type(call.word.to, [&](auto tag) {
            using T = decltype(tag);
            if constexpr (sizeof(T) == 2)
                for (int i = 0; i < lanes; ++i)
                    reinterpret_cast<T *>(result)[i] = T(codes[i] < 8 ? codes[i] : codes[i] - 16);
        });
    else
        convert_run(call, result, codes, lanes, how);
    Predicate lanes_on{};
    for (int i = 0; i < lanes / 2; ++i)
        if (is_on(*call.mask, 4 * i + part)) {
            turn_on(lanes_on, 4 * i);
            turn_on(lanes_on, 4 * i + 2);
        }
    write_lanes(call.dst, result, &lanes_on, 2, call.word.merges);
}

} // namespace

void register_conversion(const RegisterCall &call) {
    const How how = how_of(call);
    if (is_pair(call.word.from) || is_pair(call.word.to)) return convert_pairs(call, how);
    const int from = type_size(call.word.from), to = call.size(), wide = std::max(from, to);
    const int lanes = kRegister / wide, part = call.option(2);
    alignas(32) uint8_t source[kRegister], made[kRegister], result[kRegister] = {};
    if (from < wide) {
        for (int i = 0; i < lanes; ++i)
            memcpy(source + i * from, call.a + i * wide + part * from, size_t(from));
        convert_run(call, made, source, lanes, how);
        Predicate on{}; // of the result's lanes: the source's elements decide
        for (int i = 0; i < lanes; ++i)
            if (is_on(*call.mask, i * wide + part * from)) turn_on(on, i * wide);
        return write_lanes(call.dst, made, &on, wide, call.word.merges);
    }
    convert_run(call, made, call.a, lanes, how);
    if (to == wide) return write_lanes(call, made);
    if (call.word.merges) memcpy(result, call.dst, kRegister);
    for (int i = 0; i < lanes; ++i)
        if (is_on(*call.mask, i * wide)) memcpy(result + i * wide + part * to, made + i * to, size_t(to));
    memcpy(call.dst, result, kRegister);
}

// To whole numbers of the same type.
void register_truncation(const RegisterCall &call) {
    alignas(32) uint8_t result[kRegister];
    const Round mode = rounding_of(static_cast<Rounding>(call.option(0)));
    with_type(call.word.to, [&](auto tag) {
        using T = decltype(tag);
        if constexpr (is_real<T>)
            for (int i = 0; i < call.lanes(); ++i)
                reinterpret_cast<T *>(result)[i] = T(static_cast<float>(
                    to_integral(double(float(reinterpret_cast<const T *>(call.a)[i])), mode)));
        else
            call.unsupported("elements that it does not take");
    });
    if (holds_numbers(call.core, call.word.to)) hold_numbers(call.word.to, result, call.lanes());
    write_lanes(call, result);
}

} // namespace insight_trace::engine
