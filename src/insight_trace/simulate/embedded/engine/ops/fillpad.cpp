// Padding: what lies beyond the valid part of a tile becomes the tile's pad value.
#include "isa/vector_unit.hpp"
#include "ops/steps.hpp"
#include "nibbles.hpp"

namespace insight_trace::engine {
namespace {

// Bits of the pad value in the tile's element type.
uint32_t pad_bits_of(const TileRef &tile) {
    constexpr uint64_t custom = 1ull << 32;
    if (tile.pad & custom) return static_cast<uint32_t>(tile.pad);
    bool highest = tile.pad == 2, lowest = tile.pad == 3;
    if (!highest && !lowest) return 0;
    switch (tile.type) {
    case Type::F32:
        return highest ? 0x7f800000u : 0xff800000u;
    case Type::F16:
        return highest ? 0x7c00u : 0xfc00u;
    case Type::BF16:
        return highest ? 0x7f80u : 0xff80u;
    case Type::I32:
        return highest ? 0x7fffffffu : 0x80000000u;
    case Type::I16:
        return highest ? 0x7fffu : 0x8000u;
    case Type::I8:
        return highest ? 0x7fu : 0x80u;
    case Type::U32:
    case Type::U16:
    case Type::U8:
    case Type::Bool:
        return highest ? 0xffffffffu : 0;
    default: // narrow floats have no pad value but zero
        return 0;
    }
}

struct Padding {
    const TileRef &dst, &src;
    int size;        // bytes of an element
    int aligned;     // src's valid columns rounded up to whole blocks
    bool part_block; // the rest of the last block is padded too
};

Padding plan(Core &core, const Operands &operands, const char *name, bool same_size) {
    const TileRef &dst = operands[0].tile, &src = operands[1].tile;
    int size = type_size(dst.type);
    if (size > 4) core.unsupported("%s of %s tiles", name, type_name(dst.type));
    if (size != type_size(src.type))
        core.kernel_error("%s: element types differ in size (%s and %s)", name, type_name(dst.type),
                          type_name(src.type));
    need_plain_rows(core, name, dst, "result");
    need_plain_rows(core, name, src, "source");
    if (dst.pad == 0) core.kernel_error("%s: the result tile names no pad value", name);
    bool fits = same_size ? dst.rows == src.rows && dst.cols == src.cols
                          : dst.rows >= src.rows && dst.cols >= src.cols;
    if (!fits)
        core.kernel_error("%s: a source of %d x %d does not go with a result of %d x %d", name, src.rows,
                          src.cols, dst.rows, dst.cols);
    int block = per_block(dst.type);
    return {dst, src, size, static_cast<int>(ceil_div(src.valid_cols, block) * block), dst.pad != src.pad};
}

// The rest of the last block of every row: a masked fill, or byte by byte on the scalar unit.
void issue_part_block(Core &core, const Padding &p) {
    int rows = p.src.valid_rows, block = per_block(p.dst.type);
    int missing = p.aligned - p.src.valid_cols;
    if (p.size == 1) {
        handshake(core, PipeId::V, PipeId::S);
        for (int r = 0; r < rows; ++r)
            for (int i = 0; i < missing; ++i) {
                const uint32_t at = element_address(p.dst, int64_t(r) * p.dst.cols + p.src.valid_cols + i);
                scalar_store(core, at, pad_bits_of(p.dst), 1);
            }
        core.scalar(Instr::DSB, 2, core.parameters.scalar_dsb);
        return;
    }
    bit_mode(core);
    const uint64_t mask = ((1ull << missing) - 1) << (block - missing);
    mask_value(core, mask);
    // the library hands what is left after the first 255 rows to a repeat field of eight bits
    const int first = p.src.rows > kMostRepeats && rows > kMostRepeats ? kMostRepeats : rows;
    const int portions[] = {first, (rows - first) & 255};
    uint32_t at = element_address(p.dst, std::max(0, p.aligned - block));
    for (int portion : portions) {
        if (portion > 0)
            core.vector(missing ? executed(Instr::MOVEV, pad_bits_of(p.dst)) : Operation(Instr::MOVEV),
                        p.dst.type, portion, int64_t(portion) * missing,
                        VectorOperand(at, static_cast<uint16_t>(p.dst.cols / block)).masked(mask));
        at += static_cast<uint32_t>(kMostRepeats * p.dst.cols * p.size);
    }
    core.barrier(PipeId::V);
}

// One copy of `width` elements in each of `rows` rows; a wide row takes several repeats of the unit.
void copy_rows(Core &core, Type type, int rows, int64_t width, VectorOperand dst, VectorOperand src) {
    int64_t repeats = rows * std::max<int64_t>(1, ceil_div(width, per_repeat(type)));
    const auto bytes = static_cast<uint32_t>(width * type_size(type));
    core.also(kWrites, Space::UB, type, lines_at(dst.address, rows, dst.repeat_stride * kBlockBytes, bytes));
    core.also(kReads, Space::UB, type, lines_at(src.address, rows, src.repeat_stride * kBlockBytes, bytes));
    const Operation copy = by_row(executed(Instr::VCOPY), rows, static_cast<int32_t>(width));
    core.vector(copy, type, static_cast<int>(repeats), rows * width, dst.elsewhere(), src.elsewhere());
}

// Whole blocks to the right, then whole rows below. Bytes go two by two.
void issue_blocks(Core &core, const Padding &p) {
    Type type = p.size == 1 ? Type::U16 : p.dst.type;
    int unit = std::max(p.size, 2);
    auto units = [&](int64_t elements) { return elements * p.size / unit; };
    int64_t width = units(p.dst.cols - p.aligned);
    uint32_t right = element_address(p.dst, p.aligned);
    uint16_t stride = static_cast<uint16_t>(p.dst.cols * p.size / kBlockBytes);
    const uint64_t bits = pad_bits_of(p.dst), number = p.size == 1 ? (bits & 255) * 257 : bits;
    const Operation fill = executed(Instr::MOVEV, number);
    count_elements(core, width);
    counted(core, fill, type, width, VectorOperand(right));
    core.barrier(PipeId::V);
    // the first row's padding is copied to the others
    if (p.src.rows > 1)
        for (int done = 1; done < p.src.valid_rows; done += kMostRepeats) {
            int rows = std::min(kMostRepeats, p.src.valid_rows - done);
            copy_rows(core, type, rows, width,
                      VectorOperand(right + uint32_t(done) * stride * kBlockBytes, stride),
                      VectorOperand(right, 0, 0));
        }
    if (int64_t rows = p.dst.valid_rows - p.src.valid_rows; rows > 0) {
        mask_value(core, uint64_t(units(rows * p.dst.cols)));
        counted(core, fill, type, units(rows * p.dst.cols),
                VectorOperand(element_address(p.dst, int64_t(p.src.valid_rows) * p.dst.cols)));
    }
    count_off(core);
}

void fill(Core &core, const Operands &operands, const char *name, bool copy, bool same_size) {
    Padding p = plan(core, operands, name, same_size);
    if (is_empty(p.dst)) return;
    if (copy) {
        Type type = p.size == 1 ? Type::U16 : p.dst.type;
        int unit = std::max(p.size, 2);
        count_elements(core, p.src.cols * p.size / unit);
        for (int first = 0; first < p.src.valid_rows; first += kMostRepeats) {
            int rows = std::min(kMostRepeats, p.src.valid_rows - first);
            copy_rows(core, type, rows, int64_t(p.src.cols) * p.size / unit,
                      VectorOperand(element_address(p.dst, int64_t(first) * p.dst.cols),
                                    static_cast<uint16_t>(p.dst.cols * p.size / kBlockBytes)),
                      VectorOperand(element_address(p.src, int64_t(first) * p.src.cols),
                                    static_cast<uint16_t>(p.src.cols * p.size / kBlockBytes)));
        }
    }
    if (p.part_block) issue_part_block(core, p);
    issue_blocks(core, p);
}

// With functions: row by row, with stores of any width.
void fill_rows(Core &core, const Operands &operands, const char *name, bool copy, bool same_size) {
    const Padding p = plan(core, operands, name, same_size);
    if (is_empty(p.dst)) return;
    const Operation fill = executed(Instr::MOVEV, pad_bits_of(p.dst));
    const int begin = std::min(p.part_block ? p.src.valid_cols : p.aligned, int(p.dst.cols));
    auto at = [](const TileRef &tile, int64_t row, int64_t col) {
        return VectorOperand(element_address(tile, row * tile.cols + col));
    };
    for (int r = 0; r < p.src.valid_rows; ++r) {
        if (copy)
            core.vector_counted(executed(Instr::VCOPY), p.dst.type, p.src.cols, at(p.dst, r, 0),
                                at(p.src, r, 0));
        core.vector_counted(fill, p.dst.type, p.dst.cols - begin, at(p.dst, r, begin));
    }
    if (const int64_t rows = p.dst.valid_rows - p.src.valid_rows; rows > 0)
        core.vector_counted(fill, p.dst.type, rows * p.dst.cols, at(p.dst, p.src.valid_rows, 0));
}

// A matrix tile in L1: the boxes beyond the valid part become zero.
void pad_matrix(Core &core, const TileRef &tile) {
    if (tile.row_major || tile.inner != 1)
        core.unsupported("TFILLPAD of a matrix tile that is not column major with row-major boxes");
    if (tile.pad > 1) core.unsupported("TFILLPAD of a matrix tile with a pad value other than zero");
    int size = type_size(tile.type), block = per_block(tile.type);
    bool to_boxes = tile.compact == 3; // only up to whole boxes
    int rows_end = to_boxes ? static_cast<int>(ceil_div(tile.valid_rows, 16) * 16) : tile.rows;
    int cols_end = static_cast<int>(ceil_div(tile.valid_cols, block) * block);
    auto clear = [&](int64_t first, int64_t repeat, int64_t blocks, int64_t step) {
        fill_matrix(core, tile.type, tile.address + static_cast<uint32_t>(first * size), repeat,
                    blocks * kBlockBytes, step * kBlockBytes, 0, repeat);
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
    if (!in_matrix(core, operands)) fill(core, operands, "TFILLPAD", true, true);
}
TILE_OP_BODY(TFILLPAD_INPLACE) { fill(core, operands, "TFILLPAD_INPLACE", false, true); }
TILE_OP_BODY(TFILLPAD_EXPAND) { fill(core, operands, "TFILLPAD_EXPAND", true, false); }

FUNCTION_OP_BODY(TFILLPAD) {
    if (!in_matrix(core, operands)) fill_rows(core, operands, "TFILLPAD", true, true);
}
FUNCTION_OP_BODY(TFILLPAD_INPLACE) { fill_rows(core, operands, "TFILLPAD_INPLACE", false, true); }
FUNCTION_OP_BODY(TFILLPAD_EXPAND) { fill_rows(core, operands, "TFILLPAD_EXPAND", true, false); }

} // namespace insight_trace::engine
