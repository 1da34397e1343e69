// Tables in global memory: the DMA's rows of MGATHER and MSCATTER, and threads of the 950.
#pragma once

#include "ops/table.hpp"

namespace insight_trace::engine {

enum Combine : int64_t { Replace, Add, Largest, Smallest }; // pto::ScatterAtomicOp

// One row between a table and a tile; the store unit combines as it was told.
void copy_row_of_table(Core &core, const TileRef &dst, int64_t row, const Table &table, int64_t index,
                       int64_t cols);
void store_row_of_table(Core &core, const TileRef &src, int64_t row, const Table &table, int64_t index,
                        int64_t cols, int64_t how);

// Composites: one thread for every element.
void gather_threads(Core &core, const TileRef &dst, const Table &table, const TileRef &idx, bool by_row,
                    Beyond beyond);
void scatter_threads(Core &core, const Table &table, const TileRef &src, const TileRef &idx, bool by_row,
                     Beyond beyond, int64_t how);

} // namespace insight_trace::engine
