// TPUSH on chips whose cube and vector cores write into each other's memory.
#include "cluster.hpp"
#include "elements.hpp"
#include "isa/moves.hpp"
#include "isa/scalar_unit.hpp"

namespace insight_trace::engine {

// Operands: the place in the other core's memory, the tile, the lane, and the row and column: of the tile
// where a vector core's part begins, or of the place where a vector core's tile goes.
TILE_OP_BODY(TPUSH) {
    const TileRef &there = operands[0].tile, &tile = operands[1].tile;
    const int64_t lane = int64_t(scalar_bits(operands[2], Type::I64));
    const int64_t row = int64_t(scalar_bits(operands[3], Type::I64)),
                  col = int64_t(scalar_bits(operands[4], Type::I64));
    if (!core.register_based())
        core.unsupported("TPUSH into another core's memory: on this chip it goes through global memory");
    const bool out_of_cube = tile.space == Space::L0C;
    if (!out_of_cube && tile.space != Space::UB) core.kernel_error("TPUSH takes an Acc or a Vec tile");
    const int64_t rows = out_of_cube ? there.valid_rows : tile.valid_rows;
    const int64_t cols = out_of_cube ? there.valid_cols : tile.valid_cols;
    const TileRef &larger_one = out_of_cube ? tile : there;
    if (row + rows > larger_one.rows || col + cols > larger_one.cols)
        core.kernel_error("TPUSH of %lld x %lld at row %lld, column %lld goes past a %d x %d tile",
                          (long long)rows, (long long)cols, (long long)row, (long long)col, larger_one.rows,
                          larger_one.cols);
    Core *other = cluster_core(core, lane);
    if (other) other->at = core.at;
    const Corner corner{row, col};
    copy_part(other, there, out_of_cube ? Corner{} : corner, core, tile, out_of_cube ? corner : Corner{},
              rows, cols);
    const int64_t bytes = rows * cols * type_size(tile.type);
    if (out_of_cube)
        core.fixpipe(Instr::FIX_L0C_TO_UB, tile.type, 0,
                     in_core(vector_core(lane), part_of(there, 0, 0, rows, cols)),
                     part_of(tile, row, col, rows, cols), rows, cols, bytes, true);
    else
        core.move(Instr::MOV_UB_TO_L1, tile.type, in_core(kCubeCore, part_of(there, row, col, rows, cols)),
                  part_of(tile, 0, 0, rows, cols), rows, bytes);
}

} // namespace insight_trace::engine
