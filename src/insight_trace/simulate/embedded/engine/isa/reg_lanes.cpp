// Register instructions lane by lane: arithmetic, fills, comparisons, selection, predicates.
#include <cmath>

#include "isa/register_unit.hpp"

namespace insight_trace::engine {

namespace {

struct Lanes { // of a register, as bytes with room for any type
    alignas(32) uint8_t bytes[kRegister];
    template <class T> T *as() { return reinterpret_cast<T *>(bytes); }
};

Lanes spread(uint64_t number, int size) {
    Lanes all;
    switch (size) {
    case 1:
        memset(all.bytes, int(number & 0xff), kRegister);
        break;
    case 2:
        std::fill_n(all.as<uint16_t>(), kRegister / 2, uint16_t(number));
        break;
    case 4:
        std::fill_n(all.as<uint32_t>(), kRegister / 4, uint32_t(number));
        break;
    default:
        std::fill_n(all.as<uint64_t>(), kRegister / 8, number);
    }
    return all;
}

Instr cost_of(RegisterRow row) {
    constexpr Instr kCosts[] = {
#define REGISTER(name, instr, ...) Instr::instr,
#include "insight_trace/isa/register.def"
#undef REGISTER
    };
    return kCosts[static_cast<size_t>(row)];
}

// What the vector unit does with lanes one after the other, it does with registers, too.
LaneOp lane_op(RegisterRow row, Type type) {
    constexpr size_t rows = static_cast<size_t>(RegisterRow::COUNT);
    using Table = std::array<std::array<LaneOp, kTypeCount>, rows>;
    static const Table table = [] {
        Table all{};
        for (size_t r = 0; r < rows; ++r)
            for (size_t t = 0; t < kTypeCount; ++t) {
                const Instr instr = cost_of(static_cast<RegisterRow>(r));
                const auto type = static_cast<Type>(t);
                all[r][t] = arithmetic(instr, on_bits(instr) ? bits_of(type) : type, // of floats, too
                                       Subnormals::Flushed);
            }
        return all;
    }();
    return table[static_cast<size_t>(row)][static_cast<size_t>(type)];
}

void hold(const RegisterCall &call, Lanes &lanes) {
    if (holds_numbers(call.core, call.word.to)) hold_numbers(call.word.to, lanes.bytes, call.lanes());
}

} // namespace

void register_lanes(const RegisterCall &call) {
    const LaneOp op = lane_op(call.word.row, call.word.to);
    if (!op) call.unsupported("elements that it does not take");
    Lanes result;
    if (call.b) {
        op(result.bytes, call.a, call.b, call.lanes());
    } else {
        const Lanes number = spread(call.number, call.size());
        op(result.bytes, call.a, number.bytes, call.lanes());
    }
    if (!on_bits(cost_of(call.word.row))) hold(call, result);
    write_lanes(call, result.bytes);
}

template <class Op> static void each_number(const RegisterCall &call, Op &&op) {
    Lanes result;
    with_type(call.word.to, [&](auto tag) {
        using T = decltype(tag);
        const T *a = lanes_of<T>(call.a), *b = lanes_of<T>(call.b);
        for (int i = 0; i < call.lanes(); ++i)
            result.as<T>()[i] = T(op(Wide<T>(a[i]), b ? Wide<T>(b[i]) : Wide<T>(0)));
    });
    hold(call, result);
    write_lanes(call, result.bytes);
}

void register_negation(const RegisterCall &call) {
    each_number(call, [](auto a, auto) {
        if constexpr (std::is_floating_point_v<decltype(a)>)
            return -a;
        else
            return wrap_sub(decltype(a)(0), a);
    });
}
void register_distance(const RegisterCall &call) {
    each_number(call, [](auto a, auto b) { return a < b ? wrap_sub(b, a) : wrap_sub(a, b); });
}
// Of integers with the sign of the divisor, as the library's device tests of TREM need it; by 0 all bits are
// set.
void register_remainder(const RegisterCall &call) {
    each_number(call, [](auto a, auto b) -> decltype(a) {
        using T = decltype(a);
        if constexpr (std::is_floating_point_v<T>) {
            return std::fmod(a, b);
        } else {
            if (b == 0) return T(-1);
            if constexpr (std::is_signed_v<T>)
                if (b == T(-1)) return 0;
            const T rest = T(a % b);
            return rest != 0 && (rest < T(0)) != (b < T(0)) ? T(rest + b) : rest;
        }
    });
}

// One rounding: the product is not rounded before the sum is. Of halves vmadd and vmula do round it, as on
// a2a3 and as the library's device tests of TFUSEDMULADDRELU need it; those of TAXPY need vaxpy not to.
void register_product_sum(const RegisterCall &call) {
    const bool into_product = call.word.row == RegisterRow::vmadd; // a x dst + b
    const Type type = call.word.to;
    Lanes result;
    const Lanes number = call.b ? Lanes{} : spread(call.number, type_size(call.word.from));
    const uint8_t *second = call.b ? call.b : number.bytes;
    auto all = [&](auto tag) {
        using T = decltype(tag);
        const T *d = lanes_of<T>(call.dst), *a = lanes_of<T>(call.a), *b = lanes_of<T>(second);
        T *out = result.as<T>();
        for (int i = 0; i < kRegister / int(sizeof(T)); ++i) {
            const float x(a[i]), y(b[i]), z(d[i]);
            if constexpr (std::is_same_v<T, float>)
                out[i] = into_product ? std::fma(x, z, y) : std::fma(x, y, z);
            else if (std::is_same_v<T, half> && call.word.row != RegisterRow::vaxpy)
                out[i] = T(float(T(into_product ? x * z : x * y)) + (into_product ? y : z));
            else
                out[i] = T(into_product ? x * z + y : x * y + z);
        }
    };
    if (type == Type::F32 && call.word.from == Type::F32)
        all(float{});
    else if (type == Type::F16)
        all(half{});
    else if (type == Type::BF16)
        all(bfloat16_t{});
    else if (type_size(type) == 4 || type_size(type) == 2)
        with_type(type, [&](auto tag) {
            using T = decltype(tag);
            if constexpr (std::is_integral_v<T>) {
                const T *d = lanes_of<T>(call.dst), *a = lanes_of<T>(call.a), *b = lanes_of<T>(second);
                for (int i = 0; i < kRegister / int(sizeof(T)); ++i)
                    result.as<T>()[i] = into_product ? wrap_add(wrap_mul(a[i], d[i]), b[i])
                                                     : wrap_add(wrap_mul(a[i], b[i]), d[i]);
            }
        });
    else
        call.unsupported("elements that it does not take");
    hold(call, result);
    write_lanes(call, result.bytes);
}

void register_copy(const RegisterCall &call) {
    Lanes result;
    memcpy(result.bytes, call.a, kRegister);
    write_lanes(call, result.bytes);
}

// Of halves every second one, from the part on.
void register_exponential_of_difference(const RegisterCall &call) {
    if (call.word.to != Type::F32) call.unsupported("a result of these elements");
    Lanes result;
    const int part = call.option(0);
    for (int i = 0; i < kRegister / 4; ++i) {
        float a, b;
        if (call.word.from == Type::F16) {
            a = float(lanes_of<half>(call.a)[2 * i + part]);
            b = float(lanes_of<half>(call.b)[2 * i + part]);
        } else {
            a = lanes_of<float>(call.a)[i];
            b = lanes_of<float>(call.b)[i];
        }
        result.as<float>()[i] = float(std::exp(double(a - b)));
    }
    write_lanes(call, result.bytes);
}

void register_wide_product(const RegisterCall &call) {
    if (call.size() != 4) call.unsupported("elements that it does not take");
    Lanes low, high;
    for (int i = 0; i < kRegister / 4; ++i) {
        uint64_t product;
        if (call.word.from == Type::I32)
            product = uint64_t(int64_t(lanes_of<int32_t>(call.a)[i]) * lanes_of<int32_t>(call.b)[i]);
        else
            product = uint64_t(lanes_of<uint32_t>(call.a)[i]) * lanes_of<uint32_t>(call.b)[i];
        low.as<uint32_t>()[i] = uint32_t(product);
        high.as<uint32_t>()[i] = uint32_t(product >> 32);
    }
    write_lanes(call.dst, low.bytes, call.mask, 4, false);
    write_lanes(call.second(), high.bytes, call.mask, 4, false);
}

// A difference is a + ~b + 1: its carry says that nothing was borrowed.
void register_carry(const RegisterCall &call) {
    if (call.size() != 4) call.unsupported("elements that it does not take");
    auto *const *carries = reinterpret_cast<Predicate *const *>(call.number);
    const bool subtracts = call.word.row == RegisterRow::vsubc || call.word.row == RegisterRow::vsubcs;
    Lanes result;
    Predicate carry{};
    for (int i = 0; i < kRegister / 4; ++i) {
        const uint64_t in = carries[1] ? is_on(*carries[1], 4 * i) : subtracts;
        const uint32_t b = lanes_of<uint32_t>(call.b)[i];
        const uint64_t sum = uint64_t(lanes_of<uint32_t>(call.a)[i]) + (subtracts ? ~b : b) + in;
        result.as<uint32_t>()[i] = uint32_t(sum);
        if (sum >> 32 && is_on(*call.mask, 4 * i)) turn_on(carry, 4 * i);
    }
    write_lanes(call, result.bytes);
    *carries[0] = carry;
}

void register_fill(const RegisterCall &call) {
    uint64_t number = call.number;
    const int size = call.size();
    if (call.a) { // a lane of a register
        number = 0;
        memcpy(&number, call.a + (call.option(0) ? kRegister - size : 0), size_t(size));
    }
    const Lanes all = spread(number, size);
    write_lanes(call, all.bytes);
}

// Rising from a number, or falling down to it.
void register_sequence(const RegisterCall &call) {
    Lanes result;
    const bool falls = call.option(0);
    with_type(call.word.to, [&](auto tag) {
        using T = decltype(tag);
        T first;
        memcpy(&first, &call.number, sizeof first);
        const int lanes = kRegister / int(sizeof(T));
        for (int i = 0; i < lanes; ++i)
            result.as<T>()[i] = T(Wide<T>(first) + Wide<T>(falls ? lanes - 1 - i : i));
    });
    memcpy(call.dst, result.bytes, kRegister);
}

// --- comparisons and selection

namespace {

template <class T, class Op> void compare(Predicate &out, const T *a, const T *b, Op op) {
    constexpr int size = sizeof(T), each = 64 / size;
    for (int word = 0; word < 4; ++word) {
        uint64_t bits = 0;
        for (int i = 0; i < each; ++i)
            bits |= uint64_t(op(Wide<T>(a[word * each + i]), Wide<T>(b[word * each + i]))) << (i * size);
        out.bits[word] = bits;
    }
}

} // namespace

void register_comparison(const RegisterCall &call) {
    const int size = call.size();
    Predicate result{};
    const Lanes number = call.b ? Lanes{} : spread(call.number, size);
    const uint8_t *second = call.b ? call.b : number.bytes;
    with_type(call.word.to, [&](auto tag) {
        using T = decltype(tag);
        const T *a = lanes_of<T>(call.a), *b = lanes_of<T>(second);
        switch (call.word.row) {
        case RegisterRow::vcmp_eq:
        case RegisterRow::vcmps_eq:
            return compare(result, a, b, [](auto x, auto y) { return x == y; });
        case RegisterRow::vcmp_ne:
        case RegisterRow::vcmps_ne:
            return compare(result, a, b, [](auto x, auto y) { return x != y; });
        case RegisterRow::vcmp_lt:
        case RegisterRow::vcmps_lt:
            return compare(result, a, b, [](auto x, auto y) { return x < y; });
        case RegisterRow::vcmp_le:
        case RegisterRow::vcmps_le:
            return compare(result, a, b, [](auto x, auto y) { return x <= y; });
        case RegisterRow::vcmp_gt:
        case RegisterRow::vcmps_gt:
            return compare(result, a, b, [](auto x, auto y) { return x > y; });
        default:
            return compare(result, a, b, [](auto x, auto y) { return x >= y; });
        }
    });
    auto *dst = reinterpret_cast<Predicate *>(call.dst);
    for (int i = 0; i < 4; ++i) dst->bits[i] = result.bits[i] & call.mask->bits[i];
}

void register_selection(const RegisterCall &call) {
    Lanes result;
    memcpy(result.bytes, call.b, kRegister);
    write_lanes(result.bytes, call.a, call.mask, call.size(), true);
    memcpy(call.dst, result.bytes, kRegister);
}

// Lanes by the numbers in another register.
void register_pick(const RegisterCall &call) {
    Lanes result;
    with_bits(call.word.to, [&](auto tag) {
        using T = decltype(tag);
        constexpr size_t lanes = kRegister / sizeof(T);
        for (size_t i = 0; i < lanes; ++i)
            result.as<T>()[i] = lanes_of<T>(call.a)[size_t(lanes_of<T>(call.b)[i]) % lanes];
    });
    memcpy(call.dst, result.bytes, kRegister);
}

// --- predicates

void register_pattern(const RegisterCall &call) {
    const int size = call.size(), lanes = call.lanes();
    constexpr int kCounts[] = {0, 1, 2, 3, 4, 8, 16, 32, 64, 128};
    const int pattern = call.option(0);
    Predicate result{};
    for (int i = 0; i < lanes; ++i) {
        bool on = false;
        if (pattern == 0)
            on = true;
        else if (pattern < 10)
            on = i < kCounts[pattern];
        else if (pattern == 10)
            on = i % 3 == 0;
        else if (pattern == 11)
            on = i % 4 == 0;
        else if (pattern == 12)
            on = i < lanes / 2;
        else if (pattern == 13)
            on = i < lanes / 4;
        if (on) turn_on(result, i * size);
    }
    memcpy(call.dst, &result, sizeof result);
}

void register_first_lanes(const RegisterCall &call) {
    const int size = call.size();
    const auto count = static_cast<int>(std::min<uint64_t>(uint32_t(call.number), uint64_t(call.lanes())));
    Predicate result{};
    int bits = count * size;
    for (uint64_t &word : result.bits) {
        if (bits <= 0) break;
        word = element_bits(size) & (bits >= 64 ? ~0ull : (1ull << bits) - 1);
        bits -= 64;
    }
    memcpy(call.dst, &result, sizeof result);
}

void register_predicate_bits(const RegisterCall &call) {
    const auto *a = reinterpret_cast<const Predicate *>(call.a),
               *b = reinterpret_cast<const Predicate *>(call.b);
    auto *dst = reinterpret_cast<Predicate *>(call.dst);
    for (int i = 0; i < 4; ++i) {
        const uint64_t x = a->bits[i], y = b ? b->bits[i] : 0, mask = call.mask->bits[i];
        switch (call.word.row) {
        case RegisterRow::pand:
            dst->bits[i] = x & y & mask;
            break;
        case RegisterRow::por:
            dst->bits[i] = (x | y) & mask;
            break;
        case RegisterRow::pxor:
            dst->bits[i] = (x ^ y) & mask;
            break;
        case RegisterRow::psel:
            dst->bits[i] = (x & mask) | (y & ~mask);
            break;
        case RegisterRow::pnot:
            dst->bits[i] = ~x & mask;
            break;
        default: // pmov
            dst->bits[i] = x & mask;
        }
    }
}

// Every second bit into one half, or the bits of one half to every second place.
void register_predicate_packing(const RegisterCall &call) {
    const Predicate from = *reinterpret_cast<const Predicate *>(call.a);
    const int half = call.option(0) ? kRegister / 2 : 0;
    Predicate result{};
    for (int i = 0; i < kRegister / 2; ++i)
        if (call.word.row == RegisterRow::ppack) {
            if (is_on(from, 2 * i)) turn_on(result, half + i);
        } else if (is_on(from, half + i)) {
            turn_on(result, 2 * i);
        }
    memcpy(call.dst, &result, sizeof result);
}

void register_predicate_interleaving(const RegisterCall &call) {
    const Predicate from[] = {*reinterpret_cast<const Predicate *>(call.a),
                              *reinterpret_cast<const Predicate *>(call.b)};
    Predicate to[2] = {};
    const int size = call.size(), lanes = call.lanes();
    for (int i = 0; i < 2 * lanes; ++i) { // element i of both together, and where it is when they alternate
        const bool apart = call.word.row == RegisterRow::pdintlv;
        const int whole = i, turn = i % 2, place = i / 2;
        for (int bit = 0; bit < size; ++bit) {
            if (apart) {
                if (is_on(from[whole / lanes], whole % lanes * size + bit))
                    turn_on(to[turn], place * size + bit);
            } else if (is_on(from[turn], place * size + bit)) {
                turn_on(to[whole / lanes], whole % lanes * size + bit);
            }
        }
    }
    memcpy(call.dst, &to[0], sizeof to[0]);
    memcpy(call.second(), &to[1], sizeof to[1]);
}

} // namespace insight_trace::engine
