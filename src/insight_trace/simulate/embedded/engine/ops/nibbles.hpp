// Floats of four bits: two in a byte, the first in the low half. Tiles and tensors count them one by one.
#pragma once

#include "elements.hpp"

namespace insight_trace::engine {

inline bool is_nibble(Type type) { return type == Type::F4E2M1 || type == Type::F4E1M2; }

// The same tile in bytes: pairs lie along its rows, or along its columns where columns are contiguous. A last
// element without a partner has a byte of its own.
inline bool pairs_along_columns(const TileRef &tile) {
    return tile.inner == 2 || (tile.inner == 0 && !tile.row_major);
}
inline TileRef as_bytes(Core &core, const TileRef &tile) {
    const bool down = pairs_along_columns(tile);
    if ((down ? tile.rows : tile.cols) % 2) core.unsupported("a tile of 4-bit floats of odd width");
    TileRef bytes = tile;
    bytes.type = Type::U8;
    (down ? bytes.rows : bytes.cols) /= 2;
    int32_t &valid = down ? bytes.valid_rows : bytes.valid_cols;
    valid = (valid + 1) / 2;
    return bytes;
}

inline GlobalRef as_bytes(const GlobalRef &g) {
    GlobalRef bytes = g;
    bytes.type = Type::U8;
    const int along = g.layout == 1 ? 3 : 4; // DN: pairs lie along the columns
    bytes.shape[along] = (bytes.shape[along] + 1) / 2;
    for (int i = 0; i < 5; ++i)
        if (i != along) bytes.stride[i] /= 2;
    return bytes;
}

} // namespace insight_trace::engine
