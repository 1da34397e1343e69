// Reductions along rows: how a row folds into one value, and which instructions that is on the hardware.
#pragma once

#include <vector>

#include "ops/steps.hpp"

namespace insight_trace::engine {

struct RowReduction {
    const char *name;
    Instr fold;  // two repeats into one
    Instr whole; // one repeat into one value
    Instr group; // each block of a repeat into one value
    bool pairs;  // wide rows fold pair by pair in a tree (sums), else one after another
};

// One repeat into one value: neighbours pair up, level by level; one rounding at the end.
template <class T, class Fold> HOT_LOOP T fold_lanes(const T *lanes, int count, Fold fold) {
    Wide<T> level[kRepeatBytes];
    for (int i = 0; i < count; ++i) level[i] = Wide<T>(lanes[i]);
    for (; count > 1; count = (count + 1) / 2) {
        for (int i = 0; i < count / 2; ++i) level[i] = fold(level[2 * i], level[2 * i + 1]);
        if (count % 2) level[count / 2] = level[count - 1];
    }
    return T(level[0]);
}

// A row of any width. `parts` has room for half the row, one repeat at least.
template <class T, class Fold> T fold_row(const T *row, int cols, int lanes, Fold fold, T *parts) {
    int full = cols / lanes, rest = cols % lanes;
    if (cols <= lanes) return fold_lanes(row, cols, fold);
    if (full == 1) std::copy(row, row + lanes, parts);
    for (int i = 0; i < full / 2; ++i)
        map_line(parts + i * lanes, row + 2 * i * lanes, row + (2 * i + 1) * lanes, lanes, fold);
    if (full > 1 && full % 2) map_line(parts, parts, row + (full - 1) * lanes, lanes, fold);
    if (rest) map_line(parts, parts, row + full * lanes, rest, fold);
    for (int left = full / 2; left > 1;) {
        for (int i = 0; i < left / 2; ++i)
            map_line(parts + i * lanes, parts + 2 * i * lanes, parts + (2 * i + 1) * lanes, lanes, fold);
        bool odd = left % 2;
        left /= 2;
        if (odd) {
            T *last = parts + (left - 1) * lanes;
            map_line(last, last, parts + left * 2 * lanes, lanes, fold);
        }
    }
    return fold_lanes(parts, lanes, fold);
}

// The four shapes that fold block by block instead: one value per block, or neighbouring blocks into one.
inline bool folds_by_block(const TileRef &dst, const TileRef &src) {
    if (dst.row_major || dst.inner || !fixed_cols(dst) || dst.valid_cols != 1 || src.type != Type::F32)
        return false;
    if (src.dynamic || src.valid_rows != src.rows || src.valid_cols != src.cols) return false;
    return src.rows * src.cols == 8192 && src.cols >= 128 && src.cols <= 1024;
}

template <class T, class Fold> T fold_row_by_block(const T *row, int cols, Fold fold, T *parts) {
    constexpr int block = kBlockBytes / sizeof(T), lanes = kRepeatBytes / sizeof(T);
    std::copy(row, row + cols, parts);
    while (cols > 1) {
        if (cols % lanes == 0 || cols == block) {
            cols /= block;
            for (int i = 0; i < cols; ++i) parts[i] = fold_lanes(parts + i * block, block, fold);
        } else {
            cols /= 2;
            for (int i = 0; i < cols / block; ++i)
                map_line(parts + i * block, parts + 2 * i * block, parts + (2 * i + 1) * block, block, fold);
        }
    }
    return parts[0];
}

void issue_row_reduction(Core &core, const RowReduction &op, const TileRef &dst, const TileRef &src,
                         const TileRef &tmp);
// The way of integers, and of products: block by block, row by row, the last block on the scalar unit.
void issue_blockwise_reduction(Core &core, Instr fold, const TileRef &dst, const TileRef &src,
                               const TileRef &tmp);
void check_row_reduction(Core &core, const char *name, const TileRef &dst, const TileRef &src);

template <class Fold>
void row_reduction(Core &core, const Operands &operands, const RowReduction &op, Fold fold) {
    const TileRef &dst = operands[0].tile, &src = operands[1].tile, &tmp = operands[2].tile;
    check_row_reduction(core, op.name, dst, src);
    if (is_empty(src)) return;
    bool real = src.type == Type::F32 || src.type == Type::F16;
    bool by_block = folds_by_block(dst, src);
    if (core.computes)
        with_type_of(core, op.name, src.type, Numbers{}, [&](auto tag) {
            using T = decltype(tag);
            View<T> to(core, dst, src.valid_rows, 1), from(core, src, src.valid_rows, src.valid_cols);
            int lanes = kRepeatBytes / int(sizeof(T));
            std::vector<T> parts(static_cast<size_t>(std::max(src.cols, lanes)));
            for (int r = 0; r < src.valid_rows; ++r) {
                const T *row = from.data + int64_t(r) * src.cols;
                if constexpr (std::is_same_v<T, float>) // no other type does so
                    if (by_block) {
                        to.at(r, 0) = fold_row_by_block(row, src.cols, fold, parts.data());
                        continue;
                    }
                to.at(r, 0) = fold_row(row, src.valid_cols, lanes, fold, parts.data());
            }
        });
    if (real)
        issue_row_reduction(core, op, dst, src, tmp);
    else
        issue_blockwise_reduction(core, op.fold, dst, src, tmp);
}

} // namespace insight_trace::engine
