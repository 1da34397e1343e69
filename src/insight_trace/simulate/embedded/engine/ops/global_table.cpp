// MGATHER and MSCATTER: rows or elements of a table in global memory into a tile, and back.
#include "isa/tables.hpp"
#include "isa/tile_dma.hpp"

namespace insight_trace::engine {
namespace {

Beyond gather_beyond(int64_t option) { // pto::GatherOOB: Undefined, Clamp, Wrap, Zero
    static const Beyond ways[] = {Beyond::Undefined, Beyond::Clamp, Beyond::Wrap, Beyond::Leave};
    return ways[option & 3];
}

// The scalar unit waits for other pipes, and they for it.
void wait_for(Core &core, std::initializer_list<PipeId> pipes) {
    for (PipeId pipe : pipes) handshake(core, pipe, PipeId::S);
}
void release(Core &core, std::initializer_list<PipeId> pipes) {
    for (PipeId pipe : pipes) handshake(core, PipeId::S, pipe);
}

// The transfers of one row of a table from or to a tile: one, or one for each outer dimension of it when the
// table is in boxes.
void transfer_row(Core &core, Instr instr, const TileRef &tile, int row, const Table &table, int64_t index,
                  int64_t cols) {
    if (!table.boxed)
        return core.transfer(instr, tile.type, table.at(index, 0), address_of(tile, row), 1,
                             cols * table.size, 0);
    for (int64_t i = 0; i < table.global.shape[0]; ++i) {
        const int64_t first = i * table.global.shape[1] * (kBlockBytes / table.size);
        core.transfer(instr, tile.type, table.at(index, first), box_row(tile, row, first, table),
                      table.global.shape[1], kBlockBytes, table.global.stride[1] * table.size);
    }
}

// One transfer for each row, or for each outer dimension of it when the table is in boxes.
void gather_rows(Core &core, const TileRef &dst, const Table &table, const TileRef &idx, Beyond beyond) {
    int64_t cols = table.boxed ? table.cols : dst.valid_cols;
    if (cols > dst.cols || idx.rows * idx.cols < dst.valid_rows)
        core.kernel_error("MGATHER: rows of %lld by %d indices into a tile of %d x %d", (long long)cols,
                          idx.rows * idx.cols, dst.rows, dst.cols);
    wait_for(core, {PipeId::V, PipeId::MTE3});
    if (table.boxed && beyond == Beyond::Leave)
        for (int64_t i = 0; i < int64_t(dst.rows) * dst.cols; ++i)
            scalar_store(core, element_address(dst, i), 0, table.size);
    for (int r = 0; r < dst.valid_rows; ++r) {
        Place place = placed(load_index(core, idx, r), table.rows, beyond);
        if (!place.inside) {
            for (int c = 0; !table.boxed && c < dst.valid_cols; ++c)
                scalar_store(core, element_address(dst, tile_offset(dst, r, c)), 0, table.size);
            continue;
        }
        copy_row_of_table(core, dst, r, table, place.index, cols);
        transfer_row(core, Instr::MOV_OUT_TO_UB_ALIGN, dst, r, table, place.index, cols);
    }
    handshake(core, PipeId::S, PipeId::MTE2);
    handshake(core, PipeId::MTE2, PipeId::V);
    handshake(core, PipeId::MTE2, PipeId::MTE3);
    release(core, {PipeId::V, PipeId::MTE3});
}

void gather_elements(Core &core, const TileRef &dst, const Table &table, const TileRef &idx, Beyond beyond) {
    need_room(core, idx, "index tile", dst.valid_rows, dst.valid_cols);
    wait_for(core, {PipeId::V, PipeId::MTE3, PipeId::MTE2});
    for (int r = 0; r < dst.valid_rows; ++r)
        for (int c = 0; c < dst.valid_cols; ++c) {
            int64_t number = int64_t(r) * idx.cols + c;
            Place place = placed(load_index(core, idx, number), table.elements(), beyond);
            const uint64_t value =
                place.inside ? scalar_load(core, table.at(place.index), table.size, Space::GM) : 0;
            scalar_store(core, element_address(dst, tile_offset(dst, r, c)), value, table.size);
        }
    release(core, {PipeId::V, PipeId::MTE2, PipeId::MTE3});
}

uint32_t index_in_gm(Core &core, const GlobalRef &idx, int64_t number) {
    return static_cast<uint32_t>(scalar_load(core, idx.address + uint64_t(number) * 4, 4, Space::GM));
}

// Into a matrix tile in L1, by indices in global memory: row by row.
void gather_rows_to_matrix(Core &core, const TileRef &dst, const Table &table, const GlobalRef &idx,
                           Beyond beyond) {
    int64_t bytes = int64_t(dst.rows) * dst.cols * table.size;
    if (beyond == Beyond::Leave)
        fill_matrix(core, dst.type, dst.address, 1, bytes, 0, 0, dst.cols * table.size / kBlockBytes);
    for (int r = 0; r < dst.valid_rows; ++r) {
        Place place = placed(index_in_gm(core, idx, r), table.rows, beyond);
        if (!place.inside) continue;
        copy_row_of_table(core, dst, r, table, place.index, dst.valid_cols);
        core.transfer(
            Instr::MOV_OUT_TO_L1_MULTI_ND2NZ, dst.type, table.at(place.index, 0),
            named_at(element_address(dst, tile_offset(dst, r, 0)), part_of(dst, r, 0, 1, dst.valid_cols)), 1,
            int64_t(dst.valid_cols) * table.size, table.global.stride[3] * table.size);
    }
    handshake(core, PipeId::S, PipeId::MTE2);
}

// The same by element: put together in a scratch buffer of global memory, then moved as a whole.
void gather_elements_to_matrix(Core &core, const TileRef &dst, const Table &table, const GlobalRef &idx,
                               const GlobalRef &scratch, Beyond beyond) {
    int64_t count = int64_t(dst.rows) * dst.cols, bytes = count * table.size;
    for (int64_t i = 0; i < count; ++i)
        scalar_store(core, scratch.address + uint64_t(i * table.size), 0, table.size, Space::GM);
    for (int r = 0; r < dst.valid_rows; ++r)
        for (int c = 0; c < dst.valid_cols; ++c) {
            Place place = placed(index_in_gm(core, idx, r * idx.stride[3] + c), table.elements(), beyond);
            if (!place.inside) continue;
            int64_t offset = tile_offset(dst, r, c) * table.size;
            const uint64_t value = scalar_load(core, table.at(place.index), table.size, Space::GM);
            scalar_store(core, scratch.address + uint64_t(offset), value, table.size, Space::GM);
        }
    int64_t cost = core.parameters.scalar_dcci;
    for (int64_t line = 0; line < bytes; line += 64)
        core.scalar(Instr::DCCI, scratch.address + uint64_t(line), cost);
    core.scalar(Instr::DSB, 1, core.parameters.scalar_dsb);
    handshake(core, PipeId::S, PipeId::MTE2);
    dma_bytes(core, false, scratch.address, dst.space, dst.address, bytes);
    core.transfer(Instr::MOV_OUT_TO_L1, dst.type, scratch.address, dst.address, 1, bytes, 0);
}

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
    wait_for(core, {PipeId::V, PipeId::MTE2});
    if (how != Replace) { // the store unit's atomic type, then its operation
        core.set_register(PipeId::S, uint64_t(src.type));
        core.set_register(PipeId::S, uint64_t(how));
    }
    handshake(core, PipeId::S, PipeId::MTE3);
    for (int r = 0; r < src.valid_rows; ++r) {
        Place place = placed(load_index(core, idx, r), table.rows, beyond);
        if (!place.inside) continue;
        store_row_of_table(core, src, r, table, place.index, cols, how);
        transfer_row(core, Instr::MOV_UB_TO_OUT_ALIGN, src, r, table, place.index, cols);
        if (how == Replace) handshake(core, PipeId::MTE3, PipeId::S); // rows land in their order
    }
    if (how != Replace) {
        handshake(core, PipeId::MTE3, PipeId::S);
        core.set_register(PipeId::S, 0);
        release(core, {PipeId::V, PipeId::MTE2});
    }
    handshake(core, PipeId::MTE3, PipeId::V);
    handshake(core, PipeId::MTE3, PipeId::MTE2);
}

void scatter_elements(Core &core, const Table &table, const TileRef &src, const TileRef &idx, int64_t how,
                      Beyond beyond) {
    need_room(core, idx, "index tile", src.valid_rows, src.valid_cols);
    wait_for(core, {PipeId::V, PipeId::MTE2, PipeId::MTE3});
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
    release(core, {PipeId::V, PipeId::MTE2, PipeId::MTE3});
}

} // namespace

