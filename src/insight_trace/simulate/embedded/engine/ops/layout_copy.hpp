// Copies between layouts, in runs of memory that are contiguous on both sides.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "elements.hpp"

namespace insight_trace::engine {

// Along which direction neighbouring elements lie side by side, and for how long.
struct RunShape {
    bool along_rows; // true: (r, c) and (r + 1, c) are neighbours
    int64_t length;  // elements before the run breaks; aligned to multiples of it
};

inline RunShape run_shape(const TileRef &t) {
    if (t.inner == 0) return t.row_major ? RunShape{false, t.cols} : RunShape{true, t.rows};
    return t.inner == 1 ? RunShape{false, inner_cols(t)} : RunShape{true, inner_rows(t)};
}

// A copy of a size that the compiler knows is an instruction, not a call.
inline void copy_element(uint8_t *to, const uint8_t *from, int size) {
    switch (size) {
    case 1:
        *to = *from;
        break;
    case 2:
        memcpy(to, from, 2);
        break;
    case 4:
        memcpy(to, from, 4);
        break;
    default:
        memcpy(to, from, static_cast<size_t>(size));
    }
}

// Most runs are a block of 32 bytes. The two may overlap.
inline void move_run(uint8_t *to, const uint8_t *from, int64_t bytes) {
    if (bytes != 32) {
        memmove(to, from, static_cast<size_t>(bytes));
        return;
    }
    uint8_t block[32];
    memcpy(block, from, sizeof block);
    memcpy(to, block, sizeof block);
}

struct ColumnPlaces {
    int64_t to, from; // bytes
};

template <class T>
void copy_elements(uint8_t *to, const uint8_t *from, const std::vector<ColumnPlaces> &columns) {
    for (const ColumnPlaces &column : columns) memcpy(to + column.to, from + column.from, sizeof(T));
}

// dst(r, c) = src(row + r, col + c) for r < rows, c < cols; same element size, bytes as they are. `dst` lies
// in the memory of `owner`.
inline void copy_tile(Core &owner, const TileRef &dst, Core &core, const TileRef &src, int64_t row,
                      int64_t col, int64_t rows, int64_t cols) {
    int size = type_size(dst.type);
    auto bytes = [size](const TileRef &t) { return uint64_t(tile_extent(t)) * uint64_t(size); };
    uint8_t *to = owner.local(dst.space, dst.address, bytes(dst));
    const uint8_t *from = core.local(src.space, src.address, bytes(src));
    RunShape a = run_shape(dst), b = run_shape(src);
    const TileOrder into(dst), out_of(src);
    if (a.along_rows != b.along_rows) {
        // where columns lie is the same in every row
        std::vector<ColumnPlaces> columns(static_cast<size_t>(std::max<int64_t>(cols, 0)));
        for (int64_t c = 0; c < cols; ++c)
            columns[size_t(c)] = {into.col(c) * size, out_of.col(col + c) * size};
        for (int64_t r = 0; r < rows; ++r)
            with_bits(dst.type, [&](auto tag) {
                copy_elements<decltype(tag)>(to + into.row(r) * size, from + out_of.row(row + r) * size,
                                             columns);
            });
        return;
    }
    int64_t lines = a.along_rows ? cols : rows, extent = a.along_rows ? rows : cols;
    int64_t base = a.along_rows ? row : col;
    for (int64_t line = 0; line < lines; ++line)
        for (int64_t i = 0; i < extent;) {
            int64_t run = std::min({extent - i, a.length - i % a.length, b.length - (base + i) % b.length});
            const int64_t dst_at = a.along_rows ? into.row(i) + into.col(line) : into.row(line) + into.col(i);
            const int64_t src_at = a.along_rows ? out_of.row(row + i) + out_of.col(col + line)
                                                : out_of.row(row + line) + out_of.col(col + i);
            move_run(to + dst_at * size, from + src_at * size, run * size);
            i += run;
        }
}

// TLOAD of an image whose channels become blocks; operands as pto/common/forms/convolution.hpp packs them.
void load_channels(Core &core, const Operands &operands);

} // namespace insight_trace::engine
