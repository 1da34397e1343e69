// Reductions along rows and down columns: maximum, minimum, sum, product; and sums of neighbours in a row.
#include <cmath>

#include "ops/steps.hpp"

namespace insight_trace::engine {

namespace {

struct RowReduction {
    Instr fold;  // two repeats into one
    Instr whole; // one repeat into one value
    Instr group; // each block of a repeat into one value
    bool pairs;  // wide rows fold pair by pair in a tree (sums), else one after another
};

// The four shapes that fold block by block instead: one value per block, or neighbouring blocks into one.
bool folds_by_block(const TileRef &dst, const TileRef &src) {
    if (dst.row_major || dst.inner || !fixed_cols(dst) || dst.valid_cols != 1 || src.type != Type::F32)
        return false;
    if (src.dynamic || src.valid_rows != src.rows || src.valid_cols != src.cols) return false;
    return src.rows * src.cols == 8192 && src.cols >= 128 && src.cols <= 1024;
}

void check_row_reduction(Core &core, Instr fold, const TileRef &dst, const TileRef &src) {
    allow_types(core, src.type, {Type::F32, Type::F16, Type::I32, Type::I16});
    const bool adds_up = fold == Instr::VADD || fold == Instr::VMUL; // of bytes maxima and minima alone
    if (adds_up && type_size(src.type) == 1) refuse_type(core, src.type);
    need_plain_rows(core, src, "source");
    if (dst.space != Space::UB) core.kernel_error("%s: the result must be a vector tile", core.op);
    if (dst.inner || (!dst.row_major && dst.cols != 1))
        core.unsupported("%s into a tile that is neither row major nor one column", core.op);
    need_room(core, dst, "result", src.valid_rows, 1);
}

// Part of every row of a tile, from `offset` elements on.
struct Columns {
    const TileRef &tile;
    int offset = 0;
};

// Folds rows of `lanes` elements, one repeat per row, and waits: all of them in count mode, or `rows` from
// `first` on under the mask that is set.
void fold_rows(Core &core, Instr instr, Columns to, Columns a, Columns b, int first, int rows, int width,
               bool count) {
    const Type type = to.tile.type;
    const int widest = std::max({row_blocks(to.tile), row_blocks(a.tile), row_blocks(b.tile)});
    if (widest > kMostRepeats) { // the stride field has eight bits
        auto one = [](const Columns &c, int row) {
            return VectorOperand(address_of(c.tile, row, c.offset), 0);
        };
        for (int r = first; r < first + rows; ++r)
            core.vector(instr, type, 1, width, one(to, r), one(a, r), one(b, r));
        return;
    }
    auto all = [&](const Columns &c) { return rows_of(c.tile, first, c.offset); };
    if (count)
        core.vector_count(instr, type, int64_t(rows) * width, all(to), all(a), all(b));
    else
        core.vector(instr, type, rows, int64_t(rows) * width, all(to), all(a), all(b));
}

// One value of each repeat, without its index.
void reduce_rows(Core &core, Instr instr, const TileRef &dst, const TileRef &src, int first, int rows,
                 int width, bool count) {
    const Operation whole(instr, 0, instr == Instr::VCADD ? Order::ValueIndex : Order::OnlyValue);
    // the result's stride counts elements, and one of them is all that a repeat writes
    const VectorOperand to(address_of(dst, first), dst.cols, 0), from = rows_of(src, first);
    if (count)
        core.vector_count(whole, src.type, int64_t(rows) * width, to, from);
    else
        core.vector(whole, src.type, rows, int64_t(rows) * width, to, from);
    barrier(core);
}

void reduce_by_block(Core &core, const RowReduction &op, const TileRef &dst, const TileRef &src,
                     const TileRef &tmp) {
    constexpr int block = 8, lanes = 64;
    uint32_t from = src.address;
    for (int cols = src.cols; cols > 1;) {
        const bool group = cols % lanes == 0 || cols == block;
        cols /= group ? block : 2;
        const uint32_t to = cols == 1 ? dst.address : tmp.address;
        const int64_t left = int64_t(src.rows) * cols; // values after this step
        if (group)
            core.vector(op.group, Type::F32, int(left / block), left * block, VectorOperand(to, 1, 0),
                        VectorOperand(from));
        else
            core.vector(op.fold, Type::F32, int(left / lanes), left, VectorOperand(to),
                        VectorOperand(from, 16, 2), VectorOperand(from + kBlockBytes, 16, 2));
        barrier(core);
        from = to;
    }
}

void reduce_by_repeat(Core &core, const RowReduction &op, const TileRef &dst, const TileRef &src,
                      const TileRef &tmp) {
    const int lanes = per_repeat(src.type), rows = src.valid_rows, cols = src.valid_cols;
    const int full = cols / lanes, rest = cols % lanes;
    if (cols == lanes) return reduce_rows(core, op.whole, dst, src, 0, rows, lanes, true);
    if (cols < lanes)
        return under_mask(core, rest, [&] {
            portions(rows, kMostRepeats, [&](int first, int count) {
                reduce_rows(core, op.whole, dst, src, first, count, rest, false);
            });
        });
    // whole repeats, by their number in the row
    auto fold = [&](int to, const TileRef &x, int a, const TileRef &y, int b) {
        fold_rows(core, op.fold, {tmp, to * lanes}, {x, a * lanes}, {y, b * lanes}, 0, rows, lanes, true);
        barrier(core);
    };
    if (full == 1) { // nothing to fold yet: the whole repeat moves as it is
        copy_lines(core, src.type, {tmp.address, int64_t(tmp.cols) * type_size(tmp.type)},
                   {src.address, int64_t(src.cols) * type_size(src.type)}, rows, kRepeatBytes);
        barrier(core);
    } else if (op.pairs) {
        for (int i = 0; i < full / 2; ++i) fold(i, src, 2 * i, src, 2 * i + 1);
        if (full % 2) fold(0, tmp, 0, src, full - 1);
    } else {
        fold(0, src, 0, src, 1);
    }
    if (rest) {
        under_mask(core, rest, [&] {
            portions(rows, kMostRepeats, [&](int first, int count) {
                fold_rows(core, op.fold, {tmp}, {tmp}, {src, full * lanes}, first, count, rest, false);
            });
        });
        barrier(core);
    }
    if (op.pairs) // level by level
        for (int left = full / 2; left > 1; left /= 2) {
            for (int i = 0; i < left / 2; ++i) fold(i, tmp, 2 * i, tmp, 2 * i + 1);
            if (left % 2) fold(left / 2 - 1, tmp, left / 2 - 1, tmp, left / 2 * 2);
        }
    else
        for (int i = 2; i < full; ++i) fold(0, tmp, 0, src, i);
    reduce_rows(core, op.whole, dst, tmp, 0, rows, lanes, true);
}

// What a block begins with.
uint64_t neutral(Instr fold, Type type) {
    if (fold == Instr::VMUL) return bits_of_number(type, 1);
    if (fold == Instr::VADD) return 0;
    if (is_real_type(type)) return bits_of_number(type, fold == Instr::VMAX ? -INFINITY : INFINITY);
    const uint64_t ones = ~0ull >> (64 - 8 * type_size(type)), sign = ones ^ ones >> 1;
    const uint64_t least = unsigned_of(type) != type ? sign : 0;
    return fold == Instr::VMAX ? least : ones ^ least;
}

// The scalar unit reads a block and gives what its elements fold to. It computes 16-bit floats as floats.
uint64_t fold_block(Core &core, Instr fold, Type type, uint32_t from) {
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

void reduce_blocks(Core &core, Instr fold, const TileRef &dst, const TileRef &src, const TileRef &tmp) {
    const int block = per_block(src.type), rest = src.valid_cols % block;
    const VectorOperand held(tmp.address, 0, 0);
    count_mode(core);
    for (int r = 0; r < src.valid_rows; ++r) {
        uint32_t from = address_of(src, r);
        auto step = [&](const Operation &instr, int width, VectorOperand to, VectorOperand a,
                        VectorOperand b) {
            core.vector(instr, src.type, 1, width, to, a, b);
            barrier(core);
        };
        mask_value(core, uint64_t(block));
        step({Instr::MOVEV, neutral(fold, src.type)}, block, VectorOperand(tmp.address, 0), {}, {});
        for (int b = 0; b < src.valid_cols / block; ++b, from += kBlockBytes)
            step(fold, block, held, held, VectorOperand(from, 1));
        if (rest) {
            mask_value(core, uint64_t(rest));
            step(fold, rest, held, held, VectorOperand(from, 1));
        }
        handshake(core, PipeId::V, PipeId::S);
        scalar_store(core, element_address(dst, int64_t(r) * row_step(dst)),
                     fold_block(core, fold, src.type, tmp.address), type_size(src.type));
        handshake(core, PipeId::S, PipeId::V);
    }
    count_off(core);
}

void row_reduction(Core &core, const Operands &operands, const RowReduction &op) {
    const TileRef &dst = operands[0].tile, &src = operands[1].tile;
    check_row_reduction(core, op.fold, dst, src);
    if (is_empty(src)) return;
    TileRef tmp = operands[2].tile;
    if (core.register_based()) {
        tmp = src;
        tmp.address = kRegisterFile;
        tmp.cols = std::max(src.cols, per_repeat(src.type));
    }
    if (op.fold == Instr::VMUL || (src.type != Type::F32 && src.type != Type::F16))
        reduce_blocks(core, op.fold, dst, src, tmp);
    else
        (folds_by_block(dst, src) ? reduce_by_block : reduce_by_repeat)(core, op, dst, src, tmp);
}

void check_column_reduction(const Core &core, const TileRef &dst, const TileRef &src) {
    allow_types(core, src.type, {Type::F32, Type::F16, Type::I32, Type::I16});
    same_type(core, dst, src);
    need_plain_rows(core, src, "source");
    need_plain_rows(core, dst, "result");
    need_room(core, dst, "result", 1, src.valid_cols);
}

void copy_row(Core &core, const TileRef &dst, const TileRef &src) {
    copy_lines(core, src.type, {dst.address}, {src.address}, 1,
               int64_t(src.valid_cols) * type_size(src.type));
}

// Every row but the first folded into the first of dst, columns from `col` on.
void fold_columns(Core &core, Instr instr, const TileRef &dst, const TileRef &src, int col, int width) {
    for (int r = 1; r < src.valid_rows; ++r)
        counted_then(core, instr, src.type, width, row_of(dst, 0, col), row_of(dst, 0, col),
                     row_of(src, r, col));
}

void column_reduction(Core &core, const Operands &operands, Instr instr) {
    const TileRef &dst = operands[0].tile, &src = operands[1].tile;
    check_column_reduction(core, dst, src);
    if (is_empty(src)) return;
    copy_row(core, dst, src);
    barrier(core);
    if (src.valid_rows == 1) return;
    const int rest = src.valid_cols % per_repeat(src.type), whole = src.valid_cols - rest;
    if (whole) under_count(core, whole, [&] { fold_columns(core, instr, dst, src, 0, whole); });
    if (rest) under_mask(core, rest, [&] { fold_columns(core, instr, dst, src, whole, rest); });
    barrier(core);
}

// Sums pair by pair: rows 2i and 2i + 1 into row i, an odd last row into row 0, until one row is left.
void pair_sums(Core &core, const TileRef &src, const TileRef &tmp) {
    const TileRef *from = &src;
    for (int count = src.valid_rows; count > 1; count /= 2) {
        auto add = [&](int64_t to, VectorOperand a, VectorOperand b) {
            counted(core, Instr::VADD, src.type, src.valid_cols, row_of(tmp, to), a, b);
        };
        under_count(core, src.valid_cols, [&] {
            for (int i = 0; i < count / 2; ++i) add(i, row_of(*from, 2 * i), row_of(*from, 2 * i + 1));
            barrier(core);
            if (count % 2) {
                add(0, row_of(tmp, 0), row_of(*from, count - 1));
                barrier(core);
            }
        });
        if (from == &tmp) barrier(core);
        from = &tmp;
    }
}

} // namespace

TILE_OP_BODY(TROWMAX) { row_reduction(core, operands, {Instr::VMAX, Instr::VCMAX, Instr::VCGMAX, false}); }
TILE_OP_BODY(TROWMIN) { row_reduction(core, operands, {Instr::VMIN, Instr::VCMIN, Instr::VCGMIN, false}); }
TILE_OP_BODY(TROWSUM) { row_reduction(core, operands, {Instr::VADD, Instr::VCADD, Instr::VCGADD, true}); }
TILE_OP_BODY(TROWPROD) { row_reduction(core, operands, {Instr::VMUL, {}, {}, false}); }

TILE_OP_BODY(TCOLMAX) { column_reduction(core, operands, Instr::VMAX); }
TILE_OP_BODY(TCOLMIN) { column_reduction(core, operands, Instr::VMIN); }
TILE_OP_BODY(TCOLPROD) { column_reduction(core, operands, Instr::VMUL); }

TILE_OP_BODY(TCOLSUM) {
    const TileRef &dst = operands[0].tile, &src = operands[1].tile;
    const bool has_tmp = operands.count > 2;
    check_column_reduction(core, dst, src);
    if (is_empty(src)) return;
    if (has_tmp && scalar_as<int64_t>(operands[3]) != 0 && src.valid_rows > 1) {
        TileRef tmp = operands[2].tile;
        need_plain_rows(core, tmp, "scratch tile");
        tmp.cols = core.register_based() ? src.cols : tmp.cols * type_size(tmp.type) / type_size(src.type);
        tmp.type = src.type;
        tmp.address = scratch_address(core, tmp);
        tmp.valid_cols = src.valid_cols;
        pair_sums(core, src, tmp);
        copy_row(core, dst, tmp);
        return barrier(core);
    }
    copy_row(core, dst, src);
    if (has_tmp || src.valid_rows > 1) barrier(core);
    if (src.valid_rows > 1)
        under_count(core, src.valid_cols,
                    [&] { fold_columns(core, Instr::VADD, dst, src, 0, src.valid_cols); });
}

// Neighbours 2i and 2i + 1 of a row into element i.
TILE_OP_BODY(TPAIRREDUCESUM) {
    const TileRef &dst = operands[0].tile, &src = operands[1].tile;
    allow_types(core, dst.type, {Type::F32, Type::F16});
    same_type(core, dst, src);
    need_plain_rows(core, dst, "result");
    need_plain_rows(core, src, "source");
    if (is_empty(dst)) return;
    need_room(core, src, "source", dst.valid_rows, dst.valid_cols);
    const int rows = dst.valid_rows, cols = dst.valid_cols, lanes = per_repeat(dst.type);
    // its step of the result is counted in halves of a repeat, that of the source in blocks
    const uint16_t halves = static_cast<uint16_t>(dst.cols / (lanes / 2));
    auto pairs = [&](int row, int col, int count, int width) {
        core.vector(Instr::VCPADD, dst.type, count, int64_t(count) * width,
                    VectorOperand(element_address(dst, int64_t(row) * dst.cols + col / 2), halves),
                    rows_of(src, row, col));
        barrier(core);
    };
    const bool whole =
        fixed_cols(dst) && fixed_cols(src) && dst.valid_cols == dst.cols && src.valid_cols == src.cols;
    const bool together = (whole && dst.cols % (lanes / 2) == 0) || (dst.rows == 1 && src.rows == 1);
    const int even_rest = cols % lanes & ~1, full = cols / lanes;
    bit_mode(core);
    if (together)
        for (int i = 0; i < full; ++i)
            portions(rows, kMostRepeats, [&](int row, int count) { pairs(row, i * lanes, count, lanes); });
    for (int row = 0; row < rows; ++row) {
        for (int i = 0; !together && i < full; ++i) pairs(row, i * lanes, 1, lanes);
        if (even_rest) under_count(core, even_rest, [&] { pairs(row, full * lanes, 1, even_rest); });
    }
}

} // namespace insight_trace::engine
