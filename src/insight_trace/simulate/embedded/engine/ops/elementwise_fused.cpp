// Rectifiers, and products and sums in one instruction.
#include "compose.hpp"
#include "elementwise.hpp"

#include <algorithm>

namespace insight_trace::engine {

namespace {

using Real = Types<float, half, bfloat16_t>;

template <class T> T rectified(T x) {
    if constexpr (std::is_floating_point_v<T>)
        return x != x || x > 0 ? x : T(0); // NaN stays
    else
        return x > T(0) ? x : T(0);
}

// A product of halves is rounded before the sum is (but the 950's TAXPY rounds once).
template <class T> float product(float a, float b) {
    if constexpr (std::is_same_v<T, half>)
        return float(half(a * b));
    else
        return a * b;
}

// dst is an input, too. `body` gets the type as an empty value first.
template <class Body>
void accumulate(Core &core, const Operands &operands, const char *op, Instr instr, Body body) {
    const TileRef &dst = tile_operand(core, op, operands, 0), &a = tile_operand(core, op, operands, 1),
                  &b = tile_operand(core, op, operands, 2);
    require_type(core, op, a, dst.type);
    require_type(core, op, b, dst.type);
    Lines to = lines_of(core, op, dst), x = lines_of(core, op, a, to), y = lines_of(core, op, b, to);
    with_type_of(core, op, dst.type, Real(), [&](auto tag) {
        using T = decltype(tag);
        if (core.computes)
            map_into<T>(core, to, x, y, [&](float d, float a_, float b_) { return body(T{}, d, a_, b_); });
    });
    auto one = [&](const Step &step) { issue(core, instr, dst.type, step); };
    walk_binary(core, to, x, y, false, one);
}

} // namespace

TILE_OP_BODY(TRELU) {
    unary(core, operands, "TRELU", Instr::VRELU, Types<float, half, bfloat16_t, int32_t>(),
          [](auto x) { return rectified(x); });
}
TILE_OP_BODY(TLRELU) {
    with_scalar(core, operands, "TLRELU", Instr::VLRELU, Real(),
                [](float x, float slope) { return x > 0 ? x : x * slope; });
}
TILE_OP_BODY(TSUBRELU) {
    binary(core, operands, "TSUBRELU", Instr::VSUBRELU, Real(),
           [](float a, float b) { return rectified(a - b); });
}
TILE_OP_BODY(TMULADDDST) {
    accumulate(core, operands, "TMULADDDST", Instr::VMLA,
               [](auto t, float d, float a, float b) { return product<decltype(t)>(a, b) + d; });
}
TILE_OP_BODY(TFUSEDMULADD) {
    accumulate(core, operands, "TFUSEDMULADD", Instr::VMADD,
               [](auto t, float d, float a, float b) { return product<decltype(t)>(a, d) + b; });
}
TILE_OP_BODY(TFUSEDMULADDRELU) {
    accumulate(core, operands, "TFUSEDMULADDRELU", Instr::VMADDRELU,
               [](auto t, float d, float a, float b) { return rectified(product<decltype(t)>(a, d) + b); });
}

// Where the source is not positive, its product with a slope of its own.
TILE_OP_BODY(TPRELU) {
    if (core.register_based()) // one instruction, without scratch
        return binary(core, operands, "TPRELU", Instr::VLRELU, Types<float, half>(),
                      [](float x, float slope) { return x > 0 ? x : x * slope; });
    const TileRef &dst = tile_operand(core, "TPRELU", operands, 0),
                  &tmp = tile_operand(core, "TPRELU", operands, 3);
    const Operand &to = operands[0], &src = operands[1], &slope = operands[2], &mask = operands[3];
    run(core, Op::TMUL, to, src, slope);
    core.barrier(PipeId::V);
    constexpr int64_t kGreater = 4; // pto::CmpMode::GT
    run(core, Op::TCMPS, mask, src, as_operand(int64_t(0)), as_operand(kGreater));
    core.barrier(PipeId::V);
    TileRef scratch = tmp; // the row behind the mask
    scratch.address += static_cast<uint32_t>(dst.valid_rows * tmp.cols * type_size(tmp.type));
    core.barrier(PipeId::V);
    run(core, Op::TSEL, to, mask, src, to, as_operand(scratch));
}

// --- TAXPY: dst + src * scalar; half may be added to float

static void axpy_mixed(Core &core, const Lines &to, const Lines &from, const Operand &scalar) {
    if (core.computes) {
        float value = float(scalar_as<half>(scalar));
        float *sum = elements_of<float>(core, to);
        const half *x = elements_of<half>(core, from);
        for (int line = 0; line < to.lines; ++line, sum += to.pitch, x += from.pitch)
            for (int i = 0; i < to.width; ++i) sum[i] = sum[i] + float(x[i]) * value;
    }
    if (to.lines <= 0 || to.width <= 0) return;
    constexpr int per_repeat = 64;
    if (std::max(to.blocks(), from.blocks()) > 255 || to.width / per_repeat > to.lines) {
        auto one = [&](const Step &step) {
            VectorOperand source = step.src0;
            source.repeat_stride = 4;
            issue(core, Instr::VAXPY, Type::F32, step, step.dst, source);
        };
        return walk_counted_lines(core, to, &from, nullptr, one);
    }
    for (int first = 0; first < to.lines; first += 255)
        for (int column = 0; column < to.width; column += per_repeat) {
            int width = std::min(per_repeat, to.width - column), repeat = std::min(255, to.lines - first);
            auto at = [&](const Lines &tile) {
                int64_t offset = (int64_t(first) * tile.pitch + column) * tile.size;
                return VectorOperand(tile.address + static_cast<uint32_t>(offset),
                                     static_cast<uint16_t>(tile.blocks()));
            };
            if (width < per_repeat) mask_elements(core, width);
            core.vector(Instr::VAXPY, Type::F32, repeat, int64_t(repeat) * width, at(to), at(from));
            if (width < per_repeat) mask_all(core);
        }
}

TILE_OP_BODY(TAXPY) {
    const char *op = "TAXPY";
    const TileRef &dst = tile_operand(core, op, operands, 0), &src = tile_operand(core, op, operands, 1);
    require_valid(core, op, src, dst);
    Lines to = lines_of(core, op, dst), from = lines_of(core, op, src, to);
    if (dst.type == Type::F32 && src.type == Type::F16) return axpy_mixed(core, to, from, operands[2]);
    require_type(core, op, src, dst.type);
    with_type_of(core, op, dst.type, Real(), [&](auto tag) {
        using T = decltype(tag);
        float value = float(scalar_as<T>(operands[2]));
        const bool once = core.register_based();
        if (core.computes)
            map_into<T>(core, to, from, from, [=](float d, float x, float) {
                return (once ? x * value : product<T>(x, value)) + d;
            });
    });
    auto one = [&](const Step &step) { issue(core, Instr::VAXPY, dst.type, step); };
    walk_scalar(core, to, from, one);
}

// --- sums of three, made of two steps

static void two_steps(Core &core, const Operands &operands, Op first, Op second) {
    run(core, first, operands[0], operands[1], operands[2]);
    core.barrier(PipeId::V);
    run(core, second, operands[0], operands[0], operands[3]);
}
TILE_OP_BODY(TADDC) { two_steps(core, operands, Op::TADD, Op::TADD); }
TILE_OP_BODY(TSUBC) { two_steps(core, operands, Op::TSUB, Op::TADD); }
TILE_OP_BODY(TADDSC) { two_steps(core, operands, Op::TADDS, Op::TADD); }
TILE_OP_BODY(TSUBSC) { two_steps(core, operands, Op::TSUBS, Op::TADD); }

} // namespace insight_trace::engine
