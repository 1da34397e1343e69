// Tile to tile: TMOV, TEXTRACT, TINSERT, and TPUSH to another core.
#include "cluster.hpp"
#include "fixpipe.hpp"
#include "isa/composites.hpp"
#include "steps.hpp"

namespace insight_trace::engine {

namespace {

// What of dst is loaded: the whole tile, or in compact mode its valid part in whole boxes.
void loaded_extent(const TileRef &dst, int64_t &rows, int64_t &cols) {
    rows = dst.rows;
    cols = dst.cols;
    if (dst.compact == 1) {
        rows = std::min<int64_t>(rows, rounded_up(dst.valid_rows, inner_rows(dst)));
        cols = std::min<int64_t>(cols, rounded_up(dst.valid_cols, inner_cols(dst)));
    }
}

// dst(r, c) = src(row + r, col + c) for r < rows, c < cols: what of both tiles an instruction touches.
struct Copy {
    const TileRef &dst, &src;
    int64_t row, col, rows, cols;
    Corner into = {}; // of dst

    Area to() const { return part_of(dst, into.row, into.col, rows, cols); }
    Area from() const { return part_of(src, row, col, rows, cols); }
    // Of that, the i-th `count` rows or columns.
    Copy part(bool of_rows, int64_t i, int64_t count) const {
        const int64_t first = i * count,
                      left = std::clamp<int64_t>((of_rows ? rows : cols) - first, 0, count);
        if (of_rows) return {dst, src, row + first, col, left, cols, {first, 0}};
        return {dst, src, row, col + first, rows, left, {0, first}};
    }
};

void move_copy(Core &core, Instr instr, const Copy &copy, int64_t repeat, int64_t bytes) {
    core.move(instr, copy.dst.type, copy.to(), copy.from(), repeat, bytes);
}

// By the unit that makes matrices of images, whose sizes are in a register.
void load_as_image(Core &core, Instr instr, const Copy &copy, int64_t rows, int64_t cols, int64_t bytes) {
    core.set_register(PipeId::MTE1, uint64_t(rows) << 16 | uint64_t(cols));
    move_copy(core, instr, copy, 1, bytes);
}

void load_left(Core &core, const Copy &copy, int64_t rows, int64_t cols) {
    const int size = type_size(copy.dst.type);
    const int64_t bytes = rows * cols * size;
    if (core.register_based()) // one instruction, turned or not; sizes are operands
        return move_copy(core, Instr::LOAD_L1_TO_L0A_2D, copy, 1, bytes);
    if (copy.src.rows == 1 && copy.src.row_major && !copy.src.inner) // a row, in boxes as they are
        return move_copy(core, Instr::LOAD_L1_TO_L0A_2D, copy,
                         ceil_div(int64_t(copy.dst.valid_cols) * size, 512), bytes);
    const bool turned = copy.src.inner == 2; // ZN source: its boxes are turned on the way
    if (!turned || size != 1) return load_as_image(core, Instr::LOAD_L1_TO_L0A_3Dv2, copy, rows, cols, bytes);
    // squares of 32 x 32 bytes, along the longer side
    const int64_t down = ceil_div(rows, 32), across = ceil_div(cols, 32), fewer = std::min(down, across);
    for (int64_t i = 0; i < fewer; ++i)
        move_copy(core, Instr::LOAD_L1_TO_L0A_2D_TRANSPOSE, copy.part(down < across, i, 32),
                  std::max(down, across), bytes / fewer);
}

void load_right(Core &core, const Copy &copy, int64_t rows, int64_t cols) {
    const int size = type_size(copy.dst.type);
    const int64_t bytes = rows * cols * size, c0 = kBlockBytes / size;
    if (core.register_based()) return move_copy(core, Instr::LOAD_L1_TO_L0B_2D, copy, 1, bytes);
    const bool turned = copy.src.inner == 1; // NZ source
    if (turned && size != 1) return load_as_image(core, Instr::LOAD_L1_TO_L0B_3Dv2, copy, rows, cols, bytes);
    if (turned) { // squares of 32 x 32 bytes that hold something valid, row by row of them
        const int64_t down = ceil_div(copy.dst.valid_rows, 32), across = ceil_div(copy.dst.valid_cols, 32);
        for (int64_t i = 0; i < down; ++i)
            move_copy(core, Instr::LOAD_L1_TO_L0B_2D_TRANSPOSE, copy.part(true, i, 32), across,
                      across * 1024);
        return;
    }
    const int64_t k_boxes = ceil_div(rows, c0), n_boxes = ceil_div(cols, 16);
    const int64_t fewer = std::min(k_boxes, n_boxes), more = std::max(k_boxes, n_boxes);
    for (int64_t i = 0; i < fewer; ++i) { // a row of boxes, or a column of them
        const Copy part = copy.part(k_boxes <= n_boxes, i, k_boxes <= n_boxes ? c0 : 16);
        core.move(Instr::LOAD_L1_TO_L0B_2D, copy.dst.type,
                  named_at(copy.dst.address + uint32_t(i * more * 512), part.to()), part.from(), more,
                  bytes / fewer);
    }
}

// On the 950, whose functions copy line by line.
void move_in_function(Core &core, const Copy &copy, int64_t rows, int64_t cols) {
    const TileRef &dst = copy.dst, &src = copy.src;
    const int64_t line = dst.row_major ? cols : rows, lines = dst.row_major ? rows : cols;
    auto pitch = [](const TileRef &tile) { return tile.row_major ? tile.cols : tile.rows; };
    const bool whole = line == pitch(dst) && line == pitch(src);
    const int64_t bytes = line * type_size(dst.type);
    move_copy(core, Instr::MOV_UB_TO_UB, copy, whole ? 1 : lines,
              (whole ? bytes : rounded_up(bytes, kBlockBytes)) * lines);
}

// The lines that units copy between Vec tiles: rows, or columns of boxes, from a corner on.
LinesOfUb lines_from(const TileRef &tile, Corner at) {
    const TileOrder order(tile);
    return {element_address(tile, order.row(at.row) + order.col(at.col)),
            tile.inner ? int64_t(tile.rows) * kBlockBytes : int64_t(tile.cols) * type_size(tile.type)};
}
bool is_boxed(const TileRef &tile) { return !tile.row_major && tile.inner == 1; }
bool is_plain(const TileRef &tile) { return tile.row_major && tile.inner == 0; }

// A part of a Vec tile that goes to another one on a2a3, and the ways there.
struct VecPart {
    Core &core;
    const TileRef &dst, &src;
    Corner to, from;
    int rows, cols;

