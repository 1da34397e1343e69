// Powers with registers: the logarithm, the product and the exponential of the library, and its special
// cases.
#include "isa/composites.hpp"
#include "ops/steps.hpp"

namespace insight_trace::engine {

namespace {

int32_t power_of(int32_t base, int32_t exponent, bool) {
    if (exponent == 0 || base == 1) return 1;
    if (base == 0) return 0;
    if (base == -1) return exponent & 1 ? -1 : 1;
    if (exponent < 0) return 0;
    int32_t result = 1;
    for (; exponent != 0; exponent >>= 1, base = wrap_mul(base, base))
        if (exponent & 1) result = wrap_mul(result, base);
    return result;
}

// `exact`: where 16 bits are left of it, the error of steps in float is far below the rounding
float steps(float base, float exponent, bool exact) {
    if (exact) return float(std::pow(double(base), double(exponent)));
    return float(std::exp(double(float(std::log(double(base))) * exponent)));
}
bool is_odd(float whole) {
    if (whole >= 2147483648.0f) return true; // the largest 32-bit integer
    if (whole < -2147483648.0f) return false;
    return static_cast<int32_t>(whole) % 2 != 0;
}
float power_of(float base, float exponent, bool exact) {
    if (exponent == 0) return 1;
    if (base == 0) return exponent > 0 ? 0.0f : std::numeric_limits<float>::infinity();
    if (base == -1 && std::isinf(exponent)) return 1;
    if (!std::isfinite(exponent) || exponent != std::trunc(exponent)) return steps(base, exponent, exact);
    float magnitude = steps(std::fabs(base), exponent, exact);
    return is_odd(exponent) && base < 0 ? -magnitude : magnitude;
}

template <class T> T *elements_of(Core &core, const Lines &lines) {
    const int64_t last = int64_t(lines.lines - 1) * lines.pitch + lines.width;
    return core.local_as<T>(Space::UB, lines.address,
                            lines.lines > 0 && lines.width > 0 ? uint64_t(last) : 0);
}

// One line of each.
template <class T, class Body> HOT_LOOP void map_line(T *to, const T *a, const T *b, int count, Body body) {
    for (int i = 0; i < count; ++i) to[i] = T(body(Wide<T>(a[i]), Wide<T>(b[i])));
}

template <class T, class Body>
void map_two(Core &core, const Lines &dst, const Lines &src0, const Lines &src1, Body body) {
    T *to = elements_of<T>(core, dst);
    const T *a = elements_of<T>(core, src0), *b = elements_of<T>(core, src1);
    for (int line = 0; line < dst.lines; ++line, to += dst.pitch, a += src0.pitch, b += src1.pitch)
        map_line<T>(to, a, b, dst.width, body);
}

// 16-bit floats widen to float and round once
using PowersInRegisters =
    Types<float, half, bfloat16_t, int32_t, uint32_t, int16_t, uint16_t, int8_t, uint8_t>;

} // namespace

void raise_to_powers(Core &core, const Operands &operands, bool by_number) {
    const TileRef &dst = tile_operand(core, operands, 0), &base = tile_operand(core, operands, 1);
    const TileRef *exponents = by_number ? nullptr : &tile_operand(core, operands, 2);
    require_type(core, base, dst.type);
    if (exponents) require_type(core, *exponents, dst.type);
    Lines to = lines_of(core, dst), x = lines_of(core, base, to);
    Lines y = exponents ? lines_of(core, *exponents, to) : x;
    with_type_of(core, core.op, dst.type, PowersInRegisters(), [&](auto tag) {
        using T = decltype(tag);
        constexpr bool exact = is_real<T> && sizeof(T) == 2;
        using Whole = std::conditional_t<is_real<T>, float, int32_t>;
        if (!core.computes) return;
        const T value = by_number ? scalar_as<T>(operands[2]) : T(0);
        map_two<T>(core, to, x, y, [&](T a, T b) {
            return static_cast<T>(
                power_of(static_cast<Whole>(a), static_cast<Whole>(by_number ? value : b), exact));
        });
    });
    // of floats the function's price stands in its row; the others are the scalar unit's work
    if (dst.type == Type::F32 || dst.type == Type::F16 || dst.type == Type::BF16) return;
    handshake(core, PipeId::V, PipeId::S);
    for (int line = 0; line < to.lines; ++line)
        for (int i = 0; i < to.width; ++i) {
            const uint64_t at = to.address + uint64_t((int64_t(line) * to.pitch + i) * to.size);
            for (int load = by_number; load < 2; ++load) scalar_load(core, at, to.size);
            scalar_store_if(core, false, at, 0, to.size);
        }
    handshake(core, PipeId::S, PipeId::V);
}

} // namespace insight_trace::engine
