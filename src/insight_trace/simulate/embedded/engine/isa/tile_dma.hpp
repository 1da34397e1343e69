// What the DMA units do to the bytes of a tile: lines of global memory in and out, boxes, padding.
#pragma once

#include "core.hpp"

namespace insight_trace::engine {

// One piece of a transfer: `count` lines of `length` elements that are contiguous in GM.
struct DmaPiece {
    uint64_t gm;         // first line
    int64_t count;       // lines
    int64_t length;      // elements per line
    int64_t step;        // elements between lines in GM
    int64_t line, along; // where the first element lies in the tile: line index, position in the line
    int64_t shift = 0;   // elements by which every next line of the piece lies further on in the tile
};

// Before a load into the unified buffer: a loop that loads the same bytes again and again, and looks at them,
// waits for another core, which has to run meanwhile.
void let_others_write(Core &core, uint64_t gm, uint64_t local, uint64_t bytes);
// Line by line, in the runs that the tile's layout allows; `lines_are_columns` of the tile.
void load_piece(Core &core, const TileRef &tile, const DmaPiece &piece, bool lines_are_columns);
void store_piece(Core &core, const TileRef &tile, const DmaPiece &piece, bool lines_are_columns, bool adds);
// Elements past the last valid one of each row, up to the 32-byte boundary, get the tile's pad value.
void pad_lines(Core &core, const TileRef &tile);
// The tail of the last C0 block of each loaded row is zeroed by the ND -> NZ unit.
void zero_box_tails(Core &core, const TileRef &tile, int64_t lines, int64_t length, bool lines_are_columns);
// Columns of boxes of one outer dimension of a tensor in NZ order, `step` elements apart; dense: their rows
// follow each other in global memory, whatever the tensor's strides.
void dma_box_columns(Core &core, bool store, const TileRef &tile, const GlobalRef &g, int64_t outer,
                     int64_t rows, int64_t step, bool dense);
// `bytes` between a place in global memory and one on chip.
void dma_bytes(Core &core, bool store, uint64_t gm, Space space, uint64_t local, int64_t bytes);

// --- loads whose elements are put in boxes of 32 bytes on their way (dma_boxes.cpp)
// pto::Layout
enum Layout : uint8_t {
    ND = 0,
    DN = 1,
    NZ = 2,
    MX_A_ND = 4,
    MX_A_DN = 5,
    MX_A_ZZ = 6,
    MX_B_ND = 7,
    MX_B_DN = 8,
    MX_B_NN = 9
};

// Scales of narrow floats that lie in GM in the boxes that the tile has: 16 lines by a pair of groups.
void load_scales(Core &core, const TileRef &tile, const GlobalRef &g);
// The same in pairs along k.
void load_scale_pairs(Core &core, const TileRef &tile, const GlobalRef &g);
// An image whose channels become blocks; operands as pto/common/forms/convolution.hpp packs them.
void load_channels(Core &core, const Operands &operands);

} // namespace insight_trace::engine
