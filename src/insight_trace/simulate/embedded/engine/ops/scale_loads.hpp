// Loads whose elements are put in boxes of 32 bytes on their way (isa/dma_boxes.cpp).
#pragma once

#include "core.hpp"

namespace insight_trace::engine {

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
