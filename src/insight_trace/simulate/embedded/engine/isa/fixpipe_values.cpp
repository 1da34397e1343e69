// What the fixpipe does to values on their way out of the accumulator, and where it writes them.
#include "isa/fixpipe_values.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "elements.hpp"
#include "isa/narrow_numbers.hpp"
#include "cluster.hpp"

namespace insight_trace::engine {

namespace {

// Nearest, ties to even, held within the type.
template <class T> T saturate(float value) {
    if (std::isnan(value)) return T(0);
    float low = static_cast<float>(std::numeric_limits<T>::lowest()),
          high = static_cast<float>(std::numeric_limits<T>::max());
    float rounded = std::nearbyint(value);
    if (rounded <= low) return std::numeric_limits<T>::lowest();
    if (rounded >= high) return std::numeric_limits<T>::max();
    return static_cast<T>(rounded);
}

// A scale is a word: a float of ten mantissa bits in bits 13..31, an offset of nine bits from 37 on, and in
// bit 46 whether eight bits are signed.
class Scale {
  public:
    Scale(Core &core, const Operand *operand) {
        if (!operand) return;
        if (operand->kind == Operand::Tile) {
            const TileRef &tile = operand->tile;
            if (tile.space != Space::Scaling || type_size(tile.type) != 8)
                core.kernel_error("%s: the scales must be a Scaling tile of 64-bit words", core.op);
            words_ = core.local_as<uint64_t>(Space::Scaling, tile.address, uint64_t(tile.cols));
            count_ = tile.cols;
        } else {
            one_ = operand->scalar.bits;
            words_ = &one_;
            count_ = 1;
            same_ = true;
        }
    }
    // One word for all columns, or one for each.
    Scale(const uint64_t *words, int64_t count) : words_(words), count_(count), same_(count == 1) {}
    Scale(const Scale &) = delete;
    bool given() const { return words_ != nullptr; }
    // Columns past the last word are not valid ones.
    uint64_t word(int64_t col) const { return words_[same_ ? 0 : std::min(col, count_ - 1)]; }

