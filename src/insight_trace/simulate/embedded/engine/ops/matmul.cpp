// The cube unit: TMATMUL and its relatives, TIMG2COL.
#include "isa/cube_products.hpp"
#include "steps.hpp"

namespace insight_trace::engine {

namespace {

// Operands of the cube unit lie in the boxes that it reads: a kernel that was written for the other family
// has its Left tile in another order.
void check_product(Core &core, const TileRef &a, const TileRef &b, const TileRef &c) {
    const bool nz = core.register_based();
    if (a.space != Space::L0A || b.space != Space::L0B || c.space != Space::L0C)
        core.kernel_error("%s multiplies a Left by a Right tile into an Acc tile", core.op);
    if (a.inner != 1 || bool(a.row_major) == nz)
        core.kernel_error("%s takes a Left tile in %s on this chip: TileLeft has it", core.op,
                          nz ? "NZ (column-major boxes)" : "ZZ (row-major boxes)");
    if (b.inner != 2 || !b.row_major)
        core.kernel_error("%s takes a Right tile in ZN: TileRight has it", core.op);
    if (c.inner != 1 || c.row_major) core.kernel_error("%s takes an Acc tile in NZ: TileAcc has it", core.op);
    const int m = a.valid_rows, k = a.valid_cols, n = b.valid_cols;
    if (m <= 0 || k <= 0 || n <= 0)
        core.kernel_error("%s of an empty tile (m %d, k %d, n %d)", core.op, m, k, n);
    if (m > c.rows || n > c.cols || k > b.rows)
        core.kernel_error("%s: %d x %d by %d x %d does not fit a %d x %d accumulator", core.op, m, k, b.rows,
                          n, c.rows, c.cols);
}

[[noreturn]] void refuse_product(const Core &core, const TileRef &a, const TileRef &b, const TileRef &c) {
    core.unsupported("%s of %s by %s tiles into %s", core.op, type_name(a.type), type_name(b.type),
                     type_name(c.type));
}

void matmul(Core &core, const TileRef &c, const TileRef *added, bool added_is_row, const TileRef &left,
            const TileRef &b) {
    const TileRef a = compact_if_larger(core, left);
    if (!has_products(core, a.type, b.type, c.type)) refuse_product(core, a, b, c);
    check_product(core, a, b, c);
    multiply_tiles(core, c, added, added_is_row, a, b);
}

} // namespace

TILE_OP_BODY(TMATMUL) { matmul(core, operands[0].tile, nullptr, false, operands[1].tile, operands[2].tile); }
TILE_OP_BODY(TMATMUL_ACC) {
    const uint32_t in = operands.count == 3 ? 0 : 1;
    matmul(core, operands[0].tile, &operands[in].tile, false, operands[in + 1].tile, operands[in + 2].tile);
}
TILE_OP_BODY(TMATMUL_BIAS) {
    matmul(core, operands[0].tile, &operands[3].tile, true, operands[1].tile, operands[2].tile);
}

// Narrow floats with one power of two for every 32 of them along k: (c, a, scales, b, scales), with an
// accumulator to add before a, or a bias row behind.
TILE_OP_BODY(TMATMUL_MX) {
    const TileRef &c = operands[0].tile;
    const bool accumulates = operands.count == 6 && operands[1].tile.space == Space::L0C;
    const uint32_t first = accumulates ? 2 : 1;
    const TileRef &a = operands[first].tile, &a_scale = operands[first + 1].tile;
    const TileRef &b = operands[first + 2].tile, &b_scale = operands[first + 3].tile;
    if (!core.register_based()) core.unsupported("TMATMUL_MX on this chip: only a5 multiplies with scales");
    if (!has_scaled_products(a.type) || !has_scaled_products(b.type) || c.type != Type::F32 ||
        is_nibble(a.type) != is_nibble(b.type))
        refuse_product(core, a, b, c);
    check_product(core, a, b, c);
    if (a_scale.type != Type::F8E8M0 || b_scale.type != Type::F8E8M0)
        core.kernel_error("TMATMUL_MX takes scales of float8_e8m0_t");
    if (a.cols % 64) core.kernel_error("TMATMUL_MX takes Left tiles of whole 64 columns, not %d", a.cols);
    const int64_t groups = ceil_div(a.valid_cols, 32);
    need_room(core, a_scale, "scales", a.valid_rows, groups);
    need_room(core, b_scale, "scales", groups, b.valid_cols);
    const TileRef *added = operands.count < 6 ? nullptr : &operands[accumulates ? 1 : 5].tile;
    multiply_scaled_tiles(core, c, added, !accumulates, a, a_scale, b, b_scale);
}

TILE_OP_BODY(TIMG2COL) { load_patches(core, operands); }

} // namespace insight_trace::engine
