// Elements of four bits in a tile, one by one.
#pragma once

#include "elements.hpp"

namespace insight_trace::engine {

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
