// Remainders and powers: chains of instructions, line by line.
#include <algorithm>

#include "elementwise.hpp"
#include "rounding.hpp"

namespace insight_trace::engine {

namespace {

// One line's instructions in count mode, each followed by a barrier.
class Chain {
  public:
    Chain(Core &core, int width, uint32_t dst, uint32_t a, uint32_t b, uint32_t tmp)
        : dst(dst), a(a), b(b), tmp(tmp), core_(core), width_(width) {}
    const VectorOperand dst, a, b, tmp;

    Chain &quiet(Instr instr, Type type, VectorOperand to, VectorOperand x, VectorOperand y = {}) {
        core_.vector_counted(instr, type, width_, to, x, y);
        return *this;
    }
    Chain &then(Instr instr, Type type, VectorOperand to, VectorOperand x, VectorOperand y = {}) {
        quiet(instr, type, to, x, y);
        core_.barrier(PipeId::V);
        return *this;
    }
    void compare(int repeat) {
        core_.vector(Instr::VCMPVS, Type::F32, repeat, width_, tmp, tmp);
        core_.barrier(PipeId::V);
    }
    void use_mask() {
        core_.set_register(PipeId::V, tmp.address);
        core_.barrier(PipeId::V);
    }

  private:
    Core &core_;
    int width_;
};

float remainder_of(float a, float b) {
    float rest = a - std::floor(a / b) * b;
    return rest * b < 0 ? rest + b : rest;
}
// The vector unit divides integers as floats.
int32_t remainder_of(int32_t a, int32_t b) {
    auto through_float = [](int32_t x) {
        return static_cast<int32_t>(std::min(2147483647.0, to_integral(double(float(x)), Round::Rint)));
    };
    double whole = std::floor(float(a) / float(b));
    int32_t times =
        whole != whole ? 0 : static_cast<int32_t>(std::max(-2147483648.0, std::min(2147483647.0, whole)));
    int32_t rest = wrap_sub(through_float(a), wrap_mul(times, through_float(b)));
    float sum = float(rest);
    if (sum * float(b) < 0) sum = sum + float(b);
    return static_cast<int32_t>(std::max(-2147483648.0, std::min(2147483647.0, double(std::trunc(sum)))));
}

struct Remainder {
    const char *op;
    const TileRef &dst, &a;
    const TileRef *b; // none: a scalar
    uint32_t tmp;
};

uint32_t line_address(const TileRef &tile, int line) {
    return tile.address + static_cast<uint32_t>(line * tile.cols * type_size(tile.type));
}

void rem_floats(Core &core, Chain &line, bool scalar, int repeats, int width) {
    Instr times = scalar ? Instr::VMULS : Instr::VMUL;
    VectorOperand b = scalar ? VectorOperand() : line.b;
    constexpr Type F = Type::F32;
    if (scalar) {
        line.then(Instr::MOVEV, F, line.tmp, {}).then(Instr::VDIV, F, line.tmp, line.a, line.tmp);
    } else {
        count_elements(core, width);
        line.then(Instr::VDIV, F, line.tmp, line.a, line.b);
    }
    line.then(Instr::VCONV, F, line.tmp, line.tmp).then(times, F, line.dst, line.tmp, b);
    line.then(Instr::VSUB, F, line.dst, line.a, line.dst).then(times, F, line.tmp, line.dst, b);
    if (scalar) {
        line.then(Instr::VCMPVS, F, line.tmp, line.tmp);
        line.use_mask();
    } else {
        count_off(core);
        core.vector(Instr::MOVEV, Type::U32, 1, 64, line.tmp);
        core.barrier(PipeId::V);
        line.use_mask();
        line.compare(repeats);
        count_elements(core, width);
    }
    line.then(scalar ? Instr::VADDS : Instr::VADD, F, line.tmp, line.dst, b);
    line.then(Instr::VSEL, F, line.dst, line.tmp, line.dst);
}

void rem_integers(Core &core, Chain &line, bool scalar, int repeats, int width) {
    constexpr Type F = Type::F32, I = Type::I32;
    Instr times = scalar ? Instr::VMULS : Instr::VMUL;
    VectorOperand b = scalar ? VectorOperand() : line.b, other = scalar ? line.tmp : line.b;
    if (!scalar) count_elements(core, width);
    line.quiet(Instr::VCONV, F, line.a, line.a);
    if (scalar)
        line.then(Instr::MOVEV, F, line.tmp, {}).then(Instr::VDIV, F, line.tmp, line.a, line.tmp);
    else
        line.then(Instr::VCONV, F, line.b, line.b).then(Instr::VDIV, F, line.tmp, line.a, line.b);
    if (scalar) {
        line.quiet(Instr::VCONV, I, line.a, line.a).then(Instr::VCONV, I, line.tmp, line.tmp);
    } else {
        line.then(Instr::VCONV, I, line.tmp, line.tmp).quiet(Instr::VCONV, I, line.a, line.a);
        line.then(Instr::VCONV, I, line.b, line.b);
    }
    line.then(times, I, line.dst, line.tmp, b).then(Instr::VSUB, I, line.dst, line.a, line.dst);
    line.quiet(Instr::VCONV, F, line.dst, line.dst).then(Instr::VCONV, F, other, other);
    line.then(times, F, line.tmp, line.dst, b);
    if (scalar) {
        line.then(Instr::VCMPVS, F, line.tmp, line.tmp);
        line.use_mask();
    } else {
        line.then(Instr::MOVEV, Type::U32, line.tmp, {});
        line.use_mask();
        count_off(core);
        line.compare(repeats);
        count_elements(core, width);
    }
    line.then(scalar ? Instr::VADDS : Instr::VADD, F, line.tmp, line.dst, b);
    line.then(Instr::VSEL, F, line.dst, line.tmp, line.dst).then(Instr::VCONV, I, line.dst, line.dst);
}

// --- with functions: every type, without scratch. `exact`: the kernel asked for high precision.

template <class T> T toward_zero(T a, T b, bool exact) {
    if constexpr (std::is_integral_v<T>) {
        if (b == 0) return sizeof(T) == 8 ? T(0) : a;
        if constexpr (std::is_signed_v<T>)
            if (b == T(-1)) return 0;
        return T(a % b);
    } else {
        const float x = float(a), y = float(b);
        if (exact) return T(std::fmod(x, y));
        return T(x - std::trunc(x / y) * y);
    }
}

// The sign of the divisor; 64-bit numbers keep that of the dividend.
template <class T> T toward_floor(T a, T b, bool exact) {
    if constexpr (std::is_integral_v<T>) {
        if (b == 0) return 0;
        const T rest = toward_zero(a, b, exact);
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

void with_functions(Core &core, const Remainder &job, const Operand *scalar, bool floors, bool exact) {
    require_type(core, job.op, job.a, job.dst.type);
    if (job.b) require_type(core, job.op, *job.b, job.dst.type);
    Lines to = lines_of(core, job.op, job.dst), x = lines_of(core, job.op, job.a, to);
    Lines y = job.b ? lines_of(core, job.op, *job.b, to) : x;
    using Known = Types<float, half, int32_t, uint32_t, int16_t, uint16_t, int64_t, uint64_t>;
    with_type_of(core, job.op, job.dst.type, Known(), [&](auto tag) {
        using T = decltype(tag);
        if (!core.computes) return;
        const T value = scalar ? scalar_as<T>(*scalar) : T(0);
        map_two<T>(core, to, x, y, [&](Wide<T> a, Wide<T> b) {
            const T first = T(a), second = scalar ? value : T(b);
            return Wide<T>(floors ? toward_floor(first, second, exact) : toward_zero(first, second, exact));
        });
    });
    auto one = [&](const Step &step) { issue(core, Instr::VDIV, job.dst.type, step); };
    walk_binary(core, to, x, y, false, one);
}

// An algorithm may stand behind the operands.
bool is_exact(const Operands &operands, uint32_t behind) {
    return operands.count > behind && operands[behind].kind == Operand::Option &&
           operands[behind].option != 0;
}

void rem(Core &core, const Remainder &job, const Operand *scalar) {
    require_type(core, job.op, job.a, job.dst.type);
    if (job.b) require_type(core, job.op, *job.b, job.dst.type);
    Lines to = lines_of(core, job.op, job.dst), x = lines_of(core, job.op, job.a, to);
    Lines y = job.b ? lines_of(core, job.op, *job.b, to) : x;
    with_type_of(core, job.op, job.dst.type, Types<float, int32_t>(), [&](auto tag) {
        using T = decltype(tag);
        if (!core.computes) return;
        T value = scalar ? scalar_as<T>(*scalar) : T(0);
        map_two<T>(core, to, x, y, [&](T a, T b) { return remainder_of(a, scalar ? value : b); });
    });
    int repeats = (to.width + 63) / 64;
    if (job.b)
        count_off(core);
    else
        count_elements(core, to.width);
    for (int i = 0; i < to.lines; ++i) {
        Chain line(core, to.width, line_address(job.dst, i), line_address(job.a, i),
                   job.b ? line_address(*job.b, i) : 0, job.tmp);
        (job.dst.type == Type::F32 ? rem_floats : rem_integers)(core, line, !job.b, repeats, to.width);
        if (job.b) count_off(core);
    }
    if (!job.b) count_off(core);
}

float fmod_of(float a, float b) { return a - std::trunc(a / b) * b; }

void fmod(Core &core, const Remainder &job, const Operand *scalar) {
    require_type(core, job.op, job.a, job.dst.type);
    if (job.b) require_type(core, job.op, *job.b, job.dst.type);
    Lines to = lines_of(core, job.op, job.dst), x = lines_of(core, job.op, job.a, to);
    Lines y = job.b ? lines_of(core, job.op, *job.b, to) : x;
    with_type_of(core, job.op, job.dst.type, Types<float>(), [&](float) {
        if (!core.computes) return;
        float value = scalar ? scalar_as<float>(*scalar) : 0;
        map_two<float>(core, to, x, y, [&](float a, float b) { return fmod_of(a, scalar ? value : b); });
    });
    constexpr Type F = Type::F32;
    count_elements(core, to.width);
    for (int i = 0; i < to.lines; ++i) {
        Chain line(core, to.width, line_address(job.dst, i), line_address(job.a, i),
                   job.b ? line_address(*job.b, i) : 0, 0);
        if (!job.b) line.then(Instr::MOVEV, F, line.dst, {});
        line.then(Instr::VDIV, F, line.dst, line.a, job.b ? line.b : line.dst)
            .then(Instr::VCONV, F, line.dst, line.dst);
        line.then(job.b ? Instr::VMUL : Instr::VMULS, F, line.dst, line.dst,
                  job.b ? line.b : VectorOperand());
        line.then(Instr::VSUB, F, line.dst, line.a, line.dst);
    }
    count_off(core);
}

} // namespace

// What TREM, TREMS, TFMOD and TFMODS have in common; `scratch` is the operand with it, 0 without.
static void remainders(Core &core, const Operands &operands, const char *op, bool scalar, uint32_t scratch) {
    const Remainder job{op, tile_operand(core, op, operands, 0), tile_operand(core, op, operands, 1),
                        scalar ? nullptr : &tile_operand(core, op, operands, 2),
                        scratch && !core.register_based() ? tile_operand(core, op, operands, scratch).address
                                                          : 0};
    const Operand *number = scalar ? &operands[2] : nullptr;
    if (core.register_based())
        return with_functions(core, job, number, scratch != 0, is_exact(operands, scratch ? 4 : 3));
    (scratch ? rem : fmod)(core, job, number);
}

TILE_OP_BODY(TREM) { remainders(core, operands, "TREM", false, 3); }
TILE_OP_BODY(TREMS) { remainders(core, operands, "TREMS", true, 3); }
TILE_OP_BODY(TFMOD) { remainders(core, operands, "TFMOD", false, 0); }
TILE_OP_BODY(TFMODS) { remainders(core, operands, "TFMODS", true, 0); }

} // namespace insight_trace::engine
