// Between global memory and the core: TLOAD, TSTORE and what they are made of.
#include "fixpipe.hpp"
#include "isa/tile_dma.hpp"
#include "steps.hpp"

namespace insight_trace::engine {

namespace {

constexpr int64_t kMaxBursts = 4095;

// Calls body(piece) for each of the three outer dimensions. A line is a tile row (ND) or a tile column (DN).
template <class Body> void for_pieces(const GlobalRef &g, int64_t length, int64_t step, Body body) {
    int size = type_size(g.type);
    int line_dim = g.layout == DN ? 4 : 3;
    int64_t line = 0;
    for (int64_t i = 0; i < g.shape[0]; ++i)
        for (int64_t j = 0; j < g.shape[1]; ++j)
            for (int64_t k = 0; k < g.shape[2]; ++k) {
                int64_t offset = i * g.stride[0] + j * g.stride[1] + k * g.stride[2];
                body(DmaPiece{g.address + uint64_t(offset * size), g.shape[line_dim], length, step, line, 0});
                line += g.shape[line_dim];
            }
}

// A vector tile of one column that is column major, or of one row that is row major, moves as one line on
// a2a3, whatever the tensor's layout.
GlobalRef moved_as(const Core &core, const TileRef &tile, const GlobalRef &tensor) {
    GlobalRef g = tensor;
    const bool one = tile.row_major ? tile.valid_rows == 1 : tile.valid_cols == 1;
    if (!core.register_based() && tile.space == Space::UB && !tile.inner && g.layout <= DN && one)
        g.layout = tile.row_major ? ND : DN;
    return g;
}

void check(Core &core, const TileRef &tile, const GlobalRef &g) {
    if (type_size(tile.type) != type_size(g.type))
        core.kernel_error("%s between a tile and a tensor of different element sizes (%d and %d bytes)",
                          core.op, type_size(tile.type), type_size(g.type));
    for (int64_t extent : g.shape)
        if (extent < 0)
            core.kernel_error("%s of a tensor with a negative extent (%lld)", core.op, (long long)extent);
}

// How far apart lines lie in GM. a2a3 gives the DMA unit a length, the tile's, and a gap, the tensor's: where
// the two do not have the same extent, lines are not where the tensor's stride says.
int64_t line_step(Core &core, const TileRef &tile, const GlobalRef &g) {
    const bool columns = g.layout == DN;
    const int64_t valid = columns ? tile.valid_rows : tile.valid_cols, extent = g.shape[columns ? 3 : 4];
    const int64_t stride = g.stride[columns ? 4 : 3];
    const bool several = g.shape[columns ? 4 : 3] > 1;
    if (valid == extent || !several || core.register_based()) return stride;
    core.remark(
        "%s: %lld valid %s of the tile and an extent of %lld: lines lie %lld elements apart in global "
        "memory, not %lld",
        core.op, (long long)valid, columns ? "rows" : "columns", (long long)extent,
        (long long)(valid + stride - extent), (long long)stride);
    return valid + stride - extent;
}

// The gap between columns of a DN tile is counted from the tensor's extent, too.
int64_t line_shift(const Core &core, const TileRef &tile, const GlobalRef &g) {
    if (g.layout != DN || core.register_based() || tile.valid_rows == g.shape[3]) return 0;
    const int64_t block = per_block(tile.type);
    return rounded_up(tile.valid_rows, block) + (tile.rows - g.shape[3]) / block * block - tile.rows;
}

// One instruction per piece; the burst count has twelve bits.
void issue_pieces(Core &core, Instr instr, const TileRef &tile, const DmaPiece &piece, int size,
                  bool lines_are_columns) {
    int64_t pitch = lines_are_columns ? tile.rows : tile.cols;
    for (int64_t first = 0; first < piece.count; first += kMaxBursts) {
        int64_t bursts = std::min(kMaxBursts, piece.count - first);
        uint32_t local = tile.address + uint32_t((piece.line + first) * pitch * size);
        // a load fills up the last block of each line when the tile has a pad value
        int64_t length = piece.length, most = lines_are_columns ? tile.rows : tile.cols;
        if (tile.pad && instr == Instr::MOV_OUT_TO_UB_ALIGN)
            length = std::min(most, rounded_up(length, 32 / size));
        int64_t line = piece.line + first;
        Area there = lines_are_columns ? part_of(tile, 0, line, length, bursts)
                                       : part_of(tile, line, 0, bursts, length);
        core.transfer(instr, tile.type, piece.gm + uint64_t(first * piece.step * size),
                      named_at(local, there), bursts, piece.length * size, piece.step * size);
    }
}

// GM already in NZ order: columns of 16 x C0 boxes. Each is one burst; a2a3 gives its length by the tile and
// the gap behind it by the tensor, but for loads into UB.
void move_nz(Core &core, const TileRef &tile, const GlobalRef &g, bool store) {
    const int size = type_size(g.type);
    const int64_t c0 = g.shape[4], box_rows = g.shape[3];
    const bool in_ub = tile.space == Space::UB;
    const Instr load = in_ub ? Instr::MOV_OUT_TO_UB_ALIGN : Instr::MOV_OUT_TO_L1;
    const Instr instr = !store ? load : in_ub ? Instr::MOV_UB_TO_OUT_ALIGN : Instr::MOV_L1_TO_OUT;
    const bool by_gap = !core.register_based() && (store || !in_ub);
    const bool dense = by_gap || (in_ub && !core.register_based());
    const int64_t rows = dense ? tile.valid_rows : std::min<int64_t>(tile.valid_rows, g.shape[2] * box_rows);
    const int64_t step = by_gap ? g.stride[1] + (rows - g.shape[2] * g.shape[3]) * c0 : g.stride[1];
    if (step != g.stride[1] && g.shape[1] > 1)
        core.remark(
            "%s: %lld valid rows of the tile and an extent of %lld: boxes lie %lld elements apart in global "
            "memory, not %lld",
            store ? "TSTORE" : "TLOAD", (long long)rows, (long long)(g.shape[2] * g.shape[3]),
            (long long)step, (long long)g.stride[1]);
    for (int64_t i = 0; i < g.shape[0]; ++i) {
        dma_box_columns(core, store, tile, g, i, rows, step, dense);
        const int64_t cols = std::min(tile.valid_cols - i * g.shape[1] * c0, g.shape[1] * c0);
        // whole boxes across, even where fewer columns are valid
        const int64_t boxes = ceil_div(std::max<int64_t>(0, cols), c0);
        Area gm = lines_at(g.address + uint64_t(i * g.stride[0] * size), boxes, step * size,
                           (dense ? rows : 1) * c0 * size);
        if (!dense) {
            gm.walk[0].count[1] = static_cast<uint32_t>(ceil_div(rows, box_rows));
            gm.walk[0].step[1] = g.stride[2] * size;
            gm.walk[0].count[2] = static_cast<uint32_t>(box_rows);
            gm.walk[0].step[2] = g.stride[3] * size;
            gm.walk[0].lead = static_cast<uint32_t>(rows * c0 * size);
        }
        core.transfer(instr, tile.type, gm, part_of(tile, 0, i * g.shape[1] * c0, rows, boxes * c0),
                      g.shape[1], rows * c0 * size, step * size);
    }
}

int64_t line_count(const GlobalRef &g) {
    return g.shape[0] * g.shape[1] * g.shape[2] * g.shape[g.layout == DN ? 4 : 3];
}

} // namespace

TILE_OP_BODY(TLOAD) {
    const TileRef &tile = operands[0].tile;
    const GlobalRef g = moved_as(core, tile, operands[1].global);
    if (is_nibble(tile.type) && is_nibble(g.type)) {
        Operand bytes[2] = {operands[0], operands[1]};
        bytes[0].tile = as_bytes(core, tile);
        bytes[1].global = as_bytes(g);
        return op_TLOAD(core, {bytes, 2});
    }
    check(core, tile, g);
    if (operands.count > 2) return load_channels(core, operands);
    int size = type_size(tile.type);
    if (g.layout == NZ) return move_nz(core, tile, g, false);
    if (g.layout == MX_A_ZZ || g.layout == MX_B_NN) return load_scales(core, tile, g);
    if (g.layout >= MX_A_ND && g.layout <= MX_B_DN) return load_scale_pairs(core, tile, g);
    if (g.layout > NZ) core.unsupported("TLOAD from global layout %d", g.layout);
    bool columns = g.layout == DN;
    int64_t length = columns ? tile.valid_rows : tile.valid_cols;
    if (tile.space == Space::UB) {
        if (tile.inner == 0 && columns == bool(tile.row_major) && line_count(g) > 1 && length > 1)
            core.unsupported("TLOAD of a %s tensor into a %s vector tile", columns ? "DN" : "ND",
                             tile.row_major ? "row-major" : "column-major");
        if (tile.pad) core.set_register(PipeId::MTE2, tile.pad);
        if (core.computes && !core.silent)
            let_others_write(core, g.address, tile.address, uint64_t(length * size));
        for_pieces(g, length, line_step(core, tile, g), [&](DmaPiece piece) {
            piece.shift = line_shift(core, tile, g);
            load_piece(core, tile, piece, columns);
            issue_pieces(core, Instr::MOV_OUT_TO_UB_ALIGN, tile, piece, size, columns);
        });
        if (tile.pad) pad_lines(core, tile);
        return;
    }
    if (tile.space != Space::L1) core.kernel_error("TLOAD goes to a Vec or Mat tile");
    // to boxes; on a2a3 a tile of one line, too
    const bool one_line = !core.register_based() && (tile.row_major ? tile.rows : tile.cols) == 1;
    bool converts = tile.inner != 0 || one_line;
    // the unit that makes boxes goes by the tensor's extents and stride
    if (converts && !core.register_based()) length = g.shape[columns ? 3 : 4];
    const int64_t step = converts ? g.stride[columns ? 4 : 3] : line_step(core, tile, g);
    for_pieces(g, length, step, [&](DmaPiece piece) {
        if (!converts) piece.shift = line_shift(core, tile, g);
        load_piece(core, tile, piece, columns);
        if (!converts) issue_pieces(core, Instr::MOV_OUT_TO_L1, tile, piece, size, columns);
    });
    if (!converts) return;
    const int64_t lines = line_count(g);
    zero_box_tails(core, tile, lines, length, columns);
    // the tail of the last block of each line is zeroed
    const int64_t filled = std::min<int64_t>(rounded_up(length, 32 / size), columns ? tile.rows : tile.cols);
    core.transfer(Instr::MOV_OUT_TO_L1_MULTI_ND2NZ, tile.type, lines_of_tensor(g, columns, length),
                  columns ? part_of(tile, 0, 0, filled, lines) : part_of(tile, 0, 0, lines, filled), lines,
                  length * size, g.stride[columns ? 4 : 3] * size);
}

TILE_OP_BODY(TSTORE) {
    const TileRef &tile = operands[1].tile;
    const GlobalRef g = moved_as(core, tile, operands[0].global);
    bool atomic = operands[2].option != 0;
    if (tile.space == Space::L0C) return store_accumulator(core, g, tile, atomic, WayOut(operands, 3));
    if (is_nibble(tile.type) && is_nibble(g.type)) {
        Operand bytes[3] = {operands[0], operands[1], operands[2]};
        bytes[0].global = as_bytes(g);
        bytes[1].tile = as_bytes(core, tile);
        return op_TSTORE(core, {bytes, 3});
    }
    check(core, tile, g);
    int size = type_size(tile.type);
    if (g.layout == NZ) return move_nz(core, tile, g, true);
    if (g.layout > NZ) core.unsupported("TSTORE to global layout %d", g.layout);
    bool columns = g.layout == DN;
    Instr instr = tile.space == Space::L1 ? Instr::MOV_L1_TO_OUT : Instr::MOV_UB_TO_OUT_ALIGN;
    if (tile.space != Space::UB && tile.space != Space::L1)
        core.kernel_error("TSTORE takes a Vec, Mat or Acc tile");
    const int64_t length = columns ? tile.valid_rows : tile.valid_cols;
    atomic_stores(core, tile.type, atomic, [&] {
        for_pieces(g, length, line_step(core, tile, g), [&](DmaPiece piece) {
            piece.shift = line_shift(core, tile, g);
            store_piece(core, tile, piece, columns, core.atomic_store);
            issue_pieces(core, instr, tile, piece, size, columns);
        });
    });
}

} // namespace insight_trace::engine