    VectorOperand operand(const TileRef &tile, Corner at, int row, int col) const {
        return VectorOperand(lines_from(tile, {at.row + row, at.col + col}).address,
                             static_cast<uint16_t>(tile.inner ? 1 : row_blocks(tile)));
    }
    VectorOperand into(int row, int col) const { return operand(dst, to, row, col); }
    VectorOperand out_of(int row, int col) const { return operand(src, from, row, col); }
    void by_scalar() const {
        handshake(core, PipeId::V, PipeId::S);
        for (int r = 0; r < rows; ++r)
            for (int c = 0; c < cols; ++c)
                copy_element(core, into(r, c).address, out_of(r, c).address, type_size(dst.type));
        handshake(core, PipeId::S, PipeId::V);
    }
    // Less than a block of every row, two bytes at a time, under a count.
    void by_pairs(int col, int width) const {
        const int64_t units = int64_t(width) * type_size(dst.type) / 2;
        mask_value(core, uint64_t(units));
        portions(rows, kMostRepeats, [&](int row, int count) {
            core.vector(Instr::VCOPY, Type::U16, count, count * units, into(row, col), out_of(row, col));
        });
    }
    // As halves, which the vector unit masks one by one; as many rows as the scratch holds.
    void by_halves(int col, int width) const {
        const VectorOperand held = VectorOperand(kScratch, 2).of(Type::F16);
        mask_elements(core, width);
        portions(rows, 128, [&](int row, int count) {
            const int64_t elements = int64_t(count) * width;
            core.vector(rounding(Round::Rint), Type::F16, count, elements, held,
                        out_of(row, col).of(dst.type));
            barrier(core);
            core.vector(rounding(Round::Trunc), Type::F16, count, elements, into(row, col).of(dst.type),
                        held);
            barrier(core);
        });
    }
    // Whole blocks by the unit that copies them, then the rest of every row. `shape`: whose valid part it is.
    void alike(const TileRef &shape) const {
        const int size = type_size(dst.type), block = per_block(dst.type), full = cols / block * block;
        const LinesOfUb there = lines_from(dst, to), here = lines_from(src, from);
        if (!shape.dynamic && rows == 1 && cols == 1) return by_scalar();
        if (cols * size % 2) core.unsupported("%s of rows of an odd number of bytes", core.op);
        if (full && dst.inner)
            copy_lines(core, dst.type, there, here, full / block, rows * kBlockBytes);
        else if (full == cols && fixed_cols(shape) && cols == dst.cols && cols == src.cols)
            copy_lines(core, dst.type, there, here, 1, int64_t(rows) * cols * size);
        else
            copy_lines(core, dst.type, there, here, rows, full * size);
        if (full == cols) return;
        count_mode(core);
        by_pairs(full, cols - full);
        count_off(core);
    }
    // Rows into boxes, a block of every row at a time.
    void to_boxes() const {
        const int block = per_block(dst.type);
        const bool odd = cols * type_size(dst.type) % 2;
        if ((rows == 1 && cols == 1) || from.col % block) return by_scalar();
        odd ? bit_mode(core) : count_mode(core);
        portions(cols, block,
                 [&](int col, int width) { odd ? by_halves(col, width) : by_pairs(col, width); });
        odd ? mask_all(core) : count_off(core);
    }
    // Whether the layouts have one of these ways.
    bool move(const TileRef &shape) const {
        const bool same = (is_plain(dst) && is_plain(src)) || (is_boxed(dst) && is_boxed(src));
        if (core.register_based() || dst.space != Space::UB || src.space != Space::UB) return false;
        if (!same && !(is_boxed(dst) && is_plain(src))) return false;
        if (rows > 0 && cols > 0) same ? alike(shape) : to_boxes();
        return true;
    }
};

// TMOV between Vec tiles of rows: all of them at once, or an instruction for each.
void move_rows_in_ub(Core &core, const TileRef &dst, const TileRef &src) {
    const int64_t size = type_size(dst.type), rows = std::min(src.valid_rows, dst.valid_rows),
                  cols = std::min(src.valid_cols, dst.valid_cols);
    if ((dst.cols == src.cols || dst.rows == 1) && cols == dst.cols)
        return copy_lines(core, dst.type, {dst.address}, {src.address}, 1, rows * cols * size);
    for (int64_t row = 0; row < rows; ++row)
        copy_lines(core, dst.type, {address_of(dst, row)}, {address_of(src, row)}, 1, cols * size);
}

void check_corner(Core &core, const TileRef &src, int64_t row, int64_t col) {
    if (row < 0 || col < 0 || row >= src.rows || col >= src.cols)
        core.kernel_error("%s from row %lld, column %lld of a %d x %d tile", core.op, (long long)row,
                          (long long)col, src.rows, src.cols);
}

// L1 -> L0 of 4-bit floats, one by one: the boxes of a Right tile are turned.
void move_nibbles(Core &core, const TileRef &dst, const TileRef &src, int64_t row, int64_t col) {
    if (dst.space != Space::L0A && dst.space != Space::L0B)
        core.unsupported("%s of 4-bit floats between these two memories", core.op);
    if (src.inner == 0 && src.rows > 1) core.unsupported("%s of rows of 4-bit floats without boxes", core.op);
    const bool down = pairs_along_columns(src);
    if ((down ? row : col) % 2) core.unsupported("%s of 4-bit floats from the middle of a byte", core.op);
    const int64_t rows = std::min<int64_t>(dst.rows, src.rows - row),
                  cols = std::min<int64_t>(dst.cols, src.cols - col);
    copy_nibbles(core, dst, src, {row, col}, rows, cols);
    const TileRef bytes = as_bytes(core, src);
    const Area part =
        down ? part_of(bytes, row / 2, col, rows / 2, cols) : part_of(bytes, row, col / 2, rows, cols / 2);
    const bool whole = rows == src.rows && cols == src.cols;
    core.move(dst.space == Space::L0A ? Instr::LOAD_L1_TO_L0A_2D : Instr::LOAD_L1_TO_L0B_2D_TRANSPOSE,
              dst.type, whole_of(dst), whole ? whole_of(src) : part, 1, rows * cols / 2);
}

// Vec -> Mat: blocks of 32 bytes as they are, from a corner of the source to a corner of the destination.
void to_matrix(Core &core, TileRef dst, Corner to, TileRef src, Corner from, int64_t rows, int64_t cols) {
    if (dst.inner != src.inner || dst.row_major != src.row_major)
        core.unsupported("%s from a Vec to a Mat tile of another layout", core.op);
    if (is_nibble(dst.type)) {
        const bool down = pairs_along_columns(src);
        for (int64_t *value : {down ? &rows : &cols, down ? &to.row : &to.col, down ? &from.row : &from.col})
            *value = (*value + 1) / 2;
        dst = as_bytes(core, dst);
        src = as_bytes(core, src);
    }
    const int size = type_size(dst.type);
    const int64_t unit = 32 / size;
    // whole blocks, as far as both tiles have them
    int64_t &along = src.inner == 2 || (src.inner == 0 && !src.row_major) ? rows : cols;
    along = rounded_up(along, unit);
    rows = std::min({rows, dst.rows - to.row, src.rows - from.row});
    cols = std::min({cols, dst.cols - to.col, src.cols - from.col});
    copy_part(owner_of(core, dst.space, 0), dst, to, core, src, from, rows, cols);
    core.move(Instr::MOV_UB_TO_L1, dst.type, in_core(kCubeCore, part_of(dst, to.row, to.col, rows, cols)),
              part_of(src, from.row, from.col, rows, cols), rows, rows * cols * size);
}

// A bias of 16-bit floats becomes one of floats on its way.
void widen_bias(Core &core, const TileRef &dst, const TileRef &src) {
    const bool narrow = src.type == Type::F16 || (src.type == Type::BF16 && core.register_based());
    if (dst.type != Type::F32 || !narrow)
        core.kernel_error("%s from a %s to a %s tile", core.op, type_name(src.type), type_name(dst.type));
    const int64_t count = std::min(dst.cols, src.cols);
    widen_floats(core, dst, src, count);
    core.move(Instr::MOV_L1_TO_BT, dst.type, lines_at(dst.address, 1, 0, count * 4),
              lines_at(src.address, 1, 0, count * 2), 1, count * 2);
}

// dst(r, c) = src(row + r, col + c).
void extract(Core &core, const TileRef &dst, const TileRef &src, int64_t row, int64_t col) {
    if (dst.space == Space::L1 && src.space == Space::UB)
        return to_matrix(core, dst, {}, src, {row, col}, dst.valid_rows, dst.valid_cols);
    if (is_nibble(dst.type) && is_nibble(src.type)) {
        if (dst.space == Space::UB && src.space == Space::UB) {
            // there a pair is one element: tiles and corners count bytes
            TileRef to = dst, from = src;
            to.type = from.type = Type::U8;
            return extract(core, to, from, row, col);
        }
        return move_nibbles(core, dst, src, row, col);
    }
    if (dst.space == Space::Bias && type_size(dst.type) != type_size(src.type))
        return widen_bias(core, dst, src);
    if (type_size(dst.type) != type_size(src.type))
        core.kernel_error("%s between tiles of different element sizes", core.op);
    int64_t rows = 0, cols = 0;
    if (dst.space == Space::UB) {
        rows = dst.valid_rows;
        cols = dst.valid_cols;
    } else {
        loaded_extent(dst, rows, cols);
    }
    int64_t copied_rows = std::min<int64_t>(rows, src.rows - row),
            copied_cols = std::min<int64_t>(cols, src.cols - col);
    if (VecPart{core, dst, src, {}, {row, col}, int(copied_rows), int(copied_cols)}.move(dst)) return;
    copy_part(&core, dst, {}, core, src, {row, col}, copied_rows, copied_cols);
    int64_t bytes = rows * cols * type_size(dst.type);
    const Copy copy{dst, src, row, col, copied_rows, copied_cols};
    if (dst.space == Space::L0A)
        load_left(core, copy, rows, cols);
    else if (dst.space == Space::L0B)
        load_right(core, copy, rows, cols);
    else if (dst.space == Space::Bias)
        move_copy(core, Instr::MOV_L1_TO_BT, copy, 1, bytes);
    else if (dst.space == Space::Scaling)
        move_copy(core, Instr::MOV_L1_TO_FB, copy, 1, bytes);
    else if (dst.space == Space::ScaleLeft || dst.space == Space::ScaleRight)
        core.move(dst.space == Space::ScaleLeft ? Instr::LOAD_L1_TO_L0A_2D : Instr::LOAD_L1_TO_L0B_2D,
                  dst.type, copy.to(), copy.from(), 1, bytes, &dst.space);
    else if (dst.space == Space::UB && src.space == Space::UB)
        move_in_function(core, copy, copied_rows, copied_cols);
    else
        core.unsupported("%s between these two memories", core.op);
}

} // namespace

TILE_OP_BODY(TMOV) {
    const TileRef &dst = operands[0].tile, &src = operands[1].tile;
    if (src.space == Space::UB && dst.space == Space::UB && operands.count > 2 &&
        operands[2].kind == Operand::Tile)
        return scales_to_boxes(core, dst, src, operands.count > 3 && operands[3].option == 0);
    if (!core.register_based() && dst.space == Space::UB && src.space == Space::UB && dst.row_major &&
        src.row_major && type_size(dst.type) == type_size(src.type))
        return move_rows_in_ub(core, dst, src);
    if (src.space != Space::L0C) return extract(core, dst, src, 0, 0);
    // into boxes every row of them, valid or not
    move_accumulator(core, dst, {}, src, {}, dst.inner ? src.rows : src.valid_rows, src.valid_cols,
                     WayOut(operands, 2));
}

TILE_OP_BODY(TEXTRACT) {
    const TileRef &dst = operands[0].tile, &src = operands[1].tile;
    int64_t row = operands.count > 2 ? int64_t(number_operand(operands[2])) : 0;
    int64_t col = operands.count > 3 ? int64_t(number_operand(operands[3])) : 0;
    check_corner(core, src, row, col);
    if (src.space != Space::L0C) return extract(core, dst, src, row, col);
    const WayOut way_out(operands, 4);
    const bool both = way_out.mode > ToVector::Second; // halves of the source, not what one of them holds
    if (both && dst.inner != 0) core.unsupported("TEXTRACT to boxes in both vector cores");
    move_accumulator(core, dst, {}, src, {row, col}, both ? src.valid_rows : dst.valid_rows,
                     both ? src.valid_cols : dst.valid_cols, way_out);
}

TILE_OP_BODY(TINSERT) {
    const TileRef &dst = operands[0].tile, &src = operands[1].tile;
    int64_t row = int64_t(number_operand(operands[2])), col = int64_t(number_operand(operands[3]));
    int64_t rows = src.valid_rows, cols = src.valid_cols;
    const WayOut way_out(operands, 4);
    const int64_t share_rows = way_out.mode == ToVector::SplitRows ? rows / 2 : rows;
    const int64_t share_cols = way_out.mode == ToVector::SplitCols ? cols / 2 : cols;
    if (row < 0 || col < 0 || row + share_rows > dst.rows || col + share_cols > dst.cols)
        core.kernel_error("TINSERT of %lld x %lld at row %lld, column %lld goes past the %d x %d tile",
                          (long long)rows, (long long)cols, (long long)row, (long long)col, dst.rows,
                          dst.cols);
    if (src.space == Space::L0C)
        return move_accumulator(core, dst, {row, col}, src, {}, dst.inner ? src.rows : rows, cols, way_out);
    if (dst.space == Space::L1) return to_matrix(core, dst, {row, col}, src, {}, rows, cols);
    if (VecPart{core, dst, src, {row, col}, {}, int(rows), int(cols)}.move(src)) return;
    copy_part(&core, dst, {row, col}, core, src, {}, rows, cols);
    int64_t bytes = rows * cols * type_size(dst.type);
    core.move(Instr::MOV_UB_TO_UB, dst.type, part_of(dst, row, col, rows, cols),
              part_of(src, 0, 0, rows, cols), rows, bytes);
}

// TPUSH on chips whose cube and vector cores write into each other's memory.
// Operands: the place in the other core's memory, the tile, the lane, and the row and column: of the tile
// where a vector core's part begins, or of the place where a vector core's tile goes.
TILE_OP_BODY(TPUSH) {
    const TileRef &there = operands[0].tile, &tile = operands[1].tile;
    const int64_t lane = int64_t(number_operand(operands[2]));
    const int64_t row = int64_t(number_operand(operands[3])), col = int64_t(number_operand(operands[4]));
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
