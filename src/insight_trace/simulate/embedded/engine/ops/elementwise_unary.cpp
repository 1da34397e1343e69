// Element by element: one tile in, one out; and a scalar into every element.
#include "steps.hpp"

#include <algorithm>

namespace insight_trace::engine {

TILE_OP_BODY(TEXP) { unary(core, operands, "TEXP", Instr::VEXP); }
TILE_OP_BODY(TLOG) { unary(core, operands, "TLOG", Instr::VLN); }
TILE_OP_BODY(TSQRT) { unary(core, operands, "TSQRT", Instr::VSQRT); }
TILE_OP_BODY(TABS) { unary(core, operands, "TABS", Instr::VABS); }

// --- TEXPANDS

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
    if (!is_number(dst.type)) core.unsupported("TEXPANDS of %s tiles", type_name(dst.type));
    // bytes are filled in pairs, but not in functions
    const bool pairs = to.size == 1 && !core.register_based();
    Type type = pairs ? Type::I16 : dst.type;
    uint64_t bits = scalar_bits(operands[1], dst.type);
    if (pairs) bits |= bits << 8;
    auto one = [&](const Step &step) { issue(core, executed(Instr::MOVEV, bits), type, step); };
    if (core.register_based()) return walk_counted_lines(core, to, nullptr, nullptr, one);
    walk_fill(core, pairs ? to.as(2) : to, one);
}

} // namespace insight_trace::engine
