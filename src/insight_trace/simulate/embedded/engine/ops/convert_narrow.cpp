#include "convert_narrow.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "elementwise.hpp"
#include "insight_trace/narrow.hpp"
#include "nibbles.hpp"

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

bool converts(Type from, Type to) {
    if (to == Type::HiF8) return from == Type::F32 || from == Type::F16;
    if (from == Type::HiF8) return to == Type::F32;
    return (is_nibble(to) && from == Type::BF16) || (is_nibble(from) && to == Type::BF16);
}

// One line as it lies in memory: bytes, or two elements to a byte. The library clears whole lines of pairs
// before it writes them.
class Line {
  public:
    Line(Core &core, const TileRef &tile, int64_t row) : type_(tile.type) {
        bytes_ = is_nibble(tile.type) ? tile.cols / 2 : tile.cols * type_size(tile.type);
        at_ = core.local(Space::UB, tile.address + static_cast<uint32_t>(row * bytes_), uint64_t(bytes_));
    }
    void clear() { memset(at_, 0, static_cast<size_t>(bytes_)); }
    double get(int64_t i) const {
        switch (type_) {
        case Type::F32:
            return double(reinterpret_cast<const float *>(at_)[i]);
        case Type::F16:
            return double(half_to_float(reinterpret_cast<const uint16_t *>(at_)[i]));
        case Type::BF16:
            return double(bf16_to_float(reinterpret_cast<const uint16_t *>(at_)[i]));
        case Type::HiF8:
            return double(hif8_to_float(at_[i]));
        default:
            return double(decoder(type_)(at_[i / 2] >> (i % 2 * 4) & 15));
        }
    }
    void set(int64_t i, double value, Round mode) {
        if (type_ == Type::F32) {
            reinterpret_cast<float *>(at_)[i] = static_cast<float>(value);
        } else if (type_ == Type::BF16) { // all numbers of four bits are numbers of bfloat16_t
            reinterpret_cast<uint16_t *>(at_)[i] = float_to_bf16(static_cast<float>(value));
        } else if (type_ == Type::HiF8) { // always to nearest, halves away from zero
            at_[i] = scale_of(type_).code_of(value, Round::Away);
        } else {
            const int shift = static_cast<int>(i % 2 * 4);
            const int code = scale_of(type_).code_of(value, mode);
            at_[i / 2] = static_cast<uint8_t>((at_[i / 2] & ~(15 << shift)) | code << shift);
        }
    }

  private:
    Type type_;
    int64_t bytes_;
    uint8_t *at_;
};

} // namespace

uint8_t hif8_code(double value) { return scale_of(Type::HiF8).code_of(value, Round::Away); }

uint8_t narrow_code(Type type, double value, Round mode) { return scale_of(type).code_of(value, mode); }
float narrow_number(Type type, uint8_t code) { return decoder(type)(code); }

void convert_narrow(Core &core, const TileRef &dst, const TileRef &src, Round mode) {
    if (!core.register_based() || !converts(src.type, dst.type))
        core.unsupported("TCVT from %s to %s on this chip", type_name(src.type), type_name(dst.type));
    for (const TileRef *tile : {&dst, &src}) {
        if (tile->space != Space::UB || tile->inner || !tile->row_major)
            core.unsupported("TCVT of %s tiles that are not row-major vector tiles", type_name(tile->type));
        if (is_nibble(tile->type) && tile->cols % 2)
            core.unsupported("TCVT of tiles of 4-bit floats of odd width");
    }
    if (dst.valid_rows > src.rows || dst.valid_cols > src.cols)
        core.kernel_error("TCVT: the destination has %d x %d valid elements, a source tile only %d x %d",
                          dst.valid_rows, dst.valid_cols, src.rows, src.cols);
    const bool pairs = is_nibble(dst.type);
    if (core.computes) {
        if (pairs)
            for (int64_t r = 0; r < dst.valid_rows; ++r) Line(core, dst, r).clear();
        // of a last pair with one valid element nothing is written
        const int64_t written = pairs ? dst.valid_cols / 2 * 2 : dst.valid_cols;
        std::vector<double> values(static_cast<size_t>(std::max<int64_t>(0, written)));
        for (int64_t r = 0; r < dst.valid_rows; ++r) {
            Line from(core, src, r), to(core, dst, r);
            for (int64_t c = 0; c < written; ++c) values[size_t(c)] = from.get(c);
            for (int64_t c = 0; c < written; ++c) to.set(c, values[size_t(c)], mode);
        }
    }
    // its cost is the function's, which is made from the operands
    const int64_t elements = int64_t(dst.valid_rows) * dst.valid_cols;
    core.also(kWrites, dst.space, dst.type,
              pairs ? part_of(dst, 0, 0, dst.valid_rows, dst.cols) : valid_of(dst));
    core.also(kReads, src.space, src.type, part_of(src, 0, 0, dst.valid_rows, dst.valid_cols));
    core.vector(Instr::VCONV, dst.type, 1, elements, VectorOperand(dst.address).elsewhere(),
                VectorOperand(src.address).elsewhere());
}

} // namespace insight_trace::engine
