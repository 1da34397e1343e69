// A table in global memory that MGATHER reads and MSCATTER writes: by row or by element.
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

    Table(const Core &core, const char *op, const GlobalRef &g) : global(g), size(type_size(g.type)) {
        if (g.layout != kLayoutND && g.layout != kLayoutNZ)
            core.unsupported("%s of a table that is neither ND nor NZ", op);
        if (size > 4) core.unsupported("%s of %s elements", op, type_name(g.type));
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

inline void check_index_tile(const Core &core, const char *op, const TileRef &idx) {
    if (idx.type != Type::I32 && idx.type != Type::U32)
        core.unsupported("%s by %s indices", op, type_name(idx.type));
    need_plain_rows(core, op, idx, "index tile");
}

inline void check_table_tile(const Core &core, const char *op, const Table &table, const TileRef &tile) {
    if (tile.type != table.global.type)
        core.kernel_error("%s: a %s table and a %s tile", op, type_name(table.global.type),
                          type_name(tile.type));
    bool plain = tile.row_major && tile.inner == 0,
         nz = !tile.row_major && tile.inner == 1 && tile.fractal == 512;
    if (table.boxed ? !nz : !plain) core.unsupported("%s between tables and tiles of different layouts", op);
    if (table.rows <= 0 || table.cols <= 0) core.kernel_error("%s: the table is empty", op);
}

} // namespace insight_trace::engine
