// Element by element: one tile in, one out; and a scalar into every element.
#include "elementwise.hpp"

#include <algorithm>

namespace insight_trace::engine {

// Functions are evaluated in double and rounded once, so that every machine gives the same bytes.
TILE_OP_BODY(TEXP) {
    unary(core, operands, "TEXP", Instr::VEXP, Floats(), [](float x) { return float(std::exp(double(x))); });
}
TILE_OP_BODY(TLOG) {
    unary(core, operands, "TLOG", Instr::VLN, Floats(), [](float x) { return float(std::log(double(x))); });
}
TILE_OP_BODY(TSQRT) {
    unary(core, operands, "TSQRT", Instr::VSQRT, Floats(), [](float x) { return std::sqrt(x); });
}
TILE_OP_BODY(TABS) {
    unary(core, operands, "TABS", Instr::VABS, Numbers(), [](auto x) {
        using T = decltype(x);
        if constexpr (std::is_floating_point_v<T>)
            return std::fabs(x);
        else
            return x < T(0) ? wrap_sub(T(0), x) : x;
    });
}

// --- TEXPANDS

static void fill_elements(Core &core, const TileRef &dst, const Lines &to, const Operand &value) {
    with_type_of(core, "TEXPANDS", dst.type, Numbers(), [&](auto tag) {
        using T = decltype(tag);
        T *row = elements_of<T>(core, to);
        T filled = scalar_as<T>(value);
        for (int line = 0; line < to.lines; ++line, row += to.pitch) std::fill_n(row, to.width, filled);
    });
}

// The whole tile in L1, valid or not, block by block.
static void fill_l1(Core &core, const TileRef &dst, const Operand &value) {
    int64_t count = int64_t(dst.rows) * dst.cols;
    int64_t bytes = count * type_size(dst.type);
    if (core.computes)
        with_type_of(core, "TEXPANDS", dst.type, Numbers(), [&](auto tag) {
            using T = decltype(tag);
            std::fill_n(core.local_as<T>(Space::L1, dst.address, uint64_t(count)), count,
                        scalar_as<T>(value));
        });
    core.move(Instr::SET_L1_2D, dst.type, dst.address, 0, bytes / 32, bytes);
}

TILE_OP_BODY(TEXPANDS) {
    const TileRef &dst = tile_operand(core, "TEXPANDS", operands, 0);
    if (dst.space == Space::L1) return fill_l1(core, dst, operands[1]);
    Lines to = lines_of(core, "TEXPANDS", dst);
    if (core.computes) fill_elements(core, dst, to, operands[1]);
    // bytes are filled in pairs
    Type type = to.size == 1 ? Type::I16 : dst.type;
    auto one = [&](const Step &step) { issue(core, Instr::MOVEV, type, step); };
    walk_fill(core, to.size == 1 ? to.as(2) : to, one);
}

} // namespace insight_trace::engine
