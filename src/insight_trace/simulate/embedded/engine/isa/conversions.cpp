// Conversions between element types by one routine: from, to, rounding, and the CTRL bits that say what
// happens past the largest number.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "elements.hpp"
#include "isa/convert_numbers.hpp"
#include "isa/function_conversions.hpp"
#include "isa/vector_unit.hpp"

namespace insight_trace::engine {

namespace {

struct KnownPair {
    Type from, to;
    LaneOp any, nearest; // null: `any` serves
};
template <class From, class To> constexpr KnownPair pair(bool plain = false) {
    return {type_of<From>(), type_of<To>(), convert_lanes<From, To>,
            plain ? convert_nearest<From, To> : nullptr};
}
const KnownPair kPairs[] = {
    pair<float, half>(true),       pair<float, bfloat16_t>(true), pair<half, float>(true),
    pair<bfloat16_t, float>(true), pair<float, float>(),          pair<float, int64_t>(),
    pair<float, int32_t>(),        pair<float, int16_t>(),        pair<half, int32_t>(),
    pair<half, int16_t>(),         pair<half, int8_t>(),          pair<half, uint8_t>(),
    pair<bfloat16_t, int32_t>(),   pair<int16_t, half>(true),     pair<int16_t, float>(true),
    pair<int32_t, float>(true),    pair<int32_t, int16_t>(),      pair<int32_t, int64_t>(),
    pair<int64_t, int32_t>(),      pair<int64_t, float>(),        pair<int8_t, half>(true),
    pair<uint8_t, half>(true),
};

Conversion conversion_of(const Core &core, const VectorInstruction &i) {
    return {static_cast<Round>(i.mode & 7), cuts_integers(core.control), keeps_infinities(core.control)};
}

// Four bits: two elements of a byte, the first in the low half.
void to_nibbles(Core &core, const VectorInstruction &i) {
    constexpr int lanes = kBytesOfRepeat / 2;
    const int64_t repeats = i.mask.counts ? (i.mask.count + lanes - 1) / lanes : i.repeats;
    const int last = i.mask.counts && i.mask.count < lanes ? int(i.mask.count) - 1 : i.mask.last(lanes);
    if (repeats <= 0 || last < 0) return;
    const Conversion how = conversion_of(core, i);
    const LaneOperand from(core, i.src0, 2, repeats, last), to(core, i.dst, 1, repeats, last / 2);
    for (int64_t r = 0; r < repeats; ++r) {
        half numbers[lanes] = {};
        from.read(r, last + 1, reinterpret_cast<uint8_t *>(numbers));
        for (int lane = 0; lane <= last; ++lane) {
            if (!i.mask.has(r, lane, lanes)) continue;
            int value = to_integer<int8_t>(double(float(numbers[lane])), how);
            if (!how.cuts) value = std::clamp(value, -8, 7);
            uint8_t &byte = *to.at(r, lane / 2);
            byte = lane % 2 ? uint8_t((byte & 0x0f) | value << 4) : uint8_t((byte & 0xf0) | (value & 15));
        }
    }
}

void from_nibbles(Core &core, const VectorInstruction &i) {
    constexpr int lanes = kBytesOfRepeat / 2;
    const int64_t repeats = i.mask.counts ? (i.mask.count + lanes - 1) / lanes : i.repeats;
    const int last = i.mask.counts && i.mask.count < lanes ? int(i.mask.count) - 1 : i.mask.last(lanes);
    if (repeats <= 0 || last < 0) return;
    const LaneOperand from(core, i.src0, 1, repeats, last / 2), to(core, i.dst, 2, repeats, last);
    for (int64_t r = 0; r < repeats; ++r) {
        uint8_t bytes[lanes / 2] = {};
        from.read(r, last / 2 + 1, bytes);
        for (int lane = 0; lane <= last; ++lane) {
            if (!i.mask.has(r, lane, lanes)) continue;
            const int bits = bytes[lane / 2] >> (lane % 2 ? 4 : 0) & 15;
            const half value(float(bits < 8 ? bits : bits - 16));
            memcpy(to.at(r, lane), &value, sizeof value);
        }
    }
}

// Whole numbers times the scale of DEQSCALE: src / 2^17 x scale x 2^17.
HOT_LOOP void scaled_halves(void *to, const void *from, const void *context, int64_t count) {
    half *out = static_cast<half *>(to);
    const auto *x = static_cast<const int32_t *>(from);
    const float scale = float(*static_cast<const half *>(context));
    for (int64_t i = 0; i < count; ++i) out[i] = half(float(double(x[i]) / 131072 * double(scale) * 131072));
}

// Sums, differences and products above zero, converted.
template <class From, class To, class Fold>
HOT_LOOP void narrowed(void *to, const void *a, const void *b, int64_t count) {
    To *out = static_cast<To *>(to);
    const From *x = static_cast<const From *>(a), *y = static_cast<const From *>(b);
    const Conversion how{Round::Rint, false, false};
    using Sum = std::conditional_t<is_real<From>, float, int32_t>; // rounded and held once, at the end
    for (int64_t i = 0; i < count; ++i) {
        Sum sum = Fold::of(Sum(x[i]), Sum(y[i]));
        if (Fold::rectifies && sum <= 0) sum = 0;
        if constexpr (std::is_integral_v<To>)
            out[i] = to_integer<To>(static_cast<double>(sum), how);
        else
            out[i] = To(static_cast<float>(sum));
    }
}
struct Added {
    static constexpr bool rectifies = true;
    template <class T> static T of(T a, T b) { return wrap_add(a, b); }
};
struct Subtracted {
    static constexpr bool rectifies = true;
    template <class T> static T of(T a, T b) { return wrap_sub(a, b); }
};
struct Multiplied {
    static constexpr bool rectifies = false;
    template <class T> static T of(T a, T b) { return wrap_mul(a, b); }
};
template <class Fold> LaneOp narrowing(Type from, Type to) {
    if (from == Type::F16 && to == Type::I8) return narrowed<half, int8_t, Fold>;
    if (from == Type::F16 && to == Type::U8) return narrowed<half, uint8_t, Fold>;
    if (from == Type::F32 && to == Type::F16) return narrowed<float, half, Fold>;
    if (from == Type::I16 && to == Type::I8) return narrowed<int16_t, int8_t, Fold>;
    return nullptr;
}

} // namespace

void execute_narrowing(Core &core, const VectorInstruction &i) {
    LaneWork work{};
    work.op = i.instr == Instr::VADDRELUCONV   ? narrowing<Added>(i.from, i.to)
              : i.instr == Instr::VSUBRELUCONV ? narrowing<Subtracted>(i.from, i.to)
                                               : narrowing<Multiplied>(i.from, i.to);
    if (!work.op)
        core.unsupported("%s from %s to %s", instr_name(i.instr), type_name(i.from), type_name(i.to));
    work.to_size = type_size(i.to);
    work.a_size = work.b_size = type_size(i.from);
    work.saturates = i.to;
    walk_lanes(core, i, work);
}

// 16-bit numbers times a scale plus an offset, to bytes in one half of each block of the result.
void execute_requantisation(Core &core, const VectorInstruction &i) {
    constexpr int lanes = kBytesOfRepeat / 2, in_block = kBytesOfBlock / 2;
    const int64_t repeats = i.mask.counts ? (i.mask.count + lanes - 1) / lanes : i.repeats;
    const int last = i.mask.counts && i.mask.count < lanes ? int(i.mask.count) - 1 : i.mask.last(lanes);
    if (repeats <= 0 || last < 0) return;
    const bool by_lane = i.mode & 2;
    const int shift = i.mode & 1 ? in_block : 0;
    const uint64_t word = core.spr[static_cast<size_t>(Spr::DEQSCALE)];
    uint64_t words[in_block];
    std::fill_n(words, in_block, word);
    if (by_lane) memcpy(words, core.local(Space::UB, (word << 5) & 0xfffff, sizeof words), sizeof words);
    const LaneOperand from(core, i.src0, 2, repeats, last);
    const VectorOperand &dst = i.dst;
    core.local(Space::UB, dst.address,
               uint64_t((repeats - 1) * dst.repeat_stride * kBytesOfBlock +
                        last / in_block * dst.block_stride * kBytesOfBlock + kBytesOfBlock));
    for (int64_t r = 0; r < repeats; ++r) {
        int16_t numbers[lanes] = {};
        from.read(r, last + 1, reinterpret_cast<uint8_t *>(numbers));
        for (int lane = 0; lane <= last; ++lane) {
            if (!i.mask.has(r, lane, lanes)) continue;
            const uint64_t by = words[lane % in_block];
            const float scale = bits_float(static_cast<uint32_t>(by));
            int offset = static_cast<int>(by >> 37 & 511);
            if (offset > 255) offset -= 512;
            const bool is_signed = by >> 46 & 1;
            double value = to_integral(double(float(numbers[lane]) * scale), Round::Rint) + offset;
            value =
                value != value ? 0 : std::clamp(value, is_signed ? -128.0 : 0.0, is_signed ? 127.0 : 255.0);
            const int64_t at = int64_t(dst.repeat_stride) * r * kBytesOfBlock +
                               int64_t(lane / in_block) * dst.block_stride * kBytesOfBlock + shift +
                               lane % in_block;
            *core.local(Space::UB, dst.address + uint64_t(at), 1) =
                static_cast<uint8_t>(static_cast<int>(value));
        }
    }
}

bool has_conversion(Type from, Type to) {
    if (from == Type::I4 || to == Type::I4) return from == Type::F16 || to == Type::F16;
    if (from == Type::I32 && to == Type::F16) return true; // with a scale
    return std::any_of(std::begin(kPairs), std::end(kPairs),
                       [&](const KnownPair &pair) { return pair.from == from && pair.to == to; });
}

void execute_conversion(Core &core, const VectorInstruction &i) {
    if (core.register_based()) return execute_function_conversion(core, i);
    if (i.from == Type::I16 && type_size(i.to) == 1) return execute_requantisation(core, i);
    if (i.to == Type::I4 && i.from == Type::F16) return to_nibbles(core, i);
    if (i.from == Type::I4 && i.to == Type::F16) return from_nibbles(core, i);
    LaneWork work{};
    work.to_size = type_size(i.to);
    work.a_size = type_size(i.from);
    work.saturates = i.to;
    const Conversion how = conversion_of(core, i);
    work.context = &how;
    const uint64_t scale = core.spr[static_cast<size_t>(Spr::DEQSCALE)];
    if (i.from == Type::I32 && i.to == Type::F16) {
        work.op = scaled_halves;
        work.context = &scale;
    }
    for (const KnownPair &pair : kPairs)
        if (pair.from == i.from && pair.to == i.to)
            work.op = pair.nearest && how.rounding == Round::Rint ? pair.nearest : pair.any;
    if (!work.op)
        core.unsupported("a conversion from %s to %s: the vector unit has none", type_name(i.from),
                         type_name(i.to));
    if (i.dst.address != i.src0.address || work.to_size <= work.a_size) return walk_lanes(core, i, work);
    // To wider elements in place: what a repeat writes is what later ones read. The documents leave that
    // open; the tile library relies on reads that run ahead (TROWARGMAX of halves, more than 64 rows).
    const int lanes = kBytesOfRepeat / work.to_size;
    const int64_t repeats = i.mask.counts ? (i.mask.count + lanes - 1) / lanes : i.repeats;
    for (int64_t r = repeats - 1; r >= 0; --r) {
        VectorInstruction one = i;
        one.repeats = 1;
        for (VectorOperand *o : {&one.dst, &one.src0})
            o->address += static_cast<uint32_t>(r * o->repeat_stride * kBytesOfBlock);
        if (i.mask.counts) one.mask = LaneMask::of_count(std::min<int64_t>(lanes, i.mask.count - r * lanes));
        walk_lanes(core, one, work);
    }
}

} // namespace insight_trace::engine
