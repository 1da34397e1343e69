// Tables in global memory: the DMA's rows of MGATHER and MSCATTER, and threads of the 950.
#pragma once

#include "ops/steps.hpp"

namespace insight_trace::engine {

constexpr int64_t kByRow = 0; // pto::Coalesce
constexpr uint8_t kLayoutND = 0, kLayoutNZ = 2;

struct Table {
    const GlobalRef &global;
    int size;           // bytes of an element
    bool boxed;         // NZ: boxes of 16 rows by 32 bytes
    int64_t rows, cols; // logical

    Table(const Core &core, const GlobalRef &g) : global(g), size(type_size(g.type)) {
        if (g.layout != kLayoutND && g.layout != kLayoutNZ)
            core.unsupported("%s of a table that is neither ND nor NZ", core.op);
        if (size > 4) core.unsupported("%s of %s elements", core.op, type_name(g.type));
        boxed = g.layout == kLayoutNZ;
        rows = boxed ? g.shape[2] * 16 : g.shape[0] * g.shape[1] * g.shape[2] * g.shape[3];
        cols = boxed ? g.shape[0] * g.shape[1] * (kBlockBytes / size) : g.shape[4];
    }
    // Address of an element. Rows of a plain table are `stride[3]` apart, its elements by number follow each
    // other.
    uint64_t at(int64_t row, int64_t col) const {
        if (!boxed) return global.address + uint64_t((row * global.stride[3] + col) * size);
        int64_t c0 = kBlockBytes / size, box = col / c0;
        int64_t outer = global.shape[0] == 1 ? 0 : box / global.shape[1];
        int64_t offset = outer * global.stride[0] + (box - outer * global.shape[1]) * global.stride[1] +
                         row / 16 * global.stride[2] + row % 16 * global.stride[3] +
                         col % c0 * global.stride[4];
        return global.address + uint64_t(offset * size);
    }
    uint64_t at(int64_t number) const {
        return boxed ? at(number / cols, number % cols) : global.address + uint64_t(number * size);
    }
    int64_t elements() const { return rows * cols; }
};

// What becomes of an index beyond the table. The two ops number the ways differently.
enum class Beyond { Undefined, Clamp, Wrap, Leave };

struct Place {
    int64_t index;
    bool inside;
};

inline uint32_t load_index(Core &core, const TileRef &idx, int64_t number) {
    return static_cast<uint32_t>(scalar_load(core, element_address(idx, number), 4));
}

inline Place placed(uint32_t index, int64_t count, Beyond beyond) {
    switch (beyond) {
    case Beyond::Clamp:
        return {std::min<int64_t>(index, count - 1), true};
    case Beyond::Wrap:
        return {int64_t(index) % count, true};
    case Beyond::Leave:
        return {index, index < count};
    default:
        return {index, true};
    }
}

// A row of one outer dimension of a table in boxes, as it lies in the tile.
inline Area box_row(const TileRef &tile, int64_t row, int64_t first, const Table &table) {
    const int64_t cols = table.global.shape[1] * (kBlockBytes / table.size);
    return named_at(element_address(tile, tile_offset(tile, row, first)),
                    part_of(tile, row, first, 1, std::min<int64_t>(cols, tile.cols - first)));
}

inline void check_index_tile(const Core &core, const TileRef &idx) {
    if (idx.type != Type::I32 && idx.type != Type::U32)
        core.unsupported("%s by %s indices", core.op, type_name(idx.type));
    need_plain_rows(core, idx, "index tile");
}

inline void check_table_tile(const Core &core, const Table &table, const TileRef &tile) {
    if (tile.type != table.global.type)
        core.kernel_error("%s: a %s table and a %s tile", core.op, type_name(table.global.type),
                          type_name(tile.type));
    bool plain = tile.row_major && tile.inner == 0,
         nz = !tile.row_major && tile.inner == 1 && tile.fractal == 512;
    if (table.boxed ? !nz : !plain)
        core.unsupported("%s between tables and tiles of different layouts", core.op);
    if (table.rows <= 0 || table.cols <= 0) core.kernel_error("%s: the table is empty", core.op);
}

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
