// Scatter inside the vector core's memory: by element index, by mask pattern. The rest of the tile is
// cleared.
#include <cstring>
#include <vector>

#include "ops/patterns.hpp"
#include "ops/steps.hpp"

namespace insight_trace::engine {
namespace {

struct Bytes { // the first rows and columns of a tile, as bytes
    uint8_t *data;
    int64_t count; // elements
    size_t size;   // of one

    Bytes(Core &core, const TileRef &tile, int64_t rows, int64_t cols)
        : data(bytes_of(core, tile, rows, cols)), count((rows - 1) * tile.cols + cols),
          size(size_t(type_size(tile.type))) {}
    uint8_t *at(int64_t i) const { return data + i * int64_t(size); }
};

void check_scatter(const Core &core, const TileRef &dst, const TileRef &src) {
    if (type_size(dst.type) > 4 && !core.register_based())
        core.unsupported("TSCATTER of %s tiles", type_name(dst.type));
    same_type(core, "TSCATTER", dst, src);
    need_plain_rows(core, "TSCATTER", dst, "result");
    need_plain_rows(core, "TSCATTER", src, "source");
}

void issue_clear(Core &core, const TileRef &dst) {
    int size = type_size(dst.type);
    int64_t units = int64_t(dst.rows) * dst.cols * size / (size >= 4 ? 4 : 2);
    count_elements(core, units);
    counted(core, Instr::MOVEV, size >= 4 ? Type::U32 : Type::U16, units, VectorOperand(dst.address));
    count_off(core);
    handshake(core, PipeId::V, PipeId::S);
}

void scatter_by_index(Core &core, const Operands &operands) {
    const TileRef &dst = operands[0].tile, &src = operands[1].tile, &idx = operands[2].tile;
    check_scatter(core, dst, src);
    int index_size = type_size(idx.type), size = type_size(dst.type);
    if (index_size != (size >= 4 ? 4 : 2))
        core.unsupported("TSCATTER of %s tiles by %s indices", type_name(dst.type), type_name(idx.type));
    need_plain_rows(core, "TSCATTER", idx, "index tile");
    if (is_empty(idx)) return;
    int rows = idx.valid_rows, cols = idx.valid_cols;
    if (src.rows < rows || src.cols < cols)
        core.kernel_error("TSCATTER: %d x %d indices for a source of %d x %d", rows, cols, src.rows,
                          src.cols);
    std::vector<int64_t> places(size_t(rows) * size_t(cols));
    if (core.computes) {
        with_type(idx.type, [&](auto tag) {
            View<decltype(tag)> index(core, idx, rows, cols);
            for (int r = 0; r < rows; ++r)
                for (int c = 0; c < cols; ++c)
                    places[size_t(r * cols + c)] =
                        static_cast<int64_t>(index.data[int64_t(r) * idx.cols + c]);
        });
        Bytes to(core, dst, dst.rows, dst.cols), from(core, src, rows, cols);
        std::memset(to.data, 0, size_t(to.count) * to.size);
        for (int r = 0; r < rows; ++r)
            for (int c = 0; c < cols; ++c) {
                int64_t place = places[size_t(r * cols + c)];
                if (place < 0 || place >= to.count)
                    core.kernel_error(
                        "TSCATTER: index %lld at (%d, %d) lies outside the result's %lld elements",
                        (long long)place, r, c, (long long)to.count);
                std::memmove(to.at(place), from.at(int64_t(r) * src.cols + c), to.size);
            }
    }
    issue_clear(core, dst);
    for (int r = 0; r < rows; ++r)
        for (int c = 0; c < cols; ++c) {
            scalar_load(core, element_address(idx, int64_t(r) * idx.cols + c));
            scalar_load(core, element_address(src, int64_t(r) * src.cols + c));
            scalar_store(core, element_address(dst, places[size_t(r * cols + c)]));
        }
    handshake(core, PipeId::S, PipeId::V);
}

void scatter_by_pattern(Core &core, const Operands &operands) {
    const TileRef &dst = operands[0].tile, &src = operands[1].tile;
    Pattern pattern(core, "TSCATTER", operands[2].option);
    bool whole_rows = operands[3].option == 1;
    check_scatter(core, dst, src);
    if (is_empty(src)) return;
    int rows = src.valid_rows, cols = src.valid_cols;
    int64_t rows_needed = whole_rows ? pattern.position(rows - 1) + 1 : rows;
    int64_t cols_needed = whole_rows ? cols : pattern.position(cols - 1) + 1;
    if (rows_needed > dst.rows || cols_needed > dst.cols)
        core.kernel_error("TSCATTER: %d x %d elements do not fit a result of %d x %d", rows, cols, dst.rows,
                          dst.cols);
    auto place = [&](int r, int c) {
        return whole_rows ? pattern.position(r) * dst.cols + c : int64_t(r) * dst.cols + pattern.position(c);
    };
    if (core.computes) {
        Bytes to(core, dst, dst.rows, dst.cols), from(core, src, rows, cols);
        std::vector<uint8_t> kept(from.data, from.data + from.count * int64_t(from.size));
        if (pattern.group > 1) std::memset(to.data, 0, size_t(to.count) * to.size);
        for (int r = 0; r < rows; ++r)
            for (int c = 0; c < cols; ++c)
                std::memcpy(to.at(place(r, c)),
                            kept.data() + (size_t(r) * size_t(src.cols) + size_t(c)) * to.size, to.size);
    }
    int size = type_size(dst.type);
    if (pattern.group == 1) { // every element stays where it is: a copy
        core.move(Instr::MOV_UB_TO_UB, dst.type, part_of(dst, 0, 0, rows, cols),
                  part_of(src, 0, 0, rows, cols), rows,
                  int64_t(rows) * ceil_div(int64_t(cols) * size, kBlockBytes) * kBlockBytes);
        return;
    }
    issue_clear(core, dst);
    if (whole_rows) {
        count_elements(core, cols);
        for (int r = 0; r < rows; ++r)
            counted(core, Instr::VCOPY, dst.type, cols, VectorOperand(element_address(dst, place(r, 0))),
                    VectorOperand(element_address(src, int64_t(r) * src.cols)));
        count_off(core);
    } else {
        for (int r = 0; r < rows; ++r)
            for (int c = 0; c < cols; ++c) {
                scalar_load(core, element_address(src, int64_t(r) * src.cols + c));
                scalar_store(core, element_address(dst, place(r, c)));
            }
    }
    handshake(core, PipeId::S, PipeId::V);
}

} // namespace

TILE_OP_BODY(TSCATTER) {
    if (operands[2].kind == Operand::Option)
        scatter_by_pattern(core, operands);
    else
        scatter_by_index(core, operands);
}

} // namespace insight_trace::engine
