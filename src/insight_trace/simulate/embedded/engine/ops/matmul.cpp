// The cube unit: TMATMUL and its relatives.
#include "elementwise.hpp"
#include "isa/cube_products.hpp"

namespace insight_trace::engine {

namespace {

void matmul(Core &core, const char *op, const TileRef &c, const TileRef *added, bool added_is_row,
            const TileRef &left_tile, const TileRef &b) {
    const TileRef a = compact_if_larger(core, left_tile);
    if (a.space != Space::L0A || b.space != Space::L0B || c.space != Space::L0C)
        core.kernel_error("%s multiplies a Left by a Right tile into an Acc tile", op);
    if (!has_products(core, a.type, b.type, c.type))
        core.unsupported("%s of %s by %s tiles into %s", op, type_name(a.type), type_name(b.type),
                         type_name(c.type));
    check_boxes(core, op, a, b, c);
    int64_t m = a.valid_rows, k = a.valid_cols, n = b.valid_cols;
    if (m <= 0 || k <= 0 || n <= 0)
        core.kernel_error("%s of an empty tile (m %lld, k %lld, n %lld)", op, (long long)m, (long long)k,
                          (long long)n);
    if (m > c.rows || n > c.cols || k > b.rows)
        core.kernel_error("%s: %lld x %lld by %d x %lld does not fit a %d x %d accumulator", op, (long long)m,
                          (long long)k, b.rows, (long long)n, c.rows, c.cols);
    multiply_tiles(core, c, added, added_is_row, a, b);
}

} // namespace

void check_boxes(Core &core, const char *op, const TileRef &a, const TileRef &b, const TileRef &c) {
    const bool nz = core.register_based();
    if (a.inner != 1 || bool(a.row_major) == nz)
        core.kernel_error("%s takes a Left tile in %s on this chip: TileLeft has it", op,
                          nz ? "NZ (column-major boxes)" : "ZZ (row-major boxes)");
    if (b.inner != 2 || !b.row_major) core.kernel_error("%s takes a Right tile in ZN: TileRight has it", op);
    if (c.inner != 1 || c.row_major) core.kernel_error("%s takes an Acc tile in NZ: TileAcc has it", op);
}

TILE_OP_BODY(TMATMUL) {
    matmul(core, "TMATMUL", operands[0].tile, nullptr, false, operands[1].tile, operands[2].tile);
}

TILE_OP_BODY(TMATMUL_ACC) {
    bool shared = operands.count == 3;
    const TileRef &in = operands[shared ? 0 : 1].tile;
    matmul(core, "TMATMUL_ACC", operands[0].tile, &in, false, operands[shared ? 1 : 2].tile,
           operands[shared ? 2 : 3].tile);
}

TILE_OP_BODY(TMATMUL_BIAS) {
    matmul(core, "TMATMUL_BIAS", operands[0].tile, &operands[3].tile, true, operands[1].tile,
           operands[2].tile);
}

} // namespace insight_trace::engine
