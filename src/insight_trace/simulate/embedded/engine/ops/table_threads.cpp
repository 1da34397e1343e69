// MGATHER and MSCATTER on the 950: one thread for every element, tiles in rows or in columns.
#include "ops/table_threads.hpp"

#include <cstring>

namespace insight_trace::engine {

namespace {

// An index tile as threads read it: by row number, or at the place of an element.
class Indices {
  public:
    Indices(Core &core, const char *op, const TileRef &tile) : view_(core, tile) {
        if (tile.type != Type::I32 && tile.type != Type::U32)
            core.unsupported("%s by %s indices", op, type_name(tile.type));
        if (tile.inner) core.unsupported("%s by indices in boxes", op);
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
    if (job.tile.inner) core.unsupported("%s of a tile in boxes", job.op);
    if (job.table.boxed) core.unsupported("%s of a table in boxes", job.op);
    if (job.tile.type != job.table.global.type)
        core.kernel_error("%s: a %s table and a %s tile", job.op, type_name(job.table.global.type),
                          type_name(job.tile.type));
    const Indices indices(core, job.op, job.idx);
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
                     Beyond beyond, const std::function<void(int64_t, int64_t, uint64_t)> &put) {
    for_elements(core, {"MSCATTER", src, table, idx, by_row, beyond}, [&](int64_t r, int64_t c, uint64_t to) {
        if (to) put(r, c, to);
    });
}

} // namespace insight_trace::engine
