// The cube unit's products of tiles that lie in L0A and L0B in boxes.
#pragma once

#include "core.hpp"

namespace insight_trace::engine {

// The unit multiplies elements of these types into an accumulator of that one.
bool has_products(const Core &core, Type a, Type b, Type c);
// c = a x b, or with `added` (an accumulator, or one row for all) plus that.
void multiply_tiles(Core &core, const TileRef &c, const TileRef *added, bool added_is_row, const TileRef &a,
                    const TileRef &b);
// The same of integers of four bits: a and b are tiles of bytes, each with two of them along k.
void multiply_half_bytes(Core &core, const TileRef &c, const TileRef *added, bool added_is_row,
                         const TileRef &a, const TileRef &b);
// The same of bytes, where `b` has two of four elements along k, and at `choices` in ScaleRight which ones.
void multiply_sparse(Core &core, const TileRef &c, const TileRef *added, bool added_is_row, const TileRef &a,
                     const TileRef &b, uint64_t choices);
// Narrow floats with one power of two for every 32 of them along k.
bool has_scaled_products(Type type);
void multiply_scaled_tiles(Core &core, const TileRef &c, const TileRef *added, bool added_is_row,
                           const TileRef &a, const TileRef &a_scale, const TileRef &b,
                           const TileRef &b_scale);

} // namespace insight_trace::engine
