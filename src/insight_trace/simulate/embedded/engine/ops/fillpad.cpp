// Padding: what lies beyond the valid part of a tile becomes the tile's pad value.
#include <cmath>

#include "ops/steps.hpp"

namespace insight_trace::engine {
namespace {

// Bits of the pad value in the tile's element type. Narrow floats have none but zero.
uint32_t pad_bits_of(const TileRef &tile) {
    constexpr uint64_t custom = 1ull << 32;
    if (tile.pad & custom) return static_cast<uint32_t>(tile.pad);
    const bool highest = tile.pad == 2, lowest = tile.pad == 3;
    if (!highest && !lowest) return 0;
    if (is_real_type(tile.type))
        return static_cast<uint32_t>(bits_of_number(tile.type, highest ? INFINITY : -INFINITY));
    if (!is_number(tile.type) && tile.type != Type::Bool) return 0;
    const uint32_t ones = 0xffffffffu >> (32 - 8 * type_size(tile.type)), sign = ones ^ ones >> 1;
    if (unsigned_of(tile.type) == tile.type) return highest ? 0xffffffffu : 0;
    return highest ? ones ^ sign : sign;
}

struct Padding {
    const TileRef &dst, &src;
    int size;        // bytes of an element
    int aligned;     // src's valid columns rounded up to whole blocks
    bool part_block; // the rest of the last block is padded too

