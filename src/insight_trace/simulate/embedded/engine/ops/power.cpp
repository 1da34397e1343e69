// Powers: exp(exponent * ln|base|) on the vector unit, then a pass of the scalar unit over the special cases.
#include <cmath>

#include "isa/composites.hpp"
#include "ops/steps.hpp"

namespace insight_trace::engine {

namespace {

int64_t whole_power(int32_t base, int32_t exponent) {
    if (exponent == 0 || base == 1) return 1;
    if (base == 0) return 0;
    if (base == -1) return exponent & 1 ? -1 : 1;
    if (exponent < 0) return 0;
    auto product = [](int32_t a, int32_t b) { return int32_t(uint32_t(a) * uint32_t(b)); };
    int32_t result = 1;
    for (; exponent != 0; exponent >>= 1, base = product(base, base))
        if (exponent & 1) result = product(result, base);
    return result;
}

bool is_odd(float whole) {
    if (whole >= 2147483648.0f) return true; // the largest 32-bit integer
    if (whole < -2147483648.0f) return false;
    return static_cast<int32_t>(whole) % 2 != 0;
}

// What the scalar unit stores in the place of the vector unit's result; `magnitude`: that of |base|.
bool is_special(float base, float exponent, float magnitude, float &result) {
    if (exponent == 0)
        result = 1;
    else if (base == 0)
        result = exponent > 0 ? 0.0f : INFINITY;
    else if (base == -1 && std::isinf(exponent))
        result = 1;
    else if (std::isfinite(exponent) && exponent == std::trunc(exponent))
        result = is_odd(exponent) && base < 0 ? -magnitude : magnitude;
    else
        return false;
    return true;
}

struct Power {
    const TileRef &dst, &base;
    const TileRef *exponents;
    const Operand *exponent;
    Type type;
    Lines to, x, y, scratch;

    Power(Core &core, const Operands &operands, bool by_number)
        : dst(tile_operand(core, operands, 0)), base(tile_operand(core, operands, 1)),
          exponents(by_number ? nullptr : &tile_operand(core, operands, 2)),
          exponent(by_number ? &operands[2] : nullptr), type(dst.type) {
        const TileRef &tmp = tile_operand(core, operands, 3);
        require_type(core, base, type);
        if (exponents) require_type(core, *exponents, type);
        to = lines_of(core, dst);
        x = lines_of(core, base, to);
        y = exponents ? lines_of(core, *exponents, to) : x;
        const bool known = type == Type::F32 || type == Type::I32 || type == Type::U32 || type == Type::I16 ||
                           type == Type::U16 || type == Type::I8 || type == Type::U8;
        if (!known) refuse_type(core, type);
        if (type == Type::F32) scratch = lines_of(core, tmp, to);
    }
};

// `times`: VMUL with the tile of exponents, VMULS with the scalar.
void issue_power(Core &core, const Step &step, bool absolute, const Operation &times) {
    constexpr Type F = Type::F32;
    if (absolute) {
        issue(core, Instr::VABS, F, step, step.dst, step.src0);
        barrier(core);
    }
    issue(core, Instr::VLN, F, step, step.dst, absolute ? step.dst : step.src0);
    barrier(core);
    issue(core, times, F, step, step.dst, step.dst, step.src1);
    barrier(core);
    issue(core, Instr::VEXP, F, step, step.dst, step.dst);
}

// The scalar unit goes over all elements: loads of base, exponent and, of floats, both results.
void special_cases(Core &core, const Power &job) {
    const int size = job.to.size;
    const bool real = job.type == Type::F32;
    const uint64_t number = job.exponent ? scalar_bits(*job.exponent, job.type) : 0;
    auto whole = [&](uint64_t bits) { return static_cast<int32_t>(int64_t(number_of_bits(job.type, bits))); };
    auto float_of = [](uint64_t bits) { return bits_float(static_cast<uint32_t>(bits)); };
    handshake(core, PipeId::V, PipeId::S);
    for (int line = 0; line < job.to.lines; ++line)
        for (int i = 0; i < job.to.width; ++i) {
            const uint64_t base = scalar_load(core, job.x.at(line, i).address, size);
            const uint64_t by = job.exponents ? scalar_load(core, job.y.at(line, i).address, size) : number;
            const uint64_t place = job.to.at(line, i).address;
            if (!real) {
                scalar_store(core, place, uint64_t(whole_power(whole(base), whole(by))), size);
                continue;
            }
            const uint64_t magnitude = scalar_load(core, job.scratch.at(line, i).address, size);
            float result = 0;
            const bool special = is_special(float_of(base), float_of(by), float_of(magnitude), result);
            scalar_store_if(core, special, place, float_bits(result), size);
        }
    handshake(core, PipeId::S, PipeId::V);
}

void power(Core &core, const Operands &operands, bool by_number) {
    const Power job(core, operands, by_number);
    if (job.type == Type::F32)
        for (const Lines *into : {&job.scratch, &job.to}) {
            const bool absolute = into == &job.scratch;
            const Operation times = by_number ? Operation(Instr::VMULS, scalar_bits(operands[2], Type::F32))
                                              : Operation(Instr::VMUL);
            auto one = [&](const Step &step) { issue_power(core, step, absolute, times); };
            if (by_number)
                walk_scalar(core, *into, job.x, one);
            else
                walk_binary(core, *into, job.x, job.y, true, one);
        }
    special_cases(core, job);
}

} // namespace

TILE_OP_BODY(TPOW) { power(core, operands, false); }
TILE_OP_BODY(TPOWS) { power(core, operands, true); }
FUNCTION_OP_BODY(TPOW) { raise_to_powers(core, operands, false); }
FUNCTION_OP_BODY(TPOWS) { raise_to_powers(core, operands, true); }

} // namespace insight_trace::engine
