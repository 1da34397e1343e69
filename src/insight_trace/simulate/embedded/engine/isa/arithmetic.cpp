// Lane by lane: sums, products, functions of one and of two numbers, bits.
#include <cmath>
#include <cstring>

#include "elements.hpp"
#include "isa/vector_unit.hpp"

namespace insight_trace::engine {

namespace {

// The quotient, toward zero for integers; an integer divided by zero is 0.
template <class T> T quotient(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
        if (b == 0) return 0;
        if constexpr (std::is_signed_v<T>)
            if (b == T(-1)) return wrap_sub(T(0), a);
    }
    return T(a / b);
}

// --- what a lane computes. A 16-bit float computes as a float and is rounded once.
#define LANES_OF_TWO(name, result)                                                                           \
    struct name {                                                                                            \
        template <class T> static T of(T a, T b) { return result; }                                          \
    };
template <class T> T rectified(T x) {
    if constexpr (std::is_floating_point_v<T>)
        return x != x || x > 0 ? x : T(0); // NaN stays
    else
        return x > T(0) ? x : T(0);
}
template <class T> T shifted_left(T value, T count) {
    using U = std::make_unsigned_t<T>;
    if constexpr (sizeof(T) == 8) count &= 63; // of 64-bit elements the low six bits count
    if (static_cast<uint64_t>(count) >= 8 * sizeof(T)) return 0;
    return static_cast<T>(static_cast<uint64_t>(static_cast<U>(value)) << static_cast<int>(count));
}
template <class T> T shifted_right(T value, T count) {
    if constexpr (sizeof(T) == 8) count &= 63;
    if (static_cast<uint64_t>(count) > 8 * sizeof(T) - 1) return value < T(0) ? T(-1) : T(0);
    return static_cast<T>(value >> static_cast<int>(count));
}
LANES_OF_TWO(Sum, wrap_add(a, b))
LANES_OF_TWO(Difference, wrap_sub(a, b))
LANES_OF_TWO(Product, wrap_mul(a, b))
LANES_OF_TWO(Quotient, quotient(a, b))
LANES_OF_TWO(Larger, larger(a, b))
LANES_OF_TWO(Smaller, smaller(a, b))
LANES_OF_TWO(And, a &b)
LANES_OF_TWO(Or, a | b)
LANES_OF_TWO(Xor, a ^ b)
LANES_OF_TWO(SumAboveZero, rectified(wrap_add(a, b)))
LANES_OF_TWO(DifferenceAboveZero, rectified(wrap_sub(a, b)))
LANES_OF_TWO(Leaky, (a > T(0) ? a : a * b))
LANES_OF_TWO(ShiftedLeft, shifted_left(a, b))
LANES_OF_TWO(ShiftedRight, shifted_right(a, b))
#undef LANES_OF_TWO

#define LANES_OF_ONE(name, result)                                                                           \
    struct name {                                                                                            \
        template <class T> static T of(T a) { return result; }                                               \
    };
// Functions are evaluated in double and rounded once, so that every machine gives the same bytes.
template <class T> T magnitude(T x) {
    if constexpr (std::is_floating_point_v<T>)
        return std::fabs(x);
    else
        return x < T(0) ? wrap_sub(T(0), x) : x;
}
LANES_OF_ONE(Exponential, T(std::exp(double(a))))
LANES_OF_ONE(Logarithm, T(std::log(double(a))))
LANES_OF_ONE(Root, std::sqrt(a))
LANES_OF_ONE(InverseRoot, T(1 / std::sqrt(double(a))))
LANES_OF_ONE(Inverse, T(1 / double(a)))
LANES_OF_ONE(Magnitude, magnitude(a))
LANES_OF_ONE(AboveZero, rectified(a))
LANES_OF_ONE(Turned, T(~a))
#undef LANES_OF_ONE

// The result is an input: a product of halves is rounded before the sum is.
template <class T> float product(float a, float b) {
    if constexpr (std::is_same_v<T, half>)
        return float(half(a * b));
    else
        return a * b;
}
#define LANES_INTO(name, result)                                                                             \
    struct name {                                                                                            \
        template <class T> static float of(float d, float a, float b) { return result; }                     \
    };
LANES_INTO(ProductAdded, product<T>(a, b) + d)                        // vmla, vaxpy
LANES_INTO(ProductAddedOnce, a *b + d)                                // vaxpy of the 950
LANES_INTO(ProductOfResult, product<T>(a, d) + b)                     // vmadd
LANES_INTO(ProductOfResultAboveZero, rectified(product<T>(a, d) + b)) // vmaddrelu
#undef LANES_INTO

template <class T, class Result> HOT_LOOP void of_two(void *to, const void *a, const void *b, int64_t count) {
    T *out = static_cast<T *>(to);
    const T *x = static_cast<const T *>(a), *y = static_cast<const T *>(b);
    for (int64_t i = 0; i < count; ++i) out[i] = T(Result::of(Wide<T>(x[i]), Wide<T>(y[i])));
}
template <class T, class Result> HOT_LOOP void of_one(void *to, const void *a, const void *, int64_t count) {
    T *out = static_cast<T *>(to);
    const T *x = static_cast<const T *>(a);
    for (int64_t i = 0; i < count; ++i) out[i] = T(Result::of(Wide<T>(x[i])));
}
template <class T, class Result> HOT_LOOP void into(void *to, const void *a, const void *b, int64_t count) {
    T *out = static_cast<T *>(to);
    const T *x = static_cast<const T *>(a), *y = static_cast<const T *>(b);
    for (int64_t i = 0; i < count; ++i)
        out[i] = T(Result::template of<T>(float(out[i]), float(x[i]), float(y[i])));
}
// Halves into a sum of floats.
HOT_LOOP void halves_into(void *to, const void *a, const void *b, int64_t count) {
    float *out = static_cast<float *>(to);
    const half *x = static_cast<const half *>(a), *y = static_cast<const half *>(b);
    for (int64_t i = 0; i < count; ++i) out[i] = out[i] + float(x[i]) * float(y[i]);
}

// A subnormal number is 0 with its sign.
template <class T> T flushed(T x) {
    using U = std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>;
    constexpr U exponent = std::is_same_v<T, float>  ? U(0x7f800000)
                           : std::is_same_v<T, half> ? U(0x7c00)
                                                     : U(0x7f80);
    constexpr U sign = U(1) << (8 * sizeof(T) - 1);
    U bits;
    memcpy(&bits, &x, sizeof bits);
    if (!(bits & exponent)) bits &= sign;
    memcpy(&x, &bits, sizeof x);
    return x;
}
// An operand as the unit takes it: a subnormal half is a number of its own, since a float holds it as a
// normal one.
template <class T> T taken(T x) {
    if constexpr (std::is_same_v<T, half>)
        return x;
    else
        return flushed(x);
}
// 0 / 0 is the NaN of all ones.
struct FlushedQuotient {
    static float of(float a, float b) {
        const float result = a / b;
        const bool invalid = result != result && a == a && b == b;
        return invalid ? __builtin_bit_cast(float, 0x7fffffffu) : result;
    }
};
template <class T, class Result>
HOT_LOOP void of_two_flushed(void *to, const void *a, const void *b, int64_t count) {
    T *out = static_cast<T *>(to);
    const T *x = static_cast<const T *>(a), *y = static_cast<const T *>(b);
    for (int64_t i = 0; i < count; ++i)
        out[i] = flushed(T(Result::of(Wide<T>(taken(x[i])), Wide<T>(taken(y[i])))));
}
template <class T, class Result>
HOT_LOOP void of_one_flushed(void *to, const void *a, const void *, int64_t count) {
    T *out = static_cast<T *>(to);
    const T *x = static_cast<const T *>(a);
    for (int64_t i = 0; i < count; ++i) out[i] = flushed(T(Result::of(Wide<T>(taken(x[i])))));
}
template <class... T> LaneOp flushed_quotient(Type type, Types<T...>) {
    LaneOp found = nullptr;
    ((type == type_of<T>() ? (found = of_two_flushed<T, FlushedQuotient>, true) : false) || ...);
    return found;
}
template <class Result, class... T> LaneOp flushed_one_of(Type type, Types<T...>) {
    LaneOp found = nullptr;
    ((type == type_of<T>() ? (found = of_one_flushed<T, Result>, true) : false) || ...);
    return found;
}

template <class Result, class... T> LaneOp two_of(Type type, Types<T...>) {
    LaneOp found = nullptr;
    ((type == type_of<T>() ? (found = of_two<T, Result>, true) : false) || ...);
    return found;
}
template <class Result, class... T> LaneOp one_of(Type type, Types<T...>) {
    LaneOp found = nullptr;
    ((type == type_of<T>() ? (found = of_one<T, Result>, true) : false) || ...);
    return found;
}
template <class Result> LaneOp into_of(Type type) {
    return type == Type::F32    ? into<float, Result>
           : type == Type::F16  ? into<half, Result>
           : type == Type::BF16 ? into<bfloat16_t, Result>
                                : nullptr;
}

using Bits = Types<uint32_t, uint16_t, uint8_t, uint64_t>;
using WithInt32 = Types<float, half, bfloat16_t, int32_t>;

} // namespace

