// Reductions along rows: maximum, minimum, sum, product.
#include <cmath>
#include <string_view>

#include "isa/vector_unit.hpp"
#include "ops/steps.hpp"

namespace insight_trace::engine {

namespace {

struct RowReduction {
    const char *name;
    Instr fold;  // two repeats into one
    Instr whole; // one repeat into one value
    Instr group; // each block of a repeat into one value
    bool pairs;  // wide rows fold pair by pair in a tree (sums), else one after another
};

// The four shapes that fold block by block instead: one value per block, or neighbouring blocks into one.
inline bool folds_by_block(const TileRef &dst, const TileRef &src) {
    if (dst.row_major || dst.inner || !fixed_cols(dst) || dst.valid_cols != 1 || src.type != Type::F32)
        return false;
    if (src.dynamic || src.valid_rows != src.rows || src.valid_cols != src.cols) return false;
    return src.rows * src.cols == 8192 && src.cols >= 128 && src.cols <= 1024;
}

void check_row_reduction(Core &core, const char *name, const TileRef &dst, const TileRef &src) {
    allow_types(core, name, src.type, {Type::F32, Type::F16, Type::I32, Type::I16});
    const std::string_view op(name);
    const bool adds_up = op == "TROWSUM" || op == "TROWPROD"; // of bytes there are maxima and minima alone
    if (adds_up && type_size(src.type) == 1) core.unsupported("%s of %s tiles", name, type_name(src.type));
    need_plain_rows(core, name, src, "source");
    if (dst.space != Space::UB) core.kernel_error("%s: the result must be a vector tile", name);
    if (dst.inner || (!dst.row_major && dst.cols != 1))
        core.unsupported("%s into a tile that is neither row major nor one column", name);
    if (dst.rows < src.valid_rows)
        core.kernel_error("%s: %d rows do not fit the %d of the result", name, src.valid_rows, dst.rows);
}

uint16_t blocks_per_row(const TileRef &tile) {
    return static_cast<uint16_t>(tile.cols / per_block(tile.type));
}

// Part of every row of a tile, from `offset` elements on.
struct Columns {
    const TileRef &tile;
    int offset = 0;
};

// One repeat per row over `rows` rows from `first` on.
void fold_rows(Core &core, Instr instr, Columns to, Columns a, Columns b, int first, int rows, int width,
               bool count) {
    Type type = to.tile.type;
    uint16_t strides[] = {blocks_per_row(to.tile), blocks_per_row(a.tile), blocks_per_row(b.tile)};
    auto operand = [&](const Columns &c, int row, uint16_t stride) {
        return VectorOperand(element_address(c.tile, int64_t(row) * c.tile.cols + c.offset), stride);
    };
    if (*std::max_element(strides, strides + 3) > kMostRepeats) { // the stride field has eight bits
        for (int r = first; r < first + rows; ++r)
            core.vector(executed(instr), type, 1, width, operand(to, r, 0), operand(a, r, 0),
                        operand(b, r, 0));
        return;
    }
    VectorOperand dst = operand(to, first, strides[0]), src0 = operand(a, first, strides[1]),
                  src1 = operand(b, first, strides[2]);
    if (count)
        core.vector_count(executed(instr), type, int64_t(rows) * width, dst, src0, src1);
    else
        core.vector(executed(instr), type, rows, int64_t(rows) * width, dst, src0, src1);
}

// One value of each repeat, without its index.
Operation whole_repeat(Instr instr) {
    return executed(instr, 0, instr == Instr::VCADD ? 0 : static_cast<uint8_t>(Order::OnlyValue));
}

void reduce_rows(Core &core, Instr instr, const TileRef &dst, const TileRef &src, int first, int rows,
                 int width, bool count) {
    // the result's stride counts elements, and one of them is all that a repeat writes
    VectorOperand to(element_address(dst, int64_t(first) * dst.cols), static_cast<uint16_t>(dst.cols), 0);
    VectorOperand from(element_address(src, int64_t(first) * src.cols), blocks_per_row(src));
    if (count)
        core.vector_count(whole_repeat(instr), src.type, int64_t(rows) * width, to, from);
    else
        core.vector(whole_repeat(instr), src.type, rows, int64_t(rows) * width, to, from);
}

void issue_by_block(Core &core, const RowReduction &op, const TileRef &dst, const TileRef &src,
                    const TileRef &tmp) {
    constexpr int block = 8, lanes = 64;
    uint32_t from = src.address;
    for (int cols = src.cols; cols > 1;) {
        bool group = cols % lanes == 0 || cols == block;
        cols /= group ? block : 2;
        uint32_t to = cols == 1 ? dst.address : tmp.address;
        int64_t left = int64_t(src.rows) * cols; // values after this step
        if (group)
            core.vector(executed(op.group), Type::F32, int(left / block), left * block,
                        VectorOperand(to, 1, 0), VectorOperand(from, 8));
        else
            core.vector(executed(op.fold), Type::F32, int(left / lanes), left, VectorOperand(to, 8),
                        VectorOperand(from, 16, 2), VectorOperand(from + kBlockBytes, 16, 2));
        core.barrier(PipeId::V);
        from = to;
    }
}

// Rows in portions that a repeat count can hold.
template <class Body> void row_portions(int rows, Body body) {
    for (int first = 0; first < rows; first += kMostRepeats)
        body(first, std::min(kMostRepeats, rows - first));
}

// Whole repeats of wide rows, pair by pair, then level by level.
void issue_pair_tree_start(Core &core, Instr fold, const TileRef &src, const TileRef &tmp, int full,
                           int lanes) {
    int rows = src.valid_rows;
    for (int i = 0; i < full / 2; ++i) {
        fold_rows(core, fold, {tmp, i * lanes}, {src, 2 * i * lanes}, {src, (2 * i + 1) * lanes}, 0, rows,
                  lanes, true);
        core.barrier(PipeId::V);
    }
    if (full > 1 && full % 2) {
        fold_rows(core, fold, {tmp}, {tmp}, {src, (full - 1) * lanes}, 0, rows, lanes, true);
        core.barrier(PipeId::V);
    }
}

void issue_pair_tree_end(Core &core, Instr fold, const TileRef &tmp, int rows, int full, int lanes) {
    for (int left = full / 2; left > 1;) {
        for (int i = 0; i < left / 2; ++i) {
            fold_rows(core, fold, {tmp, i * lanes}, {tmp, 2 * i * lanes}, {tmp, (2 * i + 1) * lanes}, 0, rows,
                      lanes, true);
            core.barrier(PipeId::V);
        }
        bool odd = left % 2;
        left /= 2;
        if (odd) {
            fold_rows(core, fold, {tmp, (left - 1) * lanes}, {tmp, (left - 1) * lanes},
                      {tmp, left * 2 * lanes}, 0, rows, lanes, true);
            core.barrier(PipeId::V);
        }
    }
}

} // namespace

void issue_row_reduction(Core &core, const RowReduction &op, const TileRef &dst, const TileRef &src,
                         const TileRef &tmp) {
    if (folds_by_block(dst, src)) {
        issue_by_block(core, op, dst, src, tmp);
        return;
    }
    int lanes = per_repeat(src.type);
    int rows = src.valid_rows, cols = src.valid_cols;
    int full = cols / lanes, rest = cols % lanes;
    if (cols == lanes) {
        reduce_rows(core, op.whole, dst, src, 0, rows, lanes, true);
        core.barrier(PipeId::V);
        return;
    }
    if (cols < lanes) {
        mask_elements(core, rest);
        row_portions(rows, [&](int first, int count) {
            reduce_rows(core, op.whole, dst, src, first, count, rest, false);
            core.barrier(PipeId::V);
        });
        mask_all(core);
        return;
    }
    if (full == 1) { // nothing to fold yet: the whole repeat moves as it is
        copy_lines(core, src.type, {tmp.address, int64_t(tmp.cols) * type_size(tmp.type)},
                   {src.address, int64_t(src.cols) * type_size(src.type)}, rows, kRepeatBytes);
        core.barrier(PipeId::V);
    } else if (op.pairs) {
        issue_pair_tree_start(core, op.fold, src, tmp, full, lanes);
    } else {
        fold_rows(core, op.fold, {tmp}, {src}, {src, lanes}, 0, rows, lanes, true);
        core.barrier(PipeId::V);
    }
    if (rest) {
        mask_elements(core, rest);
        row_portions(rows, [&](int first, int count) {
            fold_rows(core, op.fold, {tmp}, {tmp}, {src, full * lanes}, first, count, rest, false);
        });
        mask_all(core);
        core.barrier(PipeId::V);
    }
    if (op.pairs)
        issue_pair_tree_end(core, op.fold, tmp, rows, full, lanes);
    else
        for (int i = 2; i < full; ++i) {
            fold_rows(core, op.fold, {tmp}, {tmp}, {src, i * lanes}, 0, rows, lanes, true);
            core.barrier(PipeId::V);
        }
    reduce_rows(core, op.whole, dst, tmp, 0, rows, lanes, true);
    core.barrier(PipeId::V);
}

// What a block begins with.
static uint64_t neutral(Instr fold, Type type) {
    const bool real = type == Type::F32 || type == Type::F16 || type == Type::BF16;
    if (fold == Instr::VMUL) return bits_of_number(type, 1);
    if (fold == Instr::VADD) return 0;
    if (real) return bits_of_number(type, fold == Instr::VMAX ? -INFINITY : INFINITY);
    const uint64_t ones = ~0ull >> (64 - 8 * type_size(type)), sign = ones ^ ones >> 1;
    const bool is_signed = type == Type::I32 || type == Type::I16 || type == Type::I8 || type == Type::I64;
    const uint64_t least = is_signed ? sign : 0;
    return fold == Instr::VMAX ? least : ones ^ least;
}

// The scalar unit reads a block and gives what its elements fold to. It computes 16-bit floats as floats.
static uint64_t fold_block(Core &core, Instr fold, Type type, uint32_t from) {
    const bool half = type == Type::F16 || type == Type::BF16;
    const int size = type_size(type);
    auto load = [&](int i) {
        const uint64_t bits = scalar_load(core, from + uint32_t(i * size), size);
        return half ? bits_of_number(Type::F32, number_of_bits(type, bits)) : bits;
    };
    uint64_t value = load(0);
    for (int i = 1; i < per_block(type); ++i)
        value = scalar_result(core, fold, half ? Type::F32 : type, value, load(i));
    return half ? bits_of_number(type, number_of_bits(Type::F32, value)) : value;
}

void issue_blockwise_reduction(Core &core, Instr fold, const TileRef &dst, const TileRef &src,
                               const TileRef &tmp) {
    int block = per_block(src.type), size = type_size(src.type);
    int rest = src.valid_cols % block;
    const uint64_t first = neutral(fold, src.type);
    VectorOperand held(tmp.address, 0, 0);
    count_mode(core);
    for (int r = 0; r < src.valid_rows; ++r) {
        uint32_t from = element_address(src, int64_t(r) * src.cols);
        mask_value(core, uint64_t(block));
        core.vector(executed(Instr::MOVEV, first), src.type, 1, block, VectorOperand(tmp.address, 0));
        core.barrier(PipeId::V);
        for (int b = 0; b < src.valid_cols / block; ++b, from += kBlockBytes) {
            core.vector(executed(fold), src.type, 1, block, held, held, VectorOperand(from, 1));
            core.barrier(PipeId::V);
        }
        if (rest) {
            mask_value(core, uint64_t(rest));
            core.vector(executed(fold), src.type, 1, rest, held, held, VectorOperand(from, 1));
            core.barrier(PipeId::V);
        }
        handshake(core, PipeId::V, PipeId::S);
        scalar_store(core, element_address(dst, int64_t(r) * row_step(dst)),
                     fold_block(core, fold, src.type, tmp.address), size);
        handshake(core, PipeId::S, PipeId::V);
    }
    count_off(core);
}

namespace {

// Where a chip with functions holds what a2a3 has in its scratch tile.
TileRef scratch_of(const Core &core, const TileRef &tmp, const TileRef &src) {
    if (!core.register_based()) return tmp;
    TileRef held = src;
    held.address = kRegisterFile;
    held.cols = int32_t(std::max<int64_t>(src.cols, per_repeat(src.type)));
    return held;
}

void row_reduction(Core &core, const Operands &operands, const RowReduction &op) {
    const TileRef &dst = operands[0].tile, &src = operands[1].tile;
    check_row_reduction(core, op.name, dst, src);
    if (is_empty(src)) return;
    const TileRef tmp = scratch_of(core, operands[2].tile, src);
    if (src.type == Type::F32 || src.type == Type::F16)
        issue_row_reduction(core, op, dst, src, tmp);
    else
        issue_blockwise_reduction(core, op.fold, dst, src, tmp);
}

} // namespace

TILE_OP_BODY(TROWMAX) {
    static const RowReduction op{"TROWMAX", Instr::VMAX, Instr::VCMAX, Instr::VCGMAX, false};
    row_reduction(core, operands, op);
}

TILE_OP_BODY(TROWMIN) {
    static const RowReduction op{"TROWMIN", Instr::VMIN, Instr::VCMIN, Instr::VCGMIN, false};
    row_reduction(core, operands, op);
}

TILE_OP_BODY(TROWSUM) {
    static const RowReduction op{"TROWSUM", Instr::VADD, Instr::VCADD, Instr::VCGADD, true};
    row_reduction(core, operands, op);
}

TILE_OP_BODY(TROWPROD) {
    const TileRef &dst = operands[0].tile, &src = operands[1].tile;
    check_row_reduction(core, "TROWPROD", dst, src);
    if (is_empty(src)) return;
    issue_blockwise_reduction(core, Instr::VMUL, dst, src, scratch_of(core, operands[2].tile, src));
}

} // namespace insight_trace::engine
