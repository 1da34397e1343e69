// Reductions along rows: maximum, minimum, sum, product.
#include <cstring>
#include <string_view>
#include <vector>

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
            core.vector(instr, type, 1, width, operand(to, r, 0), operand(a, r, 0), operand(b, r, 0));
        return;
    }
    VectorOperand dst = operand(to, first, strides[0]), src0 = operand(a, first, strides[1]),
                  src1 = operand(b, first, strides[2]);
    if (count)
        core.vector_count(instr, type, int64_t(rows) * width, dst, src0, src1);
    else
        core.vector(instr, type, rows, int64_t(rows) * width, dst, src0, src1);
}

void reduce_rows(Core &core, Instr instr, const TileRef &dst, const TileRef &src, int first, int rows,
                 int width, bool count) {
    // the result's stride counts elements, and one of them is all that a repeat writes
    VectorOperand to(element_address(dst, int64_t(first) * dst.cols), static_cast<uint16_t>(dst.cols), 0);
    VectorOperand from(element_address(src, int64_t(first) * src.cols), blocks_per_row(src));
    if (count)
        core.vector_count(instr, src.type, int64_t(rows) * width, to, from);
    else
        core.vector(instr, src.type, rows, int64_t(rows) * width, to, from);
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
            core.vector(op.group, Type::F32, int(left / block), left * block, VectorOperand(to, 1, 0),
                        VectorOperand(from, 8));
        else
            core.vector(op.fold, Type::F32, int(left / lanes), left, VectorOperand(to, 8),
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
        core.move(Instr::MOV_UB_TO_UB, src.type,
                  lines_at(tmp.address, rows, int64_t(tmp.cols) * type_size(tmp.type), kRepeatBytes),
                  lines_at(src.address, rows, int64_t(src.cols) * type_size(src.type), kRepeatBytes), rows,
                  int64_t(rows) * kRepeatBytes);
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

void issue_blockwise_reduction(Core &core, Instr fold, const TileRef &dst, const TileRef &src,
                               const TileRef &tmp) {
    int block = per_block(src.type), size = type_size(src.type);
    int rest = src.valid_cols % block;
    VectorOperand held(tmp.address, 0, 0);
    count_mode(core);
    for (int r = 0; r < src.valid_rows; ++r) {
        uint32_t from = element_address(src, int64_t(r) * src.cols);
        mask_value(core, uint64_t(block));
        core.vector(Instr::MOVEV, src.type, 1, block, VectorOperand(tmp.address, 0));
        core.barrier(PipeId::V);
        for (int b = 0; b < src.valid_cols / block; ++b, from += kBlockBytes) {
            core.vector(fold, src.type, 1, block, held, held, VectorOperand(from, 1));
            core.barrier(PipeId::V);
        }
        if (rest) {
            mask_value(core, uint64_t(rest));
            core.vector(fold, src.type, 1, rest, held, held, VectorOperand(from, 1));
            core.barrier(PipeId::V);
        }
        handshake(core, PipeId::V, PipeId::S);
        for (int i = 0; i < block; ++i) scalar_load(core, tmp.address + uint32_t(i * size));
        scalar_store(core, element_address(dst, int64_t(r) * row_step(dst)));
        handshake(core, PipeId::S, PipeId::V);
    }
    count_off(core);
}

namespace {

// One repeat into one value: neighbours pair up, level by level; one rounding at the end.
template <class T, class Fold> HOT_LOOP void fold_lanes(const void *from, int count, void *to) {
    const T *lanes = static_cast<const T *>(from);
    Wide<T> level[kRepeatBytes];
    for (int i = 0; i < count; ++i) level[i] = Wide<T>(lanes[i]);
    for (; count > 1; count = (count + 1) / 2) {
        for (int i = 0; i < count / 2; ++i) level[i] = Fold::of(level[2 * i], level[2 * i + 1]);
        if (count % 2) level[count / 2] = level[count - 1];
    }
    *static_cast<T *>(to) = T(level[0]);
}

struct SumOfTwo {
    template <class T> static T of(T a, T b) { return wrap_add(a, b); }
};
struct LargerOfTwo {
    template <class T> static T of(T a, T b) { return larger(a, b); }
};
struct SmallerOfTwo {
    template <class T> static T of(T a, T b) { return smaller(a, b); }
};

template <class Fold, class... T> LaneFold lane_fold_of(Type type, Types<T...>) {
    LaneFold found = nullptr;
    ((type == type_of<T>() ? (found = fold_lanes<T, Fold>, true) : false) || ...);
    return found;
}

// How elements of one type fold.
struct Folding {
    int64_t size; // of an element
    LineOp lines; // two lines into one
    LaneFold lanes;
};

// A row of any width into `to`. `parts` has room for half the row, one repeat at least.
void fold_row(const Folding &fold, const uint8_t *row, int cols, uint8_t *parts, uint8_t *to) {
    const int lanes = kRepeatBytes / int(fold.size);
    const int full = cols / lanes, rest = cols % lanes;
    if (cols <= lanes) return fold.lanes(row, cols, to);
    auto part = [&](int i) { return parts + int64_t(i) * kRepeatBytes; };
    auto piece = [&](int i) { return row + int64_t(i) * kRepeatBytes; };
    if (full == 1) memcpy(parts, row, kRepeatBytes);
    for (int i = 0; i < full / 2; ++i) fold.lines(part(i), piece(2 * i), piece(2 * i + 1), lanes);
    if (full > 1 && full % 2) fold.lines(parts, parts, piece(full - 1), lanes);
    if (rest) fold.lines(parts, parts, piece(full), rest);
    for (int left = full / 2; left > 1;) {
        for (int i = 0; i < left / 2; ++i) fold.lines(part(i), part(2 * i), part(2 * i + 1), lanes);
        bool odd = left % 2;
        left /= 2;
        if (odd) fold.lines(part(left - 1), part(left - 1), part(left * 2), lanes);
    }
    fold.lanes(parts, lanes, to);
}

// Floats only.
void fold_row_by_block(const Folding &fold, const float *row, int cols, float *parts, float *to) {
    constexpr int block = kBlockBytes / sizeof(float), lanes = kRepeatBytes / sizeof(float);
    std::copy(row, row + cols, parts);
    while (cols > 1) {
        if (cols % lanes == 0 || cols == block) {
            cols /= block;
            for (int i = 0; i < cols; ++i) fold.lanes(parts + i * block, block, parts + i);
        } else {
            cols /= 2;
            for (int i = 0; i < cols / block; ++i)
                fold.lines(parts + i * block, parts + 2 * i * block, parts + (2 * i + 1) * block, block);
        }
    }
    *to = parts[0];
}

void fold_rows(Core &core, const TileRef &dst, const TileRef &src, const Folding &fold) {
    const bool by_block = folds_by_block(dst, src);
    const int64_t step = row_step(dst) * fold.size;
    uint8_t *to = core.local(dst.space, dst.address, uint64_t((src.valid_rows - 1) * step + fold.size));
    const uint8_t *from = bytes_of(core, src, src.valid_rows, src.valid_cols);
    std::vector<float> parts(size_t(std::max<int64_t>(src.cols * fold.size, kRepeatBytes)) / sizeof(float) +
                             1);
    for (int64_t r = 0; r < src.valid_rows; ++r) {
        const uint8_t *row = from + r * src.cols * fold.size;
        if (by_block)
            fold_row_by_block(fold, reinterpret_cast<const float *>(row), src.cols, parts.data(),
                              reinterpret_cast<float *>(to + r * step));
        else
            fold_row(fold, row, src.valid_cols, reinterpret_cast<uint8_t *>(parts.data()), to + r * step);
    }
}

void row_reduction(Core &core, const Operands &operands, const RowReduction &op, Pair pair) {
    const TileRef &dst = operands[0].tile, &src = operands[1].tile, &tmp = operands[2].tile;
    check_row_reduction(core, op.name, dst, src);
    if (is_empty(src)) return;
    if (core.computes) {
        const Folding fold{type_size(src.type), line_op(core, op.name, src.type, pair),
                           lane_fold(core, op.name, src.type, pair)};
        fold_rows(core, dst, src, fold);
    }
    if (src.type == Type::F32 || src.type == Type::F16)
        issue_row_reduction(core, op, dst, src, tmp);
    else
        issue_blockwise_reduction(core, op.fold, dst, src, tmp);
}

} // namespace

LaneFold lane_fold(Core &core, const char *op, Type type, Pair pair) {
    LaneFold found = pair == Pair::Sum      ? lane_fold_of<SumOfTwo>(unsigned_of(type), Signless())
                     : pair == Pair::Larger ? lane_fold_of<LargerOfTwo>(type, Numbers())
                                            : lane_fold_of<SmallerOfTwo>(type, Numbers());
    if (!found) core.unsupported("%s of %s tiles", op, type_name(type));
    return found;
}

TILE_OP_BODY(TROWMAX) {
    static const RowReduction op{"TROWMAX", Instr::VMAX, Instr::VCMAX, Instr::VCGMAX, false};
    row_reduction(core, operands, op, Pair::Larger);
}

TILE_OP_BODY(TROWMIN) {
    static const RowReduction op{"TROWMIN", Instr::VMIN, Instr::VCMIN, Instr::VCGMIN, false};
    row_reduction(core, operands, op, Pair::Smaller);
}

TILE_OP_BODY(TROWSUM) {
    static const RowReduction op{"TROWSUM", Instr::VADD, Instr::VCADD, Instr::VCGADD, true};
    row_reduction(core, operands, op, Pair::Sum);
}

TILE_OP_BODY(TROWPROD) {
    const TileRef &dst = operands[0].tile, &src = operands[1].tile, &tmp = operands[2].tile;
    check_row_reduction(core, "TROWPROD", dst, src);
    if (is_empty(src)) return;
    if (core.computes)
        with_type_of(core, "TROWPROD", unsigned_of(src.type), Signless{}, [&](auto tag) {
            using T = decltype(tag);
            constexpr int block = kBlockBytes / int(sizeof(T));
            View<T> to(core, dst, src.valid_rows, 1), from(core, src, src.valid_rows, src.valid_cols);
            for (int r = 0; r < src.valid_rows; ++r) {
                const T *row = from.data + int64_t(r) * src.cols;
                T held[block];
                std::fill(held, held + block, T(1));
                for (int c = 0; c < src.valid_cols; ++c)
                    held[c % block] = T(wrap_mul(Wide<T>(held[c % block]), Wide<T>(row[c])));
                Wide<T> product = Wide<T>(held[0]);
                for (int i = 1; i < block; ++i) product = wrap_mul(product, Wide<T>(held[i]));
                to.at(r, 0) = T(product);
            }
        });
    issue_blockwise_reduction(core, Instr::VMUL, dst, src, tmp);
}

} // namespace insight_trace::engine