// Those that do not keep subnormal numbers; null where the instruction or the type has none.
static LaneOp flushing(Instr instr, Type type) {
    switch (instr) {
    case Instr::VDIV:
        return flushed_quotient(type, Floats());
    case Instr::VEXP:
        return flushed_one_of<Exponential>(type, Floats());
    case Instr::VLN:
        return flushed_one_of<Logarithm>(type, Floats());
    case Instr::VSQRT:
        return flushed_one_of<Root>(type, Floats());
    default:
        return nullptr;
    }
}

LaneOp arithmetic(Instr instr, Type type, Subnormals subnormals) {
    if (subnormals == Subnormals::Flushed)
        if (const LaneOp found = flushing(instr, type)) return found;
    const Type bits = unsigned_of(type);
    switch (instr) {
    case Instr::VADD:
    case Instr::VADDS:
        return two_of<Sum>(bits, Signless());
    case Instr::VSUB:
        return two_of<Difference>(bits, Signless());
    case Instr::VMUL:
    case Instr::VMULS:
        return two_of<Product>(bits, Signless());
    case Instr::VDIV:
        return two_of<Quotient>(type, Numbers());
    case Instr::VMAX:
    case Instr::VMAXS:
        return two_of<Larger>(type, Numbers());
    case Instr::VMIN:
    case Instr::VMINS:
        return two_of<Smaller>(type, Numbers());
    case Instr::VAND:
        return two_of<And>(bits, Bits());
    case Instr::VOR:
        return two_of<Or>(bits, Bits());
    case Instr::VXOR:
        return two_of<Xor>(bits, Bits());
    case Instr::VSHL:
        return two_of<ShiftedLeft>(bits, Bits());
    case Instr::VSHR:
        return two_of<ShiftedRight>(type, Integers());
    case Instr::VADDRELU:
        return two_of<SumAboveZero>(type, Types<float, half, bfloat16_t, int16_t>());
    case Instr::VSUBRELU:
        return two_of<DifferenceAboveZero>(type, Types<float, half, bfloat16_t, int16_t>());
    case Instr::VLRELU:
    case Instr::VPRELU:
        return two_of<Leaky>(type, Floats());
    case Instr::VEXP:
        return one_of<Exponential>(type, Floats());
    case Instr::VLN:
        return one_of<Logarithm>(type, Floats());
    case Instr::VSQRT:
        return one_of<Root>(type, Floats());
    case Instr::VRSQRT:
        return one_of<InverseRoot>(type, Floats());
    case Instr::VREC:
        return one_of<Inverse>(type, Floats());
    case Instr::VABS:
        return one_of<Magnitude>(type, Numbers());
    case Instr::VRELU:
        return one_of<AboveZero>(type, WithInt32());
    case Instr::VNOT:
        return one_of<Turned>(bits, Bits());
    case Instr::VMLA:
    case Instr::VAXPY:
        return into_of<ProductAdded>(type);
    case Instr::VMADD:
        return into_of<ProductOfResult>(type);
    case Instr::VMADDRELU:
        return into_of<ProductOfResultAboveZero>(type);
    default:
        return nullptr;
    }
}

