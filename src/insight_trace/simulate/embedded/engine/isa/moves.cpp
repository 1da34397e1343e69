#include "isa/moves.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "elements.hpp"
#include "isa/nibble_tiles.hpp"

namespace insight_trace::engine {

void copy_lines(Core &core, Type type, LinesOfUb to, LinesOfUb from, int64_t count, int64_t bytes) {
    const int64_t blocks = (bytes + 31) / 32 * 32, moved = core.register_based() ? bytes : blocks;
    if (count <= 0 || bytes <= 0) return;
    if (core.computes)
        for (int64_t i = 0; i < count; ++i)
            memmove(core.local(Space::UB, to.address + uint64_t(i * to.step), uint64_t(moved)),
                    core.local(Space::UB, from.address + uint64_t(i * from.step), uint64_t(moved)),
                    size_t(moved));
    core.move(Instr::MOV_UB_TO_UB, type, lines_at(to.address, count, to.step, moved),
              lines_at(from.address, count, from.step, moved), count, count * blocks);
}

void fill_matrix(Core &core, Type type, uint32_t address, int64_t count, int64_t bytes, int64_t step,
                 uint64_t element, int64_t charged) {
    const auto size = static_cast<size_t>(type_size(type));
    if (core.computes)
        for (int64_t i = 0; i < count; ++i) {
            uint8_t *piece = core.local(Space::L1, address + uint64_t(i * step), uint64_t(bytes));
            for (int64_t at = 0; at < bytes; at += int64_t(size)) memcpy(piece + at, &element, size);
        }
    core.move(Instr::SET_L1_2D, type, lines_at(address, count, step, bytes), 0, charged, count * bytes);
}

namespace {

// Most runs are a block of 32 bytes. The two may overlap.
void move_run(uint8_t *to, const uint8_t *from, int64_t bytes) {
    if (bytes != 32) {
        memmove(to, from, static_cast<size_t>(bytes));
        return;
    }
    uint8_t block[32];
    memcpy(block, from, sizeof block);
    memcpy(to, block, sizeof block);
}

struct ColumnPlaces {
    int64_t to, from; // bytes
};
template <class T>
void copy_elements(uint8_t *to, const uint8_t *from, const std::vector<ColumnPlaces> &columns) {
    for (const ColumnPlaces &column : columns) memcpy(to + column.to, from + column.from, sizeof(T));
}

} // namespace

RunShape run_shape(const TileRef &t) {
    if (t.inner == 0) return t.row_major ? RunShape{false, t.cols} : RunShape{true, t.rows};
    return t.inner == 1 ? RunShape{false, inner_cols(t)} : RunShape{true, inner_rows(t)};
}

void copy_part(Core *owner, const TileRef &dst, Corner to, Core &core, const TileRef &src, Corner from,
               int64_t rows, int64_t cols) {
    if (!core.computes || !owner || rows <= 0 || cols <= 0) return;
    const int size = type_size(dst.type);
    auto bytes = [size](const TileRef &t) { return uint64_t(tile_extent(t)) * uint64_t(size); };
    uint8_t *into = owner->local(dst.space, dst.address, bytes(dst));
    const uint8_t *out_of = core.local(src.space, src.address, bytes(src));
    const RunShape a = run_shape(dst), b = run_shape(src);
    const TileOrder there(dst), here(src);
    if (a.along_rows != b.along_rows) {
        // where columns lie is the same in every row
        std::vector<ColumnPlaces> columns(static_cast<size_t>(cols));
        for (int64_t c = 0; c < cols; ++c)
            columns[size_t(c)] = {there.col(to.col + c) * size, here.col(from.col + c) * size};
        for (int64_t r = 0; r < rows; ++r)
            with_bits(dst.type, [&](auto tag) {
                copy_elements<decltype(tag)>(into + there.row(to.row + r) * size,
                                             out_of + here.row(from.row + r) * size, columns);
            });
        return;
    }
    const bool down = a.along_rows;
    const int64_t lines = down ? cols : rows, extent = down ? rows : cols;
    const int64_t to_base = down ? to.row : to.col, from_base = down ? from.row : from.col;
    for (int64_t line = 0; line < lines; ++line)
        for (int64_t i = 0; i < extent;) {
            const int64_t run = std::min(
                {extent - i, a.length - (to_base + i) % a.length, b.length - (from_base + i) % b.length});
            auto at = [&](const TileOrder &order, Corner corner) {
                return down ? order.row(corner.row + i) + order.col(corner.col + line)
                            : order.row(corner.row + line) + order.col(corner.col + i);
            };
            move_run(into + at(there, to) * size, out_of + at(here, from) * size, run * size);
            i += run;
        }
}

void copy_nibbles(Core &core, const TileRef &dst, const TileRef &src, Corner from, int64_t rows,
                  int64_t cols) {
    if (!core.computes) return;
    Nibbles there(core, dst), here(core, src);
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < cols; ++c) there.set(r, c, here.get(from.row + r, from.col + c));
}

void widen_floats(Core &core, const TileRef &dst, const TileRef &src, int64_t count) {
    if (!core.computes) return;
    const uint16_t *from = core.local_as<uint16_t>(src.space, src.address, uint64_t(count));
    float *to = core.local_as<float>(dst.space, dst.address, uint64_t(count));
    for (int64_t i = 0; i < count; ++i)
        to[i] = src.type == Type::F16 ? half_to_float(from[i]) : bf16_to_float(from[i]);
}

} // namespace insight_trace::engine
