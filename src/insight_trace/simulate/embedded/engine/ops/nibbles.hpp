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

// One element of a tile; boxes are 32 bytes wide along their pairs.
class Nibbles {
  public:
    Nibbles(Core &core, const TileRef &tile)
        : tile_(tile),
          data_(core.local(tile.space, tile.address, uint64_t(tile.rows) * uint64_t(tile.cols) / 2)) {}
    uint8_t get(int64_t r, int64_t c) const {
        const int64_t at = place(r, c);
        return uint8_t(data_[at / 2] >> (at % 2 * 4) & 15);
    }
    void set(int64_t r, int64_t c, uint8_t bits) {
        const int64_t at = place(r, c);
        const int shift = int(at % 2 * 4);
        data_[at / 2] = uint8_t((data_[at / 2] & ~(15 << shift)) | bits << shift);
    }

  private:
    int64_t place(int64_t r, int64_t c) const {
        if (tile_.inner == 0) return tile_.row_major ? r * tile_.cols + c : c * tile_.rows + r;
        const bool rows_inside = tile_.inner == 1;
        const int64_t ir = rows_inside ? 16 : 64, ic = rows_inside ? 64 : 16, box = ir * ic;
        const int64_t br = r / ir, bc = c / ic;
        const int64_t outer =
            tile_.row_major ? br * tile_.cols * ir + bc * box : bc * tile_.rows * ic + br * box;
        return outer + (rows_inside ? r % ir * ic + c % ic : c % ic * ir + r % ir);
    }
    TileRef tile_;
    uint8_t *data_;
};

} // namespace insight_trace::engine