// (dst, table, indices, coalesce, beyond) and, into L1 by element, (dst, table, indices, scratch, coalesce,
// beyond)
TILE_OP_BODY(MGATHER) {
    const TileRef &dst = operands[0].tile;
    Table table(core, operands[1].global);
    int64_t mode = operands[operands.count - 2].option;
    Beyond beyond = gather_beyond(operands[operands.count - 1].option);
    if (dst.space == Space::L1) {
        if (operands[2].kind != Operand::Global)
            core.kernel_error("MGATHER: indices of a matrix tile lie in global memory");
        if (table.boxed || dst.row_major || dst.inner != 1)
            core.unsupported("MGATHER into L1 other than from ND to NZ");
        if (type_size(operands[2].global.type) != 4)
            core.unsupported("MGATHER by %s indices", type_name(operands[2].global.type));
        if (is_empty(dst)) return;
        if (operands.count == 6)
            gather_elements_to_matrix(core, dst, table, operands[2].global, operands[3].global, beyond);
        else
            gather_rows_to_matrix(core, dst, table, operands[2].global, beyond);
        return;
    }
    const TileRef &idx = operands[2].tile;
    if (core.register_based() && !table.boxed)
        return gather_threads(core, dst, table, idx, mode == kByRow, beyond);
    check_index_tile(core, idx);
    check_table_tile(core, table, dst);
    if (is_empty(dst)) return;
    (mode == kByRow ? gather_rows : gather_elements)(core, dst, table, idx, beyond);
}

// (table, src, indices, coalesce, combine, beyond)
TILE_OP_BODY(MSCATTER) {
    Table table(core, operands[0].global);
    const TileRef &src = operands[1].tile, &idx = operands[2].tile;
    int64_t mode = operands[3].option, how = operands[4].option;
    Beyond beyond = scatter_beyond(operands[5].option);
    if (core.register_based() && !table.boxed)
        return scatter_threads(core, table, src, idx, mode == kByRow, beyond, how);
    check_index_tile(core, idx);
    check_table_tile(core, table, src);
    if (how == Add)
        allow_types(core, src.type,
                    {Type::F32, Type::I32, Type::F16, Type::BF16, Type::I16, Type::I8, Type::U32});
    if (is_empty(src)) return;
    (mode == kByRow ? scatter_rows : scatter_elements)(core, table, src, idx, how, beyond);
}

} // namespace insight_trace::engine