void execute_arithmetic(Core &core, const VectorInstruction &i) {
    const bool adds = i.instr == Instr::VMLA || i.instr == Instr::VAXPY;
    const bool mixed = adds && i.to == Type::F32 && i.from == Type::F16;
    const Type type = i.to;
    LaneWork work{};
    work.op = mixed            ? halves_into
              : adds && i.mode ? into_of<ProductAddedOnce>(type)
                               : arithmetic(i.instr, type);
    if (!work.op) core.unsupported("%s of %s elements", instr_name(i.instr), type_name(type));
    const int size = type_size(mixed ? Type::F16 : type);
    work.to_size = type_size(type);
    work.a_size = size;
    switch (i.instr) {
    case Instr::VEXP:
    case Instr::VLN:
    case Instr::VSQRT:
    case Instr::VRSQRT:
    case Instr::VREC:
    case Instr::VABS:
    case Instr::VRELU:
    case Instr::VNOT:
        break; // one source
    default:
        work.number = !i.src1.used;
        work.swapped = work.number && !adds && i.mode & 1; // of functions: the number comes first
        work.b_size = size;
    }
    work.reads_result = adds || i.instr == Instr::VMADD || i.instr == Instr::VMADDRELU;
    if (!on_bits(i.instr)) work.saturates = type;
    walk_lanes(core, i, work);
}

