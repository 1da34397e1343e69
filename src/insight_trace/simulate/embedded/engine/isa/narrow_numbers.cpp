#include "isa/narrow_numbers.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "insight_trace/narrow.hpp"

namespace insight_trace::engine {

namespace {

using Decode = float (*)(uint8_t);

// The finite numbers at or above zero, in order, with their codes.
struct Scale {
    std::vector<std::pair<double, uint8_t>> numbers;
    uint8_t sign, infinity, not_a_number; // infinity: 0 where the format has none

    Scale(Decode decode, uint8_t sign_, uint8_t infinity_, uint8_t not_a_number_)
        : sign(sign_), infinity(infinity_), not_a_number(not_a_number_) {
        for (int code = 0; code < sign; ++code) {
            const double value = double(decode(static_cast<uint8_t>(code)));
            if (std::isfinite(value)) numbers.emplace_back(value, static_cast<uint8_t>(code));
        }
        std::sort(numbers.begin(), numbers.end());
    }

    uint8_t code_of(double value, Round mode) const {
        if (std::isnan(value)) return not_a_number;
        const bool negative = std::signbit(value);
        uint8_t code = magnitude(std::fabs(value), negative, mode);
        // the one zero of a format whose negative zero is not a number
        if (negative && (code || !not_a_number)) code = static_cast<uint8_t>(code | sign);
        return code;
    }

  private:
    uint8_t magnitude(double value, bool negative, Round mode) const {
        auto above = std::lower_bound(numbers.begin(), numbers.end(), std::pair<double, uint8_t>(value, 0));
        if (above == numbers.end()) { // past the largest
            const double largest = numbers.back().first, step = largest * 0.5;
            return infinity && value >= largest + step / 2 ? infinity : numbers.back().second;
        }
        if (above->first == value) return above->second;
        auto below = above - 1; // the first is zero, which no value is below
        const double low = value - below->first, high = above->first - value;
        const bool odd = (below - numbers.begin()) % 2 != 0;
        bool up = low > high || (low == high && odd);
        if (mode == Round::Away) up = low >= high;
        if (mode == Round::Floor) up = negative;
        if (mode == Round::Ceil) up = !negative;
        if (mode == Round::Trunc) up = false;
        return up ? above->second : below->second;
    }
};

const Scale &scale_of(Type type) {
    static const Scale hif8(hif8_to_float, 0x80, 0x6f, 0x80);
    static const Scale e2m1(e2m1_to_float, 8, 0, 0), e1m2(e1m2_to_float, 8, 0, 0);
    return type == Type::HiF8 ? hif8 : type == Type::F4E2M1 ? e2m1 : e1m2;
}
Decode decoder(Type type) {
    return type == Type::HiF8 ? hif8_to_float : type == Type::F4E2M1 ? e2m1_to_float : e1m2_to_float;
}

} // namespace

uint8_t hif8_code(double value) { return scale_of(Type::HiF8).code_of(value, Round::Away); }

uint8_t narrow_code(Type type, double value, Round mode) { return scale_of(type).code_of(value, mode); }
float narrow_number(Type type, uint8_t code) { return decoder(type)(code); }

} // namespace insight_trace::engine