  private:
    const uint64_t *words_ = nullptr;
    int64_t count_ = 0;
    uint64_t one_ = 0;
    bool same_ = false;
};

float factor(uint64_t word) { return bits_float(static_cast<uint32_t>(word) & 0xffffe000u); }

uint8_t to_byte(float scaled, uint64_t word) {
    const int offset = static_cast<int>(word >> 37 & 0x1ff);
    const float nine_bits = std::isnan(scaled) ? 0.0f : std::nearbyint(std::clamp(scaled, -256.0f, 255.0f));
    const int value = static_cast<int>(nine_bits) + (offset >= 256 ? offset - 512 : offset);
    const bool is_signed = word >> 46 & 1;
    return static_cast<uint8_t>(is_signed ? std::clamp(value, -128, 127) : std::clamp(value, 0, 255));
}

template <class To> To held(float value) { // within the finite numbers of a 16-bit float
    const float largest = std::is_same_v<To, half> ? 65504.0f : bits_float(0x7f7f0000u);
    return To(std::clamp(value, -largest, largest));
}

// The bits of `value` in the type of the destination.
template <class To, class From>
To convert(From value, Type type, bool relu, const Scale &scale, int64_t col) {
    if (relu && value < From(0)) value = From(0);
    const float plain = static_cast<float>(value);
    if (!scale.given()) {
        if constexpr (std::is_same_v<To, From>)
            return value;
        else if constexpr (is_real<To>)
            return To(plain);
        else
            return saturate<To>(plain);
    }
    const uint64_t word = scale.word(col);
    // 16-bit integers are shifted: by one more than bits 32..35 say
    if constexpr (std::is_same_v<To, int16_t> && std::is_same_v<From, int32_t>)
        return static_cast<int16_t>(std::clamp(value >> ((word >> 32 & 15) + 1), -32768, 32767));
    const float scaled = plain * factor(word);
    if constexpr (std::is_same_v<To, float>)
        return scaled;
    else if constexpr (is_real<To>)
        return std::isnan(scaled) ? To(scaled) : held<To>(scaled);
    else if constexpr (sizeof(To) == 1) {
        if (type == Type::HiF8) return To(hif8_code(double(scaled)));
        if (type == Type::F8E4M3) return To(encode(double(scaled), kF8E4M3, Round::Rint, true));
        return To(to_byte(scaled, word));
    } else
        return saturate<To>(scaled);
}

template <class Body> void with_accumulator(Core &core, const TileRef &tile, Body body) {
    if (tile.type == Type::F32)
        body(View<float>(core, tile));
    else if (tile.type == Type::I32)
        body(View<int32_t>(core, tile));
    else
        core.kernel_error("an Acc tile holds float or int32");
}

// Elements of a row of an accumulator from a column on, in the type of their destination. One place for all
// ways out: what goes where is a matter of bytes.
void convert_row(Core &core, const TileRef &tile, Corner from, int64_t count, Type type, bool relu,
                 const Scale &scale, void *to) {
    with_accumulator(core, tile, [&](auto view) {
        with_type(type, [&](auto tag) {
            auto *out = static_cast<decltype(tag) *>(to);
            for (int64_t c = 0; c < count; ++c)
                out[c] =
                    convert<decltype(tag)>(view.at(from.row, from.col + c), type, relu, scale, from.col + c);
        });
    });
}

void add_to(Type type, void *to, const void *from, int64_t count) {
    with_type(unsigned_of(type), [&](auto tag) {
        using T = decltype(tag);
        T *sum = static_cast<T *>(to);
        const T *value = static_cast<const T *>(from);
        for (int64_t i = 0; i < count; ++i) sum[i] = T(wrap_add(Wide<T>(sum[i]), Wide<T>(value[i])));
    });
}

} // namespace

void convert_values(Type from, const void *values, int64_t count, Type to, bool relu, const uint64_t *words,
                    int64_t word_count, void *out) {
    const Scale scale(words, word_count);
    with_type(to, [&](auto tag) {
        using To = decltype(tag);
        auto all = [&](const auto *in) {
            for (int64_t i = 0; i < count; ++i)
                static_cast<To *>(out)[i] = convert<To>(in[i], to, relu, scale, i);
        };
        if (from == Type::I32)
            all(static_cast<const int32_t *>(values));
        else
            all(static_cast<const float *>(values));
    });
}

void write_accumulator(Core &core, const TileRef &tile, bool relu, const Operand *scale_operand, Type type,
                       int64_t run, bool adds, const std::function<uint64_t(int64_t, int64_t)> &address) {
    const Scale scale(core, scale_operand);
    if (!core.computes) return;
    const int64_t rows = tile.valid_rows, cols = tile.valid_cols, size = type_size(type);
    std::vector<uint64_t> line(static_cast<size_t>(std::max<int64_t>(cols, 0))); // room for any type
    const auto *bytes = reinterpret_cast<const uint8_t *>(line.data());
    for (int64_t r = 0; r < rows; ++r) {
        convert_row(core, tile, {r, 0}, cols, type, relu, scale, line.data());
        for (int64_t c = 0; c < cols;) {
            const int64_t end = std::min(cols, c + run);
            const uint64_t length = uint64_t((end - c) * size);
            uint8_t *to = core.global(address(r, c), length);
            if (adds)
                add_to(type, to, bytes + c * size, end - c);
            else
                memcpy(to, bytes + c * size, length);
            c = end;
        }
    }
}

void move_accumulator_part(Core &core, const TileRef &dst, Corner to, const TileRef &src, Corner from,
                           int64_t rows, int64_t cols, int64_t lane, bool relu,
                           const Operand *scale_operand) {
    const Scale scale(core, scale_operand);
    Core *owner = owner_of(core, dst.space, lane);
    if (!core.computes || !owner) return; // nothing runs there
    const int64_t count = std::min(cols, src.cols - from.col);
    std::vector<uint64_t> line(static_cast<size_t>(std::max<int64_t>(count, 0)));
    with_bits(dst.type, [&](auto tag) {
        using Bits = decltype(tag);
        View<Bits> out(*owner, dst);
        const Bits *values = reinterpret_cast<const Bits *>(line.data());
        for (int64_t r = 0; r < rows && from.row + r < src.rows; ++r) {
            convert_row(core, src, {from.row + r, from.col}, count, dst.type, relu, scale, line.data());
            for (int64_t c = 0; c < count; ++c) out.at(to.row + r, to.col + c) = values[c];
        }
    });
}

} // namespace insight_trace::engine