    // Bytes go two by two.
    Type unit() const { return size == 1 ? Type::U16 : dst.type; }
    int64_t units(int64_t elements) const { return elements * size / type_size(unit()); }
};

Padding plan(Core &core, const Operands &operands, bool same_shape) {
    const TileRef &dst = operands[0].tile, &src = operands[1].tile;
    if (type_size(dst.type) > 4) refuse_type(core, dst.type);
    same_size(core, dst, src);
    need_plain_rows(core, dst, "result");
    need_plain_rows(core, src, "source");
    if (dst.pad == 0) core.kernel_error("%s: the result tile names no pad value", core.op);
    bool fits = same_shape ? dst.rows == src.rows && dst.cols == src.cols
                           : dst.rows >= src.rows && dst.cols >= src.cols;
    if (!fits)
        core.kernel_error("%s: a source of %d x %d does not go with a result of %d x %d", core.op, src.rows,
                          src.cols, dst.rows, dst.cols);
    const int64_t aligned = rounded_up(src.valid_cols, per_block(dst.type));
    return {dst, src, type_size(dst.type), static_cast<int>(aligned), dst.pad != src.pad};
}

// The rest of the last block of every row: a masked fill, or byte by byte on the scalar unit.
void issue_part_block(Core &core, const Padding &p) {
    int rows = p.src.valid_rows, block = per_block(p.dst.type);
    int missing = p.aligned - p.src.valid_cols;
    if (p.size == 1) {
        handshake(core, PipeId::V, PipeId::S);
        for (int r = 0; r < rows; ++r)
            for (int i = 0; i < missing; ++i)
                scalar_store(core, address_of(p.dst, r, p.src.valid_cols + i), pad_bits_of(p.dst), 1);
        core.scalar(Instr::DSB, 2, core.parameters.scalar_dsb);
        return;
    }
    bit_mode(core);
    const uint64_t mask = ((1ull << missing) - 1) << (block - missing);
    mask_value(core, mask);
    // the library hands what is left after the first 255 rows to a repeat field of eight bits
    const int first = p.src.rows > kMostRepeats && rows > kMostRepeats ? kMostRepeats : rows;
    const Operation fill = missing ? Operation(Instr::MOVEV, pad_bits_of(p.dst)) : issued_only(Instr::MOVEV);
    auto portion = [&](int row, int count) {
        if (count > 0)
            core.vector(fill, p.dst.type, count, int64_t(count) * missing,
                        rows_of(p.dst, row, std::max(0, p.aligned - block)).masked(mask));
    };
    portion(0, first);
    portion(kMostRepeats, (rows - first) & 255);
    barrier(core);
}

// One copy of `width` elements in each of `rows` rows; a wide row takes several repeats of the unit.
void copy_rows(Core &core, Type type, int rows, int64_t width, VectorOperand dst, VectorOperand src) {
    int64_t repeats = rows * std::max<int64_t>(1, ceil_div(width, per_repeat(type)));
    const auto bytes = static_cast<uint32_t>(width * type_size(type));
    core.also(kWrites, Space::UB, type, lines_at(dst.address, rows, dst.repeat_stride * kBlockBytes, bytes));
    core.also(kReads, Space::UB, type, lines_at(src.address, rows, src.repeat_stride * kBlockBytes, bytes));
    const Operation copy = by_row(Instr::VCOPY, rows, static_cast<int32_t>(width));
    core.vector(copy, type, static_cast<int>(repeats), rows * width, dst.elsewhere(), src.elsewhere());
}

// Whole blocks to the right, then whole rows below.
void issue_blocks(Core &core, const Padding &p) {
    const int64_t width = p.units(p.dst.cols - p.aligned), below = p.dst.valid_rows - p.src.valid_rows;
    const uint64_t bits = pad_bits_of(p.dst);
    const Operation fill(Instr::MOVEV, p.size == 1 ? (bits & 255) * 257 : bits);
    under_count(core, width, [&] {
        counted_then(core, fill, p.unit(), width, row_of(p.dst, 0, p.aligned));
        // the first row's padding is copied to the others
        if (p.src.rows > 1)
            portions(p.src.valid_rows - 1, kMostRepeats, [&](int done, int rows) {
                copy_rows(core, p.unit(), rows, width, rows_of(p.dst, done + 1, p.aligned),
                          VectorOperand(address_of(p.dst, 0, p.aligned), 0, 0));
            });
        if (below <= 0) return;
        mask_value(core, uint64_t(p.units(below * p.dst.cols)));
        counted(core, fill, p.unit(), p.units(below * p.dst.cols), row_of(p.dst, p.src.valid_rows));
    });
}

void fill(Core &core, const Operands &operands, bool copy, bool same_shape) {
    const Padding p = plan(core, operands, same_shape);
    if (is_empty(p.dst)) return;
    if (copy) {
        count_elements(core, p.units(p.src.cols));
        portions(p.src.valid_rows, kMostRepeats, [&](int first, int rows) {
            copy_rows(core, p.unit(), rows, p.units(p.src.cols), rows_of(p.dst, first),
                      rows_of(p.src, first));
        });
    }
    if (p.part_block) issue_part_block(core, p);
    issue_blocks(core, p);
}

// With functions: row by row, with stores of any width.
void fill_rows(Core &core, const Operands &operands, bool copy, bool same_shape) {
    const Padding p = plan(core, operands, same_shape);
    if (is_empty(p.dst)) return;
    const Operation fill(Instr::MOVEV, pad_bits_of(p.dst));
    const int begin = std::min(p.part_block ? p.src.valid_cols : p.aligned, int(p.dst.cols));
    for (int r = 0; r < p.src.valid_rows; ++r) {
        if (copy)
            core.vector_counted(Instr::VCOPY, p.dst.type, p.src.cols, row_of(p.dst, r), row_of(p.src, r));
        core.vector_counted(fill, p.dst.type, p.dst.cols - begin, row_of(p.dst, r, begin));
    }
    if (const int64_t rows = p.dst.valid_rows - p.src.valid_rows; rows > 0)
        core.vector_counted(fill, p.dst.type, rows * p.dst.cols, row_of(p.dst, p.src.valid_rows));
}

// A matrix tile in L1: the boxes beyond the valid part become zero.
void pad_matrix(Core &core, const TileRef &tile) {
    if (tile.row_major || tile.inner != 1)
        core.unsupported("TFILLPAD of a matrix tile that is not column major with row-major boxes");
    if (tile.pad > 1) core.unsupported("TFILLPAD of a matrix tile with a pad value other than zero");
    const int block = per_block(tile.type);
    bool to_boxes = tile.compact == 3; // only up to whole boxes
    int rows_end = to_boxes ? static_cast<int>(rounded_up(tile.valid_rows, 16)) : tile.rows;
    int cols_end = static_cast<int>(rounded_up(tile.valid_cols, block));
    auto clear = [&](int64_t first, int64_t repeat, int64_t blocks, int64_t step) {
        fill_matrix(core, tile.type, element_address(tile, first), repeat, blocks * kBlockBytes,
                    step * kBlockBytes, 0, repeat);
    };
    if (rows_end > tile.valid_rows) // each column of boxes: one block a row
        clear(int64_t(tile.valid_rows) * block, cols_end / block, rows_end - tile.valid_rows, tile.rows);
    if (!to_boxes && cols_end < tile.cols)
        clear(int64_t(tile.rows) * cols_end, 1, int64_t(tile.rows) * (tile.cols - cols_end) / block, 0);
}

} // namespace

static bool in_matrix(Core &core, const Operands &operands) {
    const TileRef &dst = operands[0].tile;
    if (dst.space == Space::L1) pad_matrix(core, is_nibble(dst.type) ? as_bytes(core, dst) : dst);
    return dst.space == Space::L1;
}

TILE_OP_BODY(TFILLPAD) {
    if (!in_matrix(core, operands)) fill(core, operands, true, true);
}
TILE_OP_BODY(TFILLPAD_INPLACE) { fill(core, operands, false, true); }
TILE_OP_BODY(TFILLPAD_EXPAND) { fill(core, operands, true, false); }

FUNCTION_OP_BODY(TFILLPAD) {
    if (!in_matrix(core, operands)) fill_rows(core, operands, true, true);
}
FUNCTION_OP_BODY(TFILLPAD_INPLACE) { fill_rows(core, operands, false, true); }
FUNCTION_OP_BODY(TFILLPAD_EXPAND) { fill_rows(core, operands, true, false); }

} // namespace insight_trace::engine
