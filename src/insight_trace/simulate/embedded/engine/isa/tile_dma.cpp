#include "isa/tile_dma.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "elements.hpp"
#include "isa/moves.hpp"
#include "machine.hpp"

namespace insight_trace::engine {

namespace {

// Moves one piece, line by line, in the runs that the tile's layout allows.
void copy_piece(Core &core, const TileRef &tile, const DmaPiece &piece, bool lines_are_columns, bool store) {
    const int size = type_size(tile.type);
    RunShape shape = run_shape(tile);
    int64_t most = lines_are_columns ? tile.cols : tile.rows;
    if (piece.length <= 0 || piece.count <= 0) return;
    int64_t lines = std::max(most, piece.line + piece.count);
    if (lines > most) {
        // Lines that follow each other in memory go on after the tile, as they do on a device.
        bool in_line = tile.inner == 0 && lines_are_columns == !tile.row_major;
        if (!in_line)
            core.kernel_error("the tensor has %lld %s or more, the tile only %lld", (long long)lines,
                              lines_are_columns ? "columns" : "rows", (long long)most);
        core.remark("the tensor has more %s than the tile, which has %lld: what follows the tile is %s",
                    lines_are_columns ? "columns" : "rows", (long long)most,
                    store ? "stored" : "overwritten");
    }
    const TileOrder order(tile);
    for (int64_t i = 0; i < piece.count; ++i) {
        uint8_t *gm = core.global(piece.gm + uint64_t(i * piece.step * size), uint64_t(piece.length * size),
                                  store ? kWrites : kReads);
        int64_t line = piece.line + i;
        int64_t run = shape.along_rows == lines_are_columns ? shape.length : 1;
        for (int64_t at = 0; at < piece.length;) {
            int64_t part = std::min(piece.length - at, run - at % run);
            const int64_t offset =
                lines_are_columns ? order.row(at) + order.col(line) : order.row(line) + order.col(at);
            // lines may be longer than the tile's, and reach what follows the tile
            uint8_t *local =
                core.local(tile.space, tile.address + uint64_t((offset + i * piece.shift) * size),
                           uint64_t(part * size));
            if (store)
                memcpy(gm + at * size, local, size_t(part * size));
            else
                memcpy(local, gm + at * size, size_t(part * size));
            at += part;
        }
    }
}

template <class T> void add_line(uint8_t *gm, const uint8_t *local, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        T a, b;
        memcpy(&a, gm + i * int64_t(sizeof(T)), sizeof(T));
        memcpy(&b, local + i * int64_t(sizeof(T)), sizeof(T));
        T sum = T(wrap_add(Wide<T>(a), Wide<T>(b)));
        memcpy(gm + i * int64_t(sizeof(T)), &sum, sizeof(T));
    }
}

void add_piece(Core &core, const TileRef &tile, const DmaPiece &piece, bool lines_are_columns) {
    with_type(tile.type, [&](auto tag) {
        using T = decltype(tag);
        const int64_t lines = piece.line + piece.count;
        View<T> view(core, tile, lines_are_columns ? piece.length : lines,
                     lines_are_columns ? lines : piece.length);
        for (int64_t i = 0; i < piece.count; ++i) {
            uint8_t *gm = core.global(piece.gm + uint64_t(i * piece.step) * sizeof(T),
                                      uint64_t(piece.length) * sizeof(T));
            for (int64_t at = 0; at < piece.length; ++at) {
                T value = lines_are_columns ? view.at(at, piece.line + i) : view.at(piece.line + i, at);
                add_line<T>(gm + at * int64_t(sizeof(T)), reinterpret_cast<const uint8_t *>(&value), 1);
            }
        }
    });
}

// The value that PadValue stands for in a type.
template <class T> T pad_value(uint64_t pad) {
    if (pad >> 32) {
        uint32_t bits = static_cast<uint32_t>(pad);
        T value;
        memcpy(&value, &bits, sizeof(T) < 4 ? sizeof(T) : 4);
        return value;
    }
    if (pad < 2) return T(0);
    if constexpr (is_real<T>)
        return T(pad == 2 ? INFINITY : -INFINITY);
    else
        return pad == 2 ? std::numeric_limits<T>::max() : std::numeric_limits<T>::lowest();
}

} // namespace

