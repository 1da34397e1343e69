// MGATHER and MSCATTER as threads of the 950 do them.
#pragma once

#include <functional>

#include "ops/table.hpp"

namespace insight_trace::engine {

void gather_threads(Core &core, const TileRef &dst, const Table &table, const TileRef &idx, bool by_row,
                    Beyond beyond);
// `put(row, col, address)` writes one element; of several at one place the last stays.
void scatter_threads(Core &core, const Table &table, const TileRef &src, const TileRef &idx, bool by_row,
                     Beyond beyond, const std::function<void(int64_t, int64_t, uint64_t)> &put);

} // namespace insight_trace::engine
