// Reductions down the columns: maximum, minimum, product, sum; and sums of neighbours in a row.
#include <cstring>
#include <vector>

#include "ops/steps.hpp"

namespace insight_trace::engine {
namespace {

void check_columns(const Core &core, const char *name, const TileRef &dst, const TileRef &src) {
    allow_types(core, name, src.type, {Type::F32, Type::F16, Type::I32, Type::I16});
    same_type(core, name, dst, src);
    need_plain_rows(core, name, src, "source");
    need_plain_rows(core, name, dst, "result");
    if (dst.cols < src.valid_cols)
        core.kernel_error("%s: %d columns do not fit the %d of the result", name, src.valid_cols, dst.cols);
}

void copy_row(Core &core, const TileRef &dst, const TileRef &src) {
    copy_lines(core, src.type, {dst.address}, {src.address}, 1,
               int64_t(src.valid_cols) * type_size(src.type));
}

VectorOperand row_of(const TileRef &tile, int64_t row, int64_t col = 0) {
    return VectorOperand(element_address(tile, row * tile.cols + col));
}

void column_reduction(Core &core, const Operands &operands, const char *name, Instr instr) {
    const TileRef &dst = operands[0].tile, &src = operands[1].tile;
    check_columns(core, name, dst, src);
    if (is_empty(src)) return;
    copy_row(core, dst, src);
    core.barrier(PipeId::V);
    if (src.valid_rows == 1) return;
    int lanes = per_repeat(src.type);
    int whole = src.valid_cols / lanes * lanes, rest = src.valid_cols % lanes;
    auto fold_rows = [&](int col, int width) {
        for (int r = 1; r < src.valid_rows; ++r) {
            counted(core, executed(instr), src.type, width, row_of(dst, 0, col), row_of(dst, 0, col),
                    row_of(src, r, col));
            core.barrier(PipeId::V);
        }
    };
    if (whole) {
        count_elements(core, whole);
        fold_rows(0, whole);
        count_off(core);
    }
    if (rest) {
        mask_elements(core, rest);
        fold_rows(whole, rest);
        mask_all(core);
    }
    core.barrier(PipeId::V);
}

// Sums pair by pair: rows 2i and 2i + 1 into row i, an odd last row into row 0, until one row is left.
void issue_pair_sums(Core &core, const TileRef &src, const TileRef &tmp) {
    const TileRef *from = &src;
    for (int count = src.valid_rows; count > 1; count /= 2) {
        auto add = [&](int64_t to, VectorOperand a, VectorOperand b) {
            counted(core, executed(Instr::VADD), src.type, src.valid_cols, row_of(tmp, to), a, b);
        };
        count_elements(core, src.valid_cols);
        for (int i = 0; i < count / 2; ++i) add(i, row_of(*from, 2 * i), row_of(*from, 2 * i + 1));
        core.barrier(PipeId::V);
        if (count % 2) {
            add(0, row_of(tmp, 0), row_of(*from, count - 1));
            core.barrier(PipeId::V);
        }
        count_off(core);
        if (from == &tmp) core.barrier(PipeId::V);
        from = &tmp;
    }
}

} // namespace

TILE_OP_BODY(TCOLMAX) { column_reduction(core, operands, "TCOLMAX", Instr::VMAX); }
TILE_OP_BODY(TCOLMIN) { column_reduction(core, operands, "TCOLMIN", Instr::VMIN); }
TILE_OP_BODY(TCOLPROD) { column_reduction(core, operands, "TCOLPROD", Instr::VMUL); }

TILE_OP_BODY(TCOLSUM) {
    const TileRef &dst = operands[0].tile, &src = operands[1].tile;
    bool has_tmp = operands.count > 2;
    bool in_pairs = has_tmp && scalar_as<int64_t>(operands[3]) != 0;
    check_columns(core, "TCOLSUM", dst, src);
    if (is_empty(src)) return;
    if (in_pairs && src.valid_rows > 1) {
        TileRef tmp = operands[2].tile;
        tmp.cols = tmp.cols * type_size(tmp.type) / type_size(src.type);
        tmp.type = src.type;
        need_plain_rows(core, "TCOLSUM", tmp, "scratch tile");
        if (core.register_based()) { // in registers
            tmp.address = kRegisterFile;
            tmp.cols = src.cols;
        }
        issue_pair_sums(core, src, tmp);
        const int64_t bytes = int64_t(src.valid_cols) * type_size(src.type);
        copy_lines(core, src.type, {dst.address}, {tmp.address}, 1, bytes);
        core.barrier(PipeId::V);
        return;
    }
    copy_row(core, dst, src);
    if (has_tmp || src.valid_rows > 1) core.barrier(PipeId::V);
    if (src.valid_rows == 1) return;
    count_elements(core, src.valid_cols);
    for (int r = 1; r < src.valid_rows; ++r) {
        counted(core, executed(Instr::VADD), src.type, src.valid_cols, row_of(dst, 0), row_of(dst, 0),
                row_of(src, r));
        core.barrier(PipeId::V);
    }
    count_off(core);
}

// Neighbours 2i and 2i + 1 of a row into element i.
TILE_OP_BODY(TPAIRREDUCESUM) {
    const TileRef &dst = operands[0].tile, &src = operands[1].tile;
    allow_types(core, "TPAIRREDUCESUM", dst.type, {Type::F32, Type::F16});
    same_type(core, "TPAIRREDUCESUM", dst, src);
    need_plain_rows(core, "TPAIRREDUCESUM", dst, "result");
    need_plain_rows(core, "TPAIRREDUCESUM", src, "source");
    if (is_empty(dst)) return;
    if (src.rows < dst.valid_rows || src.cols < dst.valid_cols)
        core.kernel_error("TPAIRREDUCESUM: the source of %d x %d does not cover %d x %d", src.rows, src.cols,
                          dst.valid_rows, dst.valid_cols);
    int rows = dst.valid_rows, cols = dst.valid_cols;
    int lanes = per_repeat(dst.type);
    // of the result in halves of a repeat, of the source in blocks
    const uint16_t dst_stride = static_cast<uint16_t>(dst.cols / (lanes / 2)),
                   src_stride = static_cast<uint16_t>(src.cols / per_block(src.type));
    auto pairs = [&](int row, int col, int count, int width) {
        core.vector(executed(Instr::VCPADD), dst.type, count, int64_t(count) * width,
                    VectorOperand(element_address(dst, int64_t(row) * dst.cols + col / 2), dst_stride),
                    VectorOperand(element_address(src, int64_t(row) * src.cols + col), src_stride));
        core.barrier(PipeId::V);
    };
    bool whole =
        fixed_cols(dst) && fixed_cols(src) && dst.valid_cols == dst.cols && src.valid_cols == src.cols;
    bool together = (whole && dst.cols % (lanes / 2) == 0) || (dst.rows == 1 && src.rows == 1);
    int even_rest = cols % lanes & ~1, full = cols / lanes;
    auto rest_of = [&](int row) {
        if (!even_rest) return;
        count_elements(core, even_rest);
        pairs(row, full * lanes, 1, even_rest);
        count_off(core);
    };
    bit_mode(core);
    if (together) {
        for (int i = 0; i < full; ++i)
            for (int row = 0; row < rows; row += kMostRepeats)
                pairs(row, i * lanes, std::min(kMostRepeats, rows - row), lanes);
        for (int row = 0; row < rows; ++row) rest_of(row);
        return;
    }
    for (int row = 0; row < rows; ++row) {
        for (int i = 0; i < full; ++i) pairs(row, i * lanes, 1, lanes);
        rest_of(row);
    }
}

} // namespace insight_trace::engine