void let_others_write(Core &core, uint64_t gm, uint64_t local, uint64_t bytes) {
    constexpr uint64_t kOften = 64;
    const bool again = gm == core.loaded_from && local == core.loaded_to && core.looked;
    core.loaded_from = gm;
    core.loaded_to = local;
    core.looked = false;
    core.loaded_again = again ? core.loaded_again + 1 : 0;
    if (core.loaded_again < kOften) return;
    uint64_t content = 0;
    bytes = std::min<uint64_t>(bytes, sizeof content);
    memcpy(&content, core.global(gm, bytes, kReads), bytes);
    current_machine().poll(core, gm, content);
}

void load_piece(Core &core, const TileRef &tile, const DmaPiece &piece, bool lines_are_columns) {
    if (core.computes) copy_piece(core, tile, piece, lines_are_columns, false);
}

void store_piece(Core &core, const TileRef &tile, const DmaPiece &piece, bool lines_are_columns, bool adds) {
    if (!core.computes) return;
    if (adds)
        add_piece(core, tile, piece, lines_are_columns);
    else
        copy_piece(core, tile, piece, lines_are_columns, true);
}

void dma_bytes(Core &core, bool store, uint64_t gm, Space space, uint64_t local, int64_t bytes) {
    if (!core.computes) return;
    uint8_t *there = core.global(gm, uint64_t(bytes), store ? kWrites : kReads),
            *here = core.local(space, local, uint64_t(bytes));
    memcpy(store ? there : here, store ? here : there, size_t(bytes));
}

void dma_box_columns(Core &core, bool store, const TileRef &tile, const GlobalRef &g, int64_t outer,
                     int64_t rows, int64_t step, bool dense) {
    if (!core.computes) return;
    const int64_t size = type_size(g.type), c0 = g.shape[4], box_rows = g.shape[3];
    for (int64_t j = 0; j < g.shape[1]; ++j)
        for (int64_t row = 0; row < rows; ++row) {
            const int64_t col = (outer * g.shape[1] + j) * c0;
            if (col >= tile.valid_cols) break;
            int64_t offset = outer * g.stride[0] + j * step;
            offset += dense ? row * c0 : row / box_rows * g.stride[2] + row % box_rows * g.stride[3];
            dma_bytes(core, store, g.address + uint64_t(offset * size), tile.space,
                      tile.address + uint64_t(tile_offset(tile, row, col) * size), c0 * size);
        }
}

// Elements past the last valid one of each row, up to the 32-byte boundary, get the tile's pad value.
void pad_lines(Core &core, const TileRef &tile) {
    if (!core.computes) return;
    int64_t per_block = 32 / type_size(tile.type);
    bool rows_are_lines = tile.row_major;
    int64_t valid = rows_are_lines ? tile.valid_cols : tile.valid_rows;
    int64_t end = std::min<int64_t>((valid + per_block - 1) / per_block * per_block,
                                    rows_are_lines ? tile.cols : tile.rows);
    with_type(tile.type, [&](auto tag) {
        using T = decltype(tag);
        T value = pad_value<T>(tile.pad);
        View<T> view(core, tile);
        int64_t lines = rows_are_lines ? tile.valid_rows : tile.valid_cols;
        for (int64_t line = 0; line < lines; ++line)
            for (int64_t at = valid; at < end; ++at)
                (rows_are_lines ? view.at(line, at) : view.at(at, line)) = value;
    });
}

// The tail of the last C0 block of each loaded row is zeroed by the ND -> NZ unit.
void zero_box_tails(Core &core, const TileRef &tile, int64_t lines, int64_t length, bool lines_are_columns) {
    if (!core.computes) return;
    int size = type_size(tile.type);
    int64_t c0 = 32 / size,
            end = std::min<int64_t>((length + c0 - 1) / c0 * c0, lines_are_columns ? tile.rows : tile.cols);
    for (int64_t line = 0; line < lines; ++line)
        for (int64_t at = length; at < end; ++at) {
            int64_t offset = lines_are_columns ? tile_offset(tile, at, line) : tile_offset(tile, line, at);
            memset(core.local(tile.space, tile.address + uint64_t(offset * size), uint64_t(size)), 0,
                   size_t(size));
        }
}

} // namespace insight_trace::engine
