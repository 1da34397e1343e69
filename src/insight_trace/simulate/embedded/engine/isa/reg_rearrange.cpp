// Reductions and new orders of the lanes of registers.
//
// A sum is a binary tree of neighbours, rounded at every level; lanes that are off count as 0, and as the
// least or the largest number of an extreme. NaN wins against every number, the first of equal values counts,
// +0 is larger than -0 (Reduce of the vendor's pages).
#include <cmath>
#include <limits>

#include "isa/register_unit.hpp"

namespace insight_trace::engine {

namespace {

template <class T> T least() {
    if constexpr (is_real<T>)
        return T(-INFINITY);
    else
        return std::numeric_limits<T>::lowest();
}
template <class T> T largest() {
    if constexpr (is_real<T>)
        return T(INFINITY);
    else
        return std::numeric_limits<T>::max();
}
// Lanes of the source; `none` where one is off.
template <class T> void read_lanes(const RegisterCall &call, T *into, T none) {
    const T *from = lanes_of<T>(call.a);
    for (int i = 0; i < kRegister / int(sizeof(T)); ++i)
        into[i] = is_on(*call.mask, i * int(sizeof(T))) ? from[i] : none;
}

template <class T> T tree_sum(T *level, int count, bool holds) {
    for (; count > 1; count /= 2)
        for (int i = 0; i < count / 2; ++i) {
            level[i] = T(wrap_add(Wide<T>(level[2 * i]), Wide<T>(level[2 * i + 1])));
            if constexpr (sizeof(T) == 2 && is_real<T>)
                if (holds) hold_numbers(type_of<T>(), &level[i], 1);
        }
    return level[0];
}

template <class T> bool exceeds(T a, T b, bool larger) {
    const auto x = Wide<T>(a), y = Wide<T>(b);
    if constexpr (is_real<T>) {
        if (x != x) return y == y;
        if (y != y) return false;
        if (x == 0 && y == 0)
            return larger ? std::signbit(y) && !std::signbit(x) : std::signbit(x) && !std::signbit(y);
    }
    return larger ? x > y : x < y;
}

bool takes_largest(RegisterRow row) { return row == RegisterRow::vcmax || row == RegisterRow::vcgmax; }

template <class Body> void with_number(const RegisterCall &call, Body &&body) {
    with_type(call.word.from, body);
}

} // namespace

void register_sum(const RegisterCall &call) {
    uint8_t result[kRegister] = {};
    with_number(call, [&](auto tag) {
        using T = decltype(tag);
        using Sum = std::conditional_t<std::is_same_v<T, int16_t>, int32_t,
                                       std::conditional_t<std::is_same_v<T, uint16_t>, uint32_t, T>>;
        if (type_size(call.word.to) != int(sizeof(Sum))) call.unsupported("a sum of these elements");
        T lanes[kRegister / sizeof(T)];
        read_lanes(call, lanes, T(0));
        Sum wide[kRegister / sizeof(T)];
        for (size_t i = 0; i < kRegister / sizeof(T); ++i) wide[i] = Sum(lanes[i]);
        const Sum sum = tree_sum(wide, kRegister / int(sizeof(T)), holds_numbers(call.core, call.word.to));
        memcpy(result, &sum, sizeof sum);
    });
    memcpy(call.dst, result, kRegister);
}

// The value, and its index behind it.
void register_extreme(const RegisterCall &call) {
    uint8_t result[kRegister] = {};
    const bool larger = takes_largest(call.word.row);
    with_number(call, [&](auto tag) {
        using T = decltype(tag);
        T lanes[kRegister / sizeof(T)];
        read_lanes(call, lanes, larger ? least<T>() : largest<T>());
        uint64_t best = 0;
        for (size_t i = 1; i < kRegister / sizeof(T); ++i)
            if (exceeds(lanes[i], lanes[best], larger)) best = i;
        memcpy(result, &lanes[best], sizeof(T));
        memcpy(result + sizeof(T), &best, sizeof(T));
    });
    memcpy(call.dst, result, kRegister);
}

void register_block_reduction(const RegisterCall &call) {
    uint8_t result[kRegister] = {};
    const bool adds = call.word.row == RegisterRow::vcgadd, larger = takes_largest(call.word.row);
    with_number(call, [&](auto tag) {
        using T = decltype(tag);
        constexpr int each = 32 / int(sizeof(T));
        T lanes[kRegister / sizeof(T)];
        read_lanes(call, lanes, adds ? T(0) : larger ? least<T>() : largest<T>());
        for (int block = 0; block < 8; ++block) {
            T *own = lanes + block * each, value = own[0];
            if (adds)
                value = tree_sum(own, each, holds_numbers(call.core, call.word.to));
            else
                for (int i = 1; i < each; ++i)
                    if (exceeds(own[i], value, larger)) value = own[i];
            memcpy(result + block * int(sizeof(T)), &value, sizeof value);
        }
    });
    memcpy(call.dst, result, kRegister);
}

void register_pair_sums(const RegisterCall &call) {
    uint8_t result[kRegister] = {};
    with_number(call, [&](auto tag) {
        using T = decltype(tag);
        T lanes[kRegister / sizeof(T)];
        read_lanes(call, lanes, T(0));
        for (size_t i = 0; i < kRegister / sizeof(T) / 2; ++i) {
            T sum = T(wrap_add(Wide<T>(lanes[2 * i]), Wide<T>(lanes[2 * i + 1])));
            if (holds_numbers(call.core, call.word.to)) hold_numbers(call.word.to, &sum, 1);
            memcpy(result + i * sizeof(T), &sum, sizeof sum);
        }
    });
    memcpy(call.dst, result, kRegister);
}

// --- order

void register_interleaving(const RegisterCall &call) {
    uint8_t both[2 * kRegister];
    with_bits(call.word.to, [&](auto tag) {
        using T = decltype(tag);
        for (size_t i = 0; i < kRegister / sizeof(T); ++i) {
            memcpy(both + 2 * i * sizeof(T), call.a + i * sizeof(T), sizeof(T));
            memcpy(both + (2 * i + 1) * sizeof(T), call.b + i * sizeof(T), sizeof(T));
        }
    });
    memcpy(call.dst, both, kRegister);
    memcpy(call.second(), both + kRegister, kRegister);
}

void register_deinterleaving(const RegisterCall &call) {
    uint8_t from[2 * kRegister], both[2 * kRegister];
    memcpy(from, call.a, kRegister);
    memcpy(from + kRegister, call.b, kRegister);
    with_bits(call.word.to, [&](auto tag) {
        using T = decltype(tag);
        for (size_t i = 0; i < kRegister / sizeof(T); ++i) {
            memcpy(both + i * sizeof(T), from + 2 * i * sizeof(T), sizeof(T));
            memcpy(both + kRegister + i * sizeof(T), from + (2 * i + 1) * sizeof(T), sizeof(T));
        }
    });
    memcpy(call.dst, both, kRegister);
    memcpy(call.second(), both + kRegister, kRegister);
}

// The low half of each element into one half of the result; the other becomes 0.
void register_packing(const RegisterCall &call) {
    const int to = call.size(), from = type_size(call.word.from);
    if (from != 2 * to) call.unsupported("elements that are not twice as wide");
    uint8_t result[kRegister] = {};
    uint8_t *half = result + (call.option(0) ? kRegister / 2 : 0);
    for (int i = 0; i < kRegister / from; ++i) memcpy(half + i * to, call.a + i * from, size_t(to));
    memcpy(call.dst, result, kRegister);
}

// One half of the elements, each twice as wide.
void register_unpacking(const RegisterCall &call) {
    const int to = call.size(), from = type_size(call.word.from);
    if (to != 2 * from) call.unsupported("elements that are not half as wide");
    uint8_t result[kRegister] = {};
    const uint8_t *half = call.a + (call.option(0) ? kRegister / 2 : 0);
    const bool is_signed =
        call.word.row == RegisterRow::vsunpack ||
        (call.word.row == RegisterRow::vunpack &&
         (call.word.from == Type::I8 || call.word.from == Type::I16 || call.word.from == Type::I32));
    for (int i = 0; i < kRegister / to; ++i) {
        memcpy(result + i * to, half + i * from, size_t(from));
        if (is_signed && half[i * from + from - 1] & 0x80)
            memset(result + i * to + from, 0xff, size_t(to - from));
    }
    memcpy(call.dst, result, kRegister);
}

void register_squeeze(const RegisterCall &call) {
    const int size = call.size();
    uint8_t result[kRegister] = {};
    int kept = 0;
    for (int i = 0; i < call.lanes(); ++i)
        if (is_on(*call.mask, i * size)) memcpy(result + size * kept++, call.a + i * size, size_t(size));
    memcpy(call.dst, result, kRegister);
    if (call.option(0)) call.core.spr_of(Spr::SQZN) = uint64_t(kept * size);
}

// How many lanes before each are on.
void register_unsqueeze(const RegisterCall &call) {
    uint8_t result[kRegister] = {};
    const int size = call.size();
    uint64_t before = 0;
    for (int i = 0; i < call.lanes(); ++i) {
        memcpy(result + i * size, &before, size_t(size));
        before += is_on(*call.mask, i * size);
    }
    memcpy(call.dst, result, kRegister);
}

// Of 128 bins: bytes that are equal, or up to that value; added to what the result holds.
void register_histogram(const RegisterCall &call) {
    const bool cumulative = call.word.row == RegisterRow::chistv2;
    const int first = call.option(0) ? 128 : 0;
    uint32_t counts[256] = {};
    for (int i = 0; i < kRegister; ++i) counts[call.a[i]] += is_on(*call.mask, i);
    if (cumulative)
        for (int i = 1; i < 256; ++i) counts[i] += counts[i - 1];
    auto *bins = reinterpret_cast<uint16_t *>(call.dst);
    for (int i = 0; i < 128; ++i) bins[i] = uint16_t(bins[i] + counts[first + i]);
}

} // namespace insight_trace::engine
