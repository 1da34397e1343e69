// TQUANT as the 950 does it: groups of 32 elements that share a power of two.
#include "isa/composites.hpp"

#include <vector>

#include "insight_trace/narrow.hpp"
#include "isa/rounding.hpp"
#include "ops/steps.hpp"

namespace insight_trace::engine {

namespace {

constexpr int64_t kGroup = 32;
enum Kind : int64_t { MXFP8 = 0, MXFP4 = 1 }; // pto::QuantType
// How, as bits: the shared exponent, along columns, exponents of two groups side by side.
constexpr int64_t kRoundsUp = 1, kDown = 2, kInterleaved = 4;

// What a group shares: the exponent that is stored, and what its elements are multiplied by.
struct Shared {
    uint8_t exponent;
    float scaling;
};

// The exponent of the largest number, less that of the largest number of the format. `least` is the smallest
// exponent field that stays a normal scale; 16-bit floats take the upper half of a float.
Shared truncated(float largest, int less) {
    const uint32_t bits = float_bits(largest);
    const int exponent = static_cast<int>(bits >> 23 & 0xff);
    if (exponent == 0xff && (bits & 0x7fffff)) return {0xff, bits_float(0x7fc00000u)};
    if (exponent <= less) return {0, bits_float(0x7f000000u)};
    const int stored = exponent - less;
    return {static_cast<uint8_t>(stored), bits_float(static_cast<uint32_t>(254 - stored) << 23)};
}

// The largest number over that of the format, to the power of two above it.
Shared rounded_up(float largest, float of_format) {
    if (largest == 0) return {0, bits_float(0x7f000000u)};
    const uint32_t bits = float_bits(largest * (1.0f / of_format));
    const int exponent = static_cast<int>(bits >> 23 & 0xff);
    const uint32_t mantissa = bits & 0x7fffff;
    const float smallest = bits_float(0x00400000u);
    if (exponent == 0xff) return mantissa ? Shared{0xff, bits_float(0x7fc00000u)} : Shared{0xfe, smallest};
    const bool up = mantissa && exponent != 0xfe && !(exponent == 0 && mantissa <= 0x400000);
    const int stored = exponent + up;
    if (stored == 0) return {0, bits_float(0x7f000000u)};
    if (stored == 0xfe) return {0xfe, smallest};
    return {static_cast<uint8_t>(stored), bits_float(static_cast<uint32_t>(254 - stored) << 23)};
}

float largest_of(const std::vector<float> &values, bool upper_half) {
    float largest = 0;
    for (float value : values) {
        uint32_t bits = float_bits(value) & 0x7fffffffu;
        if (upper_half) bits &= 0xffff0000u;
        largest = larger(larger(bits_float(bits), largest), bits_float(bits));
    }
    return largest;
}

// Nearest, ties to even; all that is too large is the largest.
uint8_t to_e2m1(float value) {
    if (std::isnan(value)) return 7;
    const float magnitude = std::fabs(value);
    int best = 0;
    for (int code = 1; code < 8; ++code) {
        const float middle = (e2m1_to_float(uint8_t(code)) + e2m1_to_float(uint8_t(code - 1))) / 2;
        if (magnitude > middle || (magnitude == middle && code % 2 == 0)) best = code;
    }
    return static_cast<uint8_t>(best | (std::signbit(value) ? 8 : 0));
}

uint8_t to_e4m3(float value) {
    if (!std::isnan(value)) value = std::min(448.0f, std::max(-448.0f, value));
    return static_cast<uint8_t>(encode(double(value), kF8E4M3, Round::Rint, true));
}

// All that one call works on.
struct Grouping {
    const TileRef &dst, &src, &exponents, &maxima, &scalings;
    bool fp4, rounds_up, down, interleaved;

