// Tile to tile: TMOV, TEXTRACT, TINSERT.
#include <algorithm>

#include "fixpipe.hpp"
#include "layout_copy.hpp"
#include "nibbles.hpp"

namespace insight_trace::engine {

namespace {

int64_t rounded(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

// What of dst is loaded: the whole tile, or in compact mode its valid part in whole boxes.
void loaded_extent(const TileRef &dst, int64_t &rows, int64_t &cols) {
    rows = dst.rows;
    cols = dst.cols;
    if (dst.compact == 1) {
        rows = std::min<int64_t>(rows, rounded(dst.valid_rows, inner_rows(dst)));
        cols = std::min<int64_t>(cols, rounded(dst.valid_cols, inner_cols(dst)));
    }
}

void load_left(Core &core, const TileRef &dst, const TileRef &src, int64_t rows, int64_t cols) {
    int size = type_size(dst.type);
    int64_t bytes = rows * cols * size;
    if (core.register_based()) // one instruction, turned or not; sizes are operands
        return core.move(Instr::LOAD_L1_TO_L0A_2D, dst.type, dst.address, src.address, 1, bytes);
    bool transposed = src.inner == 2; // ZN source: its boxes are turned on the way
    if (transposed && size == 1) {
        int64_t boxes = rounded(rows, 32) / 32;
        for (int64_t i = 0; i < boxes; ++i)
            core.move(Instr::LOAD_L1_TO_L0A_2D_TRANSPOSE, dst.type, dst.address, src.address, cols / 32,
                      bytes / boxes);
        return;
    }
    core.set_register(PipeId::MTE1, uint64_t(rows) << 16 | uint64_t(cols));
    core.move(Instr::LOAD_L1_TO_L0A_3Dv2, dst.type, dst.address, src.address, 1, bytes);
}

void load_right(Core &core, const TileRef &dst, const TileRef &src, int64_t rows, int64_t cols) {
    int size = type_size(dst.type);
    int64_t bytes = rows * cols * size, c0 = 32 / size;
    if (core.register_based())
        return core.move(Instr::LOAD_L1_TO_L0B_2D, dst.type, dst.address, src.address, 1, bytes);
    if (src.inner == 1) { // NZ source: turned on the way
        if (size == 1) {
            int64_t boxes = rounded(cols, 32) / 32;
            for (int64_t i = 0; i < boxes; ++i)
                core.move(Instr::LOAD_L1_TO_L0B_2D_TRANSPOSE, dst.type, dst.address, src.address, rows / 32,
                          bytes / boxes);
            return;
        }
        core.set_register(PipeId::MTE1, uint64_t(rows) << 16 | uint64_t(cols));
        core.move(Instr::LOAD_L1_TO_L0B_3Dv2, dst.type, dst.address, src.address, 1, bytes);
        return;
    }
    int64_t k_boxes = rounded(rows, c0) / c0, n_boxes = rounded(cols, 16) / 16;
    int64_t fewer = std::min(k_boxes, n_boxes), more = std::max(k_boxes, n_boxes);
    for (int64_t i = 0; i < fewer; ++i)
        core.move(Instr::LOAD_L1_TO_L0B_2D, dst.type, dst.address + uint32_t(i * more * 512), src.address,
                  more, bytes / fewer);
}

void move_in_ub(Core &core, const TileRef &dst, const TileRef &src, int64_t rows, int64_t cols) {
    int size = type_size(dst.type);
    int64_t line = dst.row_major ? cols : rows, lines = dst.row_major ? rows : cols;
    int64_t dst_pitch = dst.row_major ? dst.cols : dst.rows, src_pitch = src.row_major ? src.cols : src.rows;
    if (line == dst_pitch && line == src_pitch) {
        core.move(Instr::MOV_UB_TO_UB, dst.type, dst.address, src.address, 1, line * lines * size);
        return;
    }
    core.move(Instr::MOV_UB_TO_UB, dst.type, dst.address, src.address, lines,
              rounded(line * size, 32) * lines);
}

// What an op does to values on their way out of the accumulator: the operands from `first` on, if there are
// any.
struct Conversion {
    bool relu = false;
    const Operand *scale = nullptr;

    Conversion(Operands operands, uint32_t first) {
        relu = operands.count > first && operands[first].option != 0;
        if (operands.count > first + 1) scale = &operands[first + 1];
    }
};

void check_corner(Core &core, const char *op, const TileRef &src, int64_t row, int64_t col) {
    if (row < 0 || col < 0 || row >= src.rows || col >= src.cols)
        core.kernel_error("%s from row %lld, column %lld of a %d x %d tile", op, (long long)row,
                          (long long)col, src.rows, src.cols);
}

// L1 -> L0 of 4-bit floats, one by one: the boxes of a Right tile are turned.
void move_nibbles(Core &core, const char *op, const TileRef &dst, const TileRef &src) {
    if (dst.space != Space::L0A && dst.space != Space::L0B)
        core.unsupported("%s of 4-bit floats between these two memories", op);
    const int64_t rows = std::min(dst.rows, src.rows), cols = std::min(dst.cols, src.cols);
    if (core.computes) {
        Nibbles to(core, dst), from(core, src);
        for (int64_t r = 0; r < rows; ++r)
            for (int64_t c = 0; c < cols; ++c) to.set(r, c, from.get(r, c));
    }
    core.move(dst.space == Space::L0A ? Instr::LOAD_L1_TO_L0A_2D : Instr::LOAD_L1_TO_L0B_2D_TRANSPOSE,
              dst.type, dst.address, src.address, 1, rows * cols / 2);
}

// dst(r, c) = src(row + r, col + c).
void extract(Core &core, const char *op, const TileRef &dst, const TileRef &src, int64_t row, int64_t col) {
    if (is_nibble(dst.type) && is_nibble(src.type)) {
        if (row || col) core.unsupported("%s of a part of a tile of 4-bit floats", op);
        return move_nibbles(core, op, dst, src);
    }
    if (type_size(dst.type) != type_size(src.type))
        core.kernel_error("%s between tiles of different element sizes", op);
    int64_t rows = 0, cols = 0;
    if (dst.space == Space::UB) {
        rows = dst.valid_rows;
        cols = dst.valid_cols;
    } else {
        loaded_extent(dst, rows, cols);
    }
    int64_t copied_rows = std::min<int64_t>(rows, src.rows - row),
            copied_cols = std::min<int64_t>(cols, src.cols - col);
    if (core.computes) copy_tile(core, dst, src, row, col, copied_rows, copied_cols);
    int64_t bytes = rows * cols * type_size(dst.type);
    if (dst.space == Space::L0A)
        load_left(core, dst, src, rows, cols);
    else if (dst.space == Space::L0B)
        load_right(core, dst, src, rows, cols);
    else if (dst.space == Space::Bias)
        core.move(Instr::MOV_L1_TO_BT, dst.type, dst.address, src.address, 1, bytes);
    else if (dst.space == Space::Scaling)
        core.move(Instr::MOV_L1_TO_FB, dst.type, dst.address, src.address, 1, bytes);
    else if (dst.space == Space::ScaleLeft || dst.space == Space::ScaleRight)
        core.move(dst.space == Space::ScaleLeft ? Instr::LOAD_L1_TO_L0A_2D : Instr::LOAD_L1_TO_L0B_2D,
                  dst.type, dst.address, src.address, 1, bytes);
    else if (dst.space == Space::UB && src.space == Space::UB)
        move_in_ub(core, dst, src, copied_rows, copied_cols);
    else if (dst.space == Space::L1 && src.space == Space::UB)
        core.move(Instr::MOV_UB_TO_L1, dst.type, dst.address, src.address, rows, bytes);
    else
        core.unsupported("%s between these two memories", op);
}

} // namespace

TILE_OP_BODY(TMOV) {
    const TileRef &dst = operands[0].tile, &src = operands[1].tile;
    if (src.space != Space::L0C) return extract(core, "TMOV", dst, src, 0, 0);
    Conversion way_out(operands, 2);
    move_accumulator(core, dst, {}, src, {}, src.valid_rows, src.valid_cols, way_out.relu, way_out.scale);
}

TILE_OP_BODY(TEXTRACT) {
    const TileRef &dst = operands[0].tile, &src = operands[1].tile;
    int64_t row = operands.count > 2 ? scalar_as<int64_t>(operands[2]) : 0;
    int64_t col = operands.count > 3 ? scalar_as<int64_t>(operands[3]) : 0;
    check_corner(core, "TEXTRACT", src, row, col);
    if (src.space != Space::L0C) return extract(core, "TEXTRACT", dst, src, row, col);
    Conversion way_out(operands, 4);
    move_accumulator(core, dst, {}, src, {row, col}, dst.valid_rows, dst.valid_cols, way_out.relu,
                     way_out.scale);
}

TILE_OP_BODY(TINSERT) {
    const TileRef &dst = operands[0].tile, &src = operands[1].tile;
    int64_t row = scalar_as<int64_t>(operands[2]), col = scalar_as<int64_t>(operands[3]);
    int64_t rows = src.valid_rows, cols = src.valid_cols;
    if (row < 0 || col < 0 || row + rows > dst.rows || col + cols > dst.cols)
        core.kernel_error("TINSERT of %lld x %lld at row %lld, column %lld goes past the %d x %d tile",
                          (long long)rows, (long long)cols, (long long)row, (long long)col, dst.rows,
                          dst.cols);
    if (src.space == Space::L0C) {
        Conversion way_out(operands, 4);
        return move_accumulator(core, dst, {row, col}, src, {}, rows, cols, way_out.relu, way_out.scale);
    }
    if (core.computes)
        with_type(dst.type, [&](auto tag) {
            using T = decltype(tag);
            View<T> to(core, dst), from(core, src);
            for (int64_t r = 0; r < rows; ++r)
                for (int64_t c = 0; c < cols; ++c) to.at(row + r, col + c) = from.at(r, c);
        });
    int64_t bytes = rows * cols * type_size(dst.type);
    if (dst.space == Space::UB)
        core.move(Instr::MOV_UB_TO_UB, dst.type, dst.address, src.address, rows, bytes);
    else
        core.move(Instr::MOV_UB_TO_L1, dst.type, dst.address, src.address, rows, bytes);
}

} // namespace insight_trace::engine