namespace {

// Toward zero; of integers by zero the dividend, of 64 bits 0. `exact`: the quotient is not rounded.
template <class T, bool exact> T rest_of(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
        if (b == 0) return sizeof(T) == 8 ? T(0) : a;
        if constexpr (std::is_signed_v<T>)
            if (b == T(-1)) return 0;
        return T(a % b);
    } else {
        const float x = float(a), y = float(b);
        return exact ? T(std::fmod(x, y)) : T(x - std::trunc(x / y) * y);
    }
}
// The sign of the divisor; 64-bit numbers keep that of the dividend.
template <class T, bool exact> T floor_rest_of(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
        if (b == 0) return 0;
        const T rest = rest_of<T, exact>(a, b);
        if constexpr (sizeof(T) == 8)
            return rest;
        else
            return rest != 0 && (rest < T(0)) != (b < T(0)) ? T(rest + b) : rest;
    } else {
        const float x = float(a), y = float(b);
        const T rest = T(exact ? std::fmod(x, y) : x - std::floor(x / y) * y);
        return float(rest) * y < 0 ? T(float(rest) + y) : rest;
    }
}
template <class T, bool floors, bool exact>
void rests(void *to, const void *a, const void *b, int64_t count) {
    T *out = static_cast<T *>(to);
    const T *x = static_cast<const T *>(a), *y = static_cast<const T *>(b);
    for (int64_t i = 0; i < count; ++i)
        out[i] = floors ? floor_rest_of<T, exact>(x[i], y[i]) : rest_of<T, exact>(x[i], y[i]);
}

} // namespace

// Mode: 2 floors the quotient, 4 keeps it exact (floats).
void execute_remainder(Core &core, const VectorInstruction &i) {
    LaneWork work{};
    const bool floors = i.mode & 2, exact = i.mode & 4;
    with_type_of(core, "VMOD", i.to,
                 Types<float, half, int32_t, uint32_t, int16_t, uint16_t, int64_t, uint64_t>(),
                 [&](auto tag) {
                     using T = decltype(tag);
                     work.op = floors ? (exact ? rests<T, true, true> : rests<T, true, false>)
                                      : (exact ? rests<T, false, true> : rests<T, false, false>);
                 });
    work.to_size = work.a_size = work.b_size = type_size(i.to);
    work.number = !i.src1.used;
    work.saturates = i.to;
    walk_lanes(core, i, work);
}

namespace {
template <class T> void same_lanes(void *to, const void *from, const void *, int64_t count) {
    memmove(to, from, size_t(count) * sizeof(T));
}
template <class T> void spread_number(void *to, const void *, const void *number, int64_t count) {
    T *out = static_cast<T *>(to);
    const T *x = static_cast<const T *>(number);
    for (int64_t i = 0; i < count; ++i) out[i] = x[i];
}
} // namespace

// In count mode each repeat copies the number of elements that the count says (TFILLPAD depends on it).
void execute_copy(Core &core, const VectorInstruction &i) {
    LaneWork work{};
    work.to_size = work.a_size = type_size(i.to);
    work.op = with_bits(i.to, [](auto tag) -> LaneOp { return same_lanes<decltype(tag)>; });
    if (!i.mask.counts) return walk_lanes(core, i, work);
    VectorInstruction row = i;
    row.dst.repeat_stride = uint16_t(i.dst.block_stride * kBlocksOfRepeat);
    row.src0.repeat_stride = uint16_t(i.src0.block_stride * kBlocksOfRepeat);
    for (int64_t r = 0; r < i.repeats; ++r) {
        walk_lanes(core, row, work);
        row.dst.address += uint32_t(i.dst.repeat_stride) * kBytesOfBlock;
        row.src0.address += uint32_t(i.src0.repeat_stride) * kBytesOfBlock;
    }
}

void execute_fill(Core &core, const VectorInstruction &i) {
    LaneWork work{};
    work.to_size = work.b_size = type_size(i.to);
    work.number = true;
    work.op = with_bits(i.to, [](auto tag) -> LaneOp { return spread_number<decltype(tag)>; });
    walk_lanes(core, i, work);
}

} // namespace insight_trace::engine
