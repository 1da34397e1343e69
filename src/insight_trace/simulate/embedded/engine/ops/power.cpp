// Powers: exp(exponent * ln|base|) on the vector unit, then a pass of the scalar unit over the special cases.
#include "elementwise.hpp"

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

using Powers = Types<float, int32_t, uint32_t, int16_t, uint16_t, int8_t, uint8_t>;
// with registers, 16-bit floats widen to float and round once
using PowersInRegisters =
    Types<float, half, bfloat16_t, int32_t, uint32_t, int16_t, uint16_t, int8_t, uint8_t>;

// `times`: VMUL with the tile of exponents, VMULS with the scalar.
void issue_power(Core &core, const Step &step, bool absolute, Instr times) {
    constexpr Type F = Type::F32;
    if (absolute) {
        issue(core, Instr::VABS, F, step, step.dst, step.src0);
        core.barrier(PipeId::V);
    }
    issue(core, Instr::VLN, F, step, step.dst, absolute ? step.dst : step.src0);
    core.barrier(PipeId::V);
    issue(core, times, F, step, step.dst, step.dst, step.src1);
    core.barrier(PipeId::V);
    issue(core, Instr::VEXP, F, step, step.dst, step.dst);
}

void power(Core &core, const char *op, const TileRef &dst, const TileRef &base, const TileRef *exponents,
           const Operand *exponent, const TileRef &tmp) {
    require_type(core, op, base, dst.type);
    if (exponents) require_type(core, op, *exponents, dst.type);
    Lines to = lines_of(core, op, dst), x = lines_of(core, op, base, to);
    Lines y = exponents ? lines_of(core, op, *exponents, to) : x;
    auto compute = [&](auto tag) {
        using T = decltype(tag);
        constexpr bool exact = is_real<T> && sizeof(T) == 2;
        using Whole = std::conditional_t<is_real<T>, float, int32_t>;
        if (!core.computes) return;
        T value = exponent ? scalar_as<T>(*exponent) : T(0);
        map_two<T>(core, to, x, y, [&](T a, T b) {
            return static_cast<T>(
                power_of(static_cast<Whole>(a), static_cast<Whole>(exponent ? value : b), exact));
        });
    };
    if (core.register_based())
        with_type_of(core, op, dst.type, PowersInRegisters(), compute);
    else
        with_type_of(core, op, dst.type, Powers(), compute);
    int loads = exponents ? 2 : 1;
    if (dst.type != Type::F32) return scalar_loop(core, to, loads);
    Lines scratch = lines_of(core, op, tmp, to);
    for (const Lines *into : {&scratch, &to}) {
        bool absolute = into == &scratch;
        auto one = [&](const Step &step) {
            issue_power(core, step, absolute, exponents ? Instr::VMUL : Instr::VMULS);
        };
        if (exponents)
            walk_binary(core, *into, x, y, true, one);
        else
            walk_scalar(core, *into, x, one);
    }
    scalar_loop(core, to, loads + 1);
}

} // namespace

TILE_OP_BODY(TPOW) {
    const TileRef &exponents = tile_operand(core, "TPOW", operands, 2);
    power(core, "TPOW", tile_operand(core, "TPOW", operands, 0), tile_operand(core, "TPOW", operands, 1),
          &exponents, nullptr, tile_operand(core, "TPOW", operands, 3));
}
TILE_OP_BODY(TPOWS) {
    power(core, "TPOWS", tile_operand(core, "TPOWS", operands, 0), tile_operand(core, "TPOWS", operands, 1),
          nullptr, &operands[2], tile_operand(core, "TPOWS", operands, 3));
}

} // namespace insight_trace::engine
