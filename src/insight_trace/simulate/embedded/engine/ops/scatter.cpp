// Scatter inside the vector core's memory: by element index, by mask pattern. The rest of the tile is
// cleared.
#include "ops/patterns.hpp"
#include "ops/steps.hpp"

namespace insight_trace::engine {
namespace {

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
    counted(core, executed(Instr::MOVEV), size >= 4 ? Type::U32 : Type::U16, units,
            VectorOperand(dst.address));
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
    const int64_t room = int64_t(dst.rows) * dst.cols;
    const bool is_signed = idx.type == Type::I32 || idx.type == Type::I16;
    issue_clear(core, dst);
    for (int r = 0; r < rows; ++r)
        for (int c = 0; c < cols; ++c) {
            const uint64_t bits =
                scalar_load(core, element_address(idx, int64_t(r) * idx.cols + c), index_size);
            const int64_t place = !is_signed        ? int64_t(bits)
                                  : index_size == 4 ? int64_t(int32_t(bits))
                                                    : int64_t(int16_t(bits));
            if (place < 0 || place >= room)
                core.kernel_error("TSCATTER: index %lld at (%d, %d) lies outside the result's %lld elements",
                                  (long long)place, r, c, (long long)room);
            const uint64_t value = scalar_load(core, element_address(src, int64_t(r) * src.cols + c), size);
            scalar_store(core, element_address(dst, place), value, size);
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
    int size = type_size(dst.type);
    if (pattern.group == 1) { // every element stays where it is: a copy
        copy_lines(core, dst.type, {dst.address, int64_t(dst.cols) * size},
                   {src.address, int64_t(src.cols) * size}, rows, int64_t(cols) * size);
        return;
    }
    issue_clear(core, dst);
    if (whole_rows) {
        count_elements(core, cols);
        for (int r = 0; r < rows; ++r)
            counted(core, executed(Instr::VCOPY), dst.type, cols,
                    VectorOperand(element_address(dst, place(r, 0))),
                    VectorOperand(element_address(src, int64_t(r) * src.cols)));
        count_off(core);
    } else {
        for (int r = 0; r < rows; ++r)
            for (int c = 0; c < cols; ++c) {
                const uint64_t value =
                    scalar_load(core, element_address(src, int64_t(r) * src.cols + c), size);
                scalar_store(core, element_address(dst, place(r, c)), value, size);
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
