// MSCATTER: a tile's rows or elements into a table in global memory.
#include "isa/tables.hpp"

namespace insight_trace::engine {
namespace {

Beyond scatter_beyond(int64_t option) { // pto::ScatterOOB: Undefined, Skip, Clamp, Wrap
    static const Beyond ways[] = {Beyond::Undefined, Beyond::Leave, Beyond::Clamp, Beyond::Wrap};
    return ways[option & 3];
}

void scatter_rows(Core &core, const Table &table, const TileRef &src, const TileRef &idx, int64_t how,
                  Beyond beyond) {
    int64_t cols = table.boxed ? table.cols : src.valid_cols;
    if (cols > src.cols || idx.rows * idx.cols < src.valid_rows)
        core.kernel_error("MSCATTER: rows of %lld by %d indices from a tile of %d x %d", (long long)cols,
                          idx.rows * idx.cols, src.rows, src.cols);
    handshake(core, PipeId::V, PipeId::S);
    handshake(core, PipeId::MTE2, PipeId::S);
    if (how != Replace) { // the store unit's atomic type, then its operation
        core.set_register(PipeId::S, uint64_t(src.type));
        core.set_register(PipeId::S, uint64_t(how));
    }
    handshake(core, PipeId::S, PipeId::MTE3);
    for (int r = 0; r < src.valid_rows; ++r) {
        Place place = placed(load_index(core, idx, r), table.rows, beyond);
        if (!place.inside) continue;
        store_row_of_table(core, src, r, table, place.index, cols, how);
        if (!table.boxed)
            core.transfer(Instr::MOV_UB_TO_OUT_ALIGN, src.type, table.at(place.index, 0),
                          element_address(src, int64_t(r) * src.cols), 1, cols * table.size, 0);
        else
            for (int64_t i = 0; i < table.global.shape[0]; ++i) {
                int64_t first = i * table.global.shape[1] * (kBlockBytes / table.size);
                core.transfer(Instr::MOV_UB_TO_OUT_ALIGN, src.type, table.at(place.index, first),
                              box_row(src, r, first, table), table.global.shape[1], kBlockBytes,
                              table.global.stride[1] * table.size);
            }
        if (how == Replace) handshake(core, PipeId::MTE3, PipeId::S); // rows land in their order
    }
    if (how != Replace) {
        handshake(core, PipeId::MTE3, PipeId::S);
        core.set_register(PipeId::S, 0);
        handshake(core, PipeId::S, PipeId::V);
        handshake(core, PipeId::S, PipeId::MTE2);
    }
    handshake(core, PipeId::MTE3, PipeId::V);
    handshake(core, PipeId::MTE3, PipeId::MTE2);
}

void scatter_elements(Core &core, const Table &table, const TileRef &src, const TileRef &idx, int64_t how,
                      Beyond beyond) {
    if (idx.rows < src.valid_rows || idx.cols < src.valid_cols)
        core.kernel_error("MSCATTER: %d x %d indices for %d x %d elements", idx.rows, idx.cols,
                          src.valid_rows, src.valid_cols);
    handshake(core, PipeId::V, PipeId::S);
    handshake(core, PipeId::MTE2, PipeId::S);
    handshake(core, PipeId::MTE3, PipeId::S);
    auto put = [&](int r, int c) {
        int64_t number = int64_t(r) * idx.cols + c;
        Place place = placed(load_index(core, idx, number), table.elements(), beyond);
        if (!place.inside) return;
        const uint64_t to = table.at(place.index);
        uint64_t value = scalar_load(core, element_address(src, tile_offset(src, r, c)), table.size);
        if (how != Replace) {
            const Instr fold = how == Add ? Instr::VADD : how == Largest ? Instr::VMAX : Instr::VMIN;
            const uint64_t held = scalar_load(core, to, table.size, Space::GM);
            value = scalar_result(core, fold, src.type, held, value);
        }
        scalar_store(core, to, value, table.size, Space::GM);
    };
    // a tile in boxes goes column of boxes by column of boxes, so the last writer of a place differs
    int step = table.boxed ? kBlockBytes / table.size : src.valid_cols;
    for (int first = 0; first < src.valid_cols; first += step)
        for (int r = 0; r < src.valid_rows; ++r)
            for (int c = first; c < std::min(first + step, src.valid_cols); ++c) put(r, c);
    handshake(core, PipeId::S, PipeId::V);
    handshake(core, PipeId::S, PipeId::MTE2);
    handshake(core, PipeId::S, PipeId::MTE3);
}

} // namespace

// (table, src, indices, coalesce, combine, beyond)
TILE_OP_BODY(MSCATTER) {
    Table table(core, "MSCATTER", operands[0].global);
    const TileRef &src = operands[1].tile, &idx = operands[2].tile;
    int64_t mode = operands[3].option, how = operands[4].option;
    Beyond beyond = scatter_beyond(operands[5].option);
    if (core.register_based() && !table.boxed)
        return scatter_threads(core, table, src, idx, mode == kByRow, beyond, how);
    check_index_tile(core, "MSCATTER", idx);
    check_table_tile(core, "MSCATTER", table, src);
    if (how == Add)
        allow_types(core, "MSCATTER with addition", src.type,
                    {Type::F32, Type::I32, Type::F16, Type::BF16, Type::I16, Type::I8, Type::U32});
    if (is_empty(src)) return;
    if (mode == kByRow)
        scatter_rows(core, table, src, idx, how, beyond);
    else
        scatter_elements(core, table, src, idx, how, beyond);
}

} // namespace insight_trace::engine
