// MGATHER and MSCATTER on the 950: one thread for every element, tiles in rows or in columns.
#include <cstring>

#include "isa/tables.hpp"

namespace insight_trace::engine {

namespace {

void combine(Core &core, const TileRef &src, int64_t row, int64_t col, uint64_t to, int64_t how) {
    with_type(src.type, [&](auto tag) {
        using T = decltype(tag);
        T value = View<T>(core, src, row + 1, col + 1).at(row, col), held;
        uint8_t *place = core.global(to, sizeof(T));
        std::memcpy(static_cast<void *>(&held), place, sizeof(T));
        Wide<T> a = Wide<T>(held), b = Wide<T>(value);
        if (how == Add)
            value = T(wrap_add(a, b));
        else if (how == Largest)
            value = T(larger(a, b));
        else if (how == Smallest)
            value = T(smaller(a, b));
        std::memcpy(place, static_cast<const void *>(&value), sizeof(T));
    });
}

// An index tile as threads read it: by row number, or at the place of an element.
class Indices {
  public:
    Indices(Core &core, const TileRef &tile) : view_(core, tile) {
        if (tile.type != Type::I32 && tile.type != Type::U32)
            core.unsupported("%s by %s indices", core.op, type_name(tile.type));
        if (tile.inner) core.unsupported("%s by indices in boxes", core.op);
    }
    uint32_t of_row(int64_t row) const { return view_.data[row]; }
    uint32_t of_element(int64_t row, int64_t col) const { return view_.at(row, col); }

  private:
    View<uint32_t> view_;
};

struct Job {
    const char *op;
    const TileRef &tile;
    const Table &table;
    const TileRef &idx;
    bool by_row;
    Beyond beyond;
};

// Calls body(row, col, address) for every element in order; address 0: the index is beyond the table.
template <class Body> void for_elements(Core &core, const Job &job, Body body) {
    if (job.tile.inner) core.unsupported("%s of a tile in boxes", core.op);
    if (job.table.boxed) core.unsupported("%s of a table in boxes", core.op);
    if (job.tile.type != job.table.global.type)
        core.kernel_error("%s: a %s table and a %s tile", core.op, type_name(job.table.global.type),
                          type_name(job.tile.type));
    const Indices indices(core, job.idx);
    const int64_t cols = job.tile.valid_cols;
    const int64_t count = job.by_row ? job.table.global.shape[3] : job.table.elements();
    for (int64_t r = 0; core.computes && r < job.tile.valid_rows; ++r)
        for (int64_t c = 0; c < cols; ++c) {
            const Place place =
                placed(job.by_row ? indices.of_row(r) : indices.of_element(r, c), count, job.beyond);
            // rows of the table are as long as the tile's
            const int64_t number = job.by_row ? place.index * cols + c : place.index;
            body(r, c, place.inside ? job.table.global.address + uint64_t(number * job.table.size) : 0);
        }
    const int64_t bytes = int64_t(job.tile.valid_rows) * cols * job.table.size;
    core.move(Instr::MOV_UB_TO_UB, job.tile.type, job.tile.address, job.idx.address, job.tile.valid_rows,
              bytes);
}

uint8_t *element(Core &core, const TileRef &tile, int64_t row, int64_t col, int size) {
    return core.local(tile.space, tile.address + uint64_t(tile_offset(tile, row, col) * size),
                      uint64_t(size));
}

} // namespace

void gather_threads(Core &core, const TileRef &dst, const Table &table, const TileRef &idx, bool by_row,
                    Beyond beyond) {
    for_elements(core, {"MGATHER", dst, table, idx, by_row, beyond},
                 [&](int64_t r, int64_t c, uint64_t from) {
                     uint8_t *to = element(core, dst, r, c, table.size);
                     if (from)
                         memcpy(to, core.global(from, uint64_t(table.size), kReads), size_t(table.size));
                     else
                         memset(to, 0, size_t(table.size));
                 });
}

void scatter_threads(Core &core, const Table &table, const TileRef &src, const TileRef &idx, bool by_row,
                     Beyond beyond, int64_t how) {
    for_elements(core, {"MSCATTER", src, table, idx, by_row, beyond}, [&](int64_t r, int64_t c, uint64_t to) {
        if (to) combine(core, src, r, c, to, how);
    });
}

void copy_row_of_table(Core &core, const TileRef &dst, int64_t row, const Table &table, int64_t index,
                       int64_t cols) {
    if (!core.computes) return;
    for (int64_t c = 0; c < cols; ++c)
        memcpy(element(core, dst, row, c, table.size),
               core.global(table.at(index, c), uint64_t(table.size), kReads), size_t(table.size));
}

void store_row_of_table(Core &core, const TileRef &src, int64_t row, const Table &table, int64_t index,
                        int64_t cols, int64_t how) {
    if (!core.computes) return;
    for (int64_t c = 0; c < cols; ++c) combine(core, src, row, c, table.at(index, c), how);
}

} // namespace insight_trace::engine
