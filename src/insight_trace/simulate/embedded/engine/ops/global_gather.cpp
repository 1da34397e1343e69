// MGATHER: rows or elements of a table in global memory into a tile.
#include "isa/tables.hpp"
#include "isa/tile_dma.hpp"

namespace insight_trace::engine {
namespace {

Beyond gather_beyond(int64_t option) { // pto::GatherOOB: Undefined, Clamp, Wrap, Zero
    static const Beyond ways[] = {Beyond::Undefined, Beyond::Clamp, Beyond::Wrap, Beyond::Leave};
    return ways[option & 3];
}

void finish_rows(Core &core) {
    handshake(core, PipeId::S, PipeId::MTE2);
    handshake(core, PipeId::MTE2, PipeId::V);
    handshake(core, PipeId::MTE2, PipeId::MTE3);
    handshake(core, PipeId::S, PipeId::V);
    handshake(core, PipeId::S, PipeId::MTE3);
}

// One transfer for each row, or for each outer dimension of it when the table is in boxes.
void gather_rows(Core &core, const TileRef &dst, const Table &table, const TileRef &idx, Beyond beyond) {
    int64_t cols = table.boxed ? table.cols : dst.valid_cols;
    if (cols > dst.cols || idx.rows * idx.cols < dst.valid_rows)
        core.kernel_error("MGATHER: rows of %lld by %d indices into a tile of %d x %d", (long long)cols,
                          idx.rows * idx.cols, dst.rows, dst.cols);
    handshake(core, PipeId::V, PipeId::S);
    handshake(core, PipeId::MTE3, PipeId::S);
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
        if (!table.boxed) {
            core.transfer(Instr::MOV_OUT_TO_UB_ALIGN, dst.type, table.at(place.index, 0),
                          element_address(dst, int64_t(r) * dst.cols), 1, cols * table.size, 0);
            continue;
        }
        for (int64_t i = 0; i < table.global.shape[0]; ++i) {
            int64_t first = i * table.global.shape[1] * (kBlockBytes / table.size);
            core.transfer(Instr::MOV_OUT_TO_UB_ALIGN, dst.type, table.at(place.index, first),
                          box_row(dst, r, first, table), table.global.shape[1], kBlockBytes,
                          table.global.stride[1] * table.size);
        }
    }
    finish_rows(core);
}

void gather_elements(Core &core, const TileRef &dst, const Table &table, const TileRef &idx, Beyond beyond) {
    if (idx.rows < dst.valid_rows || idx.cols < dst.valid_cols)
        core.kernel_error("MGATHER: %d x %d indices for %d x %d elements", idx.rows, idx.cols, dst.valid_rows,
                          dst.valid_cols);
    handshake(core, PipeId::V, PipeId::S);
    handshake(core, PipeId::MTE3, PipeId::S);
    handshake(core, PipeId::MTE2, PipeId::S);
    for (int r = 0; r < dst.valid_rows; ++r)
        for (int c = 0; c < dst.valid_cols; ++c) {
            int64_t number = int64_t(r) * idx.cols + c;
            Place place = placed(load_index(core, idx, number), table.elements(), beyond);
            const uint64_t value =
                place.inside ? scalar_load(core, table.at(place.index), table.size, Space::GM) : 0;
            scalar_store(core, element_address(dst, tile_offset(dst, r, c)), value, table.size);
        }
    handshake(core, PipeId::S, PipeId::V);
    handshake(core, PipeId::S, PipeId::MTE2);
    handshake(core, PipeId::S, PipeId::MTE3);
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

} // namespace

// (dst, table, indices, coalesce, beyond) and, into L1 by element, (dst, table, indices, scratch, coalesce,
// beyond)
TILE_OP_BODY(MGATHER) {
    const TileRef &dst = operands[0].tile;
    Table table(core, "MGATHER", operands[1].global);
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
    check_index_tile(core, "MGATHER", idx);
    check_table_tile(core, "MGATHER", table, dst);
    if (is_empty(dst)) return;
    if (mode == kByRow)
        gather_rows(core, dst, table, idx, beyond);
    else
        gather_elements(core, dst, table, idx, beyond);
}

} // namespace insight_trace::engine