    // `down`: groups lie along columns
    int64_t lines() const { return down ? src.valid_cols : src.valid_rows; }
    int64_t length() const { return down ? src.valid_rows : src.valid_cols; }
    int64_t groups() const { return ceil_div(length(), kGroup); }
    int64_t exponent_at(int64_t line, int64_t group) const {
        if (down)
            return interleaved ? group / 2 * exponents.cols + line * 2 + group % 2
                               : group * exponents.cols + line;
        return exponents.rows == 1 ? line * groups() + group : line * exponents.cols + group;
    }
    int64_t value_at(int64_t line, int64_t group) const {
        if (down) return group * maxima.cols + line;
        return line * groups() + group;
    }
};

template <class T> void quantise(Core &core, const Grouping &job) {
    View<T> in(core, job.src);
    uint8_t *out =
        core.local(Space::UB, job.dst.address,
                   uint64_t(job.dst.rows) * uint64_t(job.dst.cols) * uint64_t(type_size(job.dst.type)));
    const int64_t lines = job.lines(), groups = job.groups(), length = job.length();
    const bool sixteen = sizeof(T) == 2;
    std::vector<float> maxima(static_cast<size_t>(lines * groups)), values(kGroup);
    std::vector<Shared> shared(maxima.size());
    auto element = [&](int64_t line, int64_t i) {
        if (i >= length) return 0.0f; // what fills the last group up
        return float(job.down ? in.at(i, line) : in.at(line, i));
    };
    for (int64_t line = 0; line < lines; ++line)
        for (int64_t group = 0; group < groups; ++group) {
            const size_t at = static_cast<size_t>(line * groups + group);
            for (int64_t i = 0; i < kGroup; ++i)
                values[static_cast<size_t>(i)] = element(line, group * kGroup + i);
            maxima[at] = largest_of(values, sixteen && !job.rounds_up);
            shared[at] = job.rounds_up ? rounded_up(maxima[at], job.fp4 ? 6.0f : 448.0f)
                                       : truncated(maxima[at], job.fp4 ? 2 : 8);
        }
    // results last: a tile of them may lie where the source was read
    const int64_t pitch = job.fp4 ? job.src.cols / 2 : job.dst.cols;
    std::vector<uint8_t> codes(static_cast<size_t>(lines * groups * kGroup));
    for (int64_t line = 0; line < lines; ++line)
        for (int64_t i = 0; i < groups * kGroup; ++i) {
            const float by = shared[static_cast<size_t>(line * groups + i / kGroup)].scaling;
            const float scaled = element(line, i) * by;
            codes[static_cast<size_t>(line * groups * kGroup + i)] =
                job.fp4 ? to_e2m1(scaled)
                        : to_e4m3(std::is_same_v<T, bfloat16_t> ? float(T(scaled)) : scaled);
        }
    const int64_t most = int64_t(core.space_size(Space::UB)) - job.dst.address;
    for (int64_t line = 0; line < lines; ++line)
        for (int64_t i = 0; i < groups * kGroup; ++i) {
            const uint8_t code = codes[static_cast<size_t>(line * groups * kGroup + i)];
            if (job.down) {
                if (i < length) out[i * pitch + line] = code;
            } else if (job.fp4) {
                const int64_t at = line * pitch + i / 2;
                if (at >= most) core.kernel_error("TQUANT goes past the end of UB");
                const int shift = static_cast<int>(i % 2 * 4);
                out[at] = static_cast<uint8_t>((out[at] & ~(15 << shift)) | code << shift);
            } else if (i < job.dst.cols) {
                out[line * pitch + i] = code;
            }
        }
    const int64_t last = lines > 0 && groups > 0 ? job.value_at(lines - 1, groups - 1) + 1 : 0;
    T *most_of = core.local_as<T>(Space::UB, job.maxima.address, uint64_t(last));
    for (int64_t line = 0; line < lines; ++line)
        for (int64_t group = 0; group < groups; ++group)
            most_of[job.value_at(line, group)] = T(maxima[static_cast<size_t>(line * groups + group)]);
    T *by_of = core.local_as<T>(Space::UB, job.scalings.address, uint64_t(last));
    const int64_t end = lines > 0 && groups > 0 ? job.exponent_at(lines - 1, groups - 1) + 1 : 0;
    uint8_t *exponents = core.local(Space::UB, job.exponents.address, uint64_t(end));
    for (int64_t line = 0; line < lines; ++line)
        for (int64_t group = 0; group < groups; ++group) {
            const Shared &one = shared[static_cast<size_t>(line * groups + group)];
            by_of[job.value_at(line, group)] = T(one.scaling);
            exponents[job.exponent_at(line, group)] = one.exponent;
        }
}

void issue(Core &core, const TileRef &dst, const TileRef &src) {
    const int64_t elements = int64_t(src.valid_rows) * src.valid_cols;
    core.vector(issued_only(Instr::VCONV), src.type,
                static_cast<int>(ceil_div(elements, per_repeat(src.type))), elements,
                VectorOperand(dst.address), VectorOperand(src.address));
}

} // namespace

void quantise_groups(Core &core, const Operands &operands) {
    if (!core.register_based()) core.unsupported("TQUANT to block formats (MXFP8, MXFP4) on this chip");
    if (operands.count < 7) core.unsupported("TQUANT to block formats in this form");
    const TileRef &dst = tile_operand(core, operands, 0), &src = tile_operand(core, operands, 1);
    const int64_t kind = operands[3].option, how = operands[6].option;
    if (kind != MXFP8 && kind != MXFP4) core.unsupported("TQUANT to HiFloat4");
    const Grouping job{dst,
                       src,
                       tile_operand(core, operands, 2),
                       tile_operand(core, operands, 4),
                       tile_operand(core, operands, 5),
                       kind == MXFP4,
                       (how & kRoundsUp) != 0,
                       (how & kDown) != 0,
                       (how & kInterleaved) != 0};
    if (job.fp4 && job.down) core.unsupported("TQUANT to 4-bit floats in groups along columns");
    need_plain_rows(core, src, "source");
    need_plain_rows(core, dst, "destination");
    with_type_of(core, core.op, src.type, Floats(), [&](auto tag) {
        if (core.computes) quantise<decltype(tag)>(core, job);
    });
    issue(core, dst, src);
}

} // namespace insight_trace::engine
