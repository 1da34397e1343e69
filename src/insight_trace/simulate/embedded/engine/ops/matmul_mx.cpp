// TMATMUL_MX: narrow floats with one power of two for every 32 of them along k.
#include "elementwise.hpp"
#include "isa/cube_products.hpp"
#include "nibbles.hpp"

namespace insight_trace::engine {

namespace {

constexpr int64_t kGroup = 32;

void check(Core &core, const TileRef &c, const TileRef &a, const TileRef &a_scale, const TileRef &b,
           const TileRef &b_scale) {
    if (!core.register_based()) core.unsupported("TMATMUL_MX on this chip: only a5 multiplies with scales");
    if (a.space != Space::L0A || b.space != Space::L0B || c.space != Space::L0C || c.type != Type::F32)
        core.kernel_error("TMATMUL_MX multiplies a Left by a Right tile into an Acc tile of float");
    if (!has_scaled_products(a.type) || !has_scaled_products(b.type) ||
        is_nibble(a.type) != is_nibble(b.type))
        core.unsupported("TMATMUL_MX of %s by %s tiles", type_name(a.type), type_name(b.type));
    if (a_scale.type != Type::F8E8M0 || b_scale.type != Type::F8E8M0)
        core.kernel_error("TMATMUL_MX takes scales of float8_e8m0_t");
    check_boxes(core, "TMATMUL_MX", a, b, c);
    if (a.cols % 64) core.kernel_error("TMATMUL_MX takes Left tiles of whole 64 columns, not %d", a.cols);
    int64_t groups = (a.valid_cols + kGroup - 1) / kGroup;
    if (a_scale.cols < groups || b_scale.rows < groups || a_scale.rows < a.valid_rows ||
        b_scale.cols < b.valid_cols)
        core.kernel_error("TMATMUL_MX: fewer scales than groups of 32 elements");
    if (a.valid_rows > c.rows || b.valid_cols > c.cols || a.valid_cols > b.rows)
        core.kernel_error("TMATMUL_MX: the product does not fit the accumulator");
}

} // namespace

// (c, a, scales, b, scales), with an accumulator to add before a, or a bias row behind.
TILE_OP_BODY(TMATMUL_MX) {
    const TileRef &c = operands[0].tile;
    const bool accumulates = operands.count == 6 && operands[1].tile.space == Space::L0C;
    const uint32_t first = accumulates ? 2 : 1;
    const TileRef &a = operands[first].tile, &a_scale = operands[first + 1].tile;
    const TileRef &b = operands[first + 2].tile, &b_scale = operands[first + 3].tile;
    const TileRef *added = operands.count < 6 ? nullptr : &operands[accumulates ? 1 : 5].tile;
    check(core, c, a, a_scale, b, b_scale);
    multiply_scaled_tiles(core, c, added, !accumulates, a, a_scale, b, b_scale);
}

} // namespace insight_trace::engine
