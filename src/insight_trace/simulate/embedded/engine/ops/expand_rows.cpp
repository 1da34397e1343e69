// One value per row, spread along the row.
#include <cstring>

#include "ops/compose.hpp"
#include "ops/expand.hpp"

namespace insight_trace::engine {

namespace {

Spread row_spread(const TileRef &dst, const TileRef &a, const TileRef &b) {
    bool first = same_valid(a, dst), second = same_valid(b, dst);
    if (first && second) first = row_step(a) >= row_step(b);
    if (!first && !second) first = b.valid_cols <= a.valid_cols;
    return first ? Spread{dst, a, b, false} : Spread{dst, b, a, true};
}

void check_column(const Core &core, const char *name, const Spread &s) {
    check_spread(core, name, s);
    if (s.thin.rows < s.dst.valid_rows)
        core.kernel_error("%s: a column of %d values for %d rows", name, s.thin.rows, s.dst.valid_rows);
    if (s.thin.row_major && s.thin.cols != per_block(s.thin.type))
        core.kernel_error("%s: a row-major column tile must have 32 bytes a row, not %d", name,
                          s.thin.cols * type_size(s.thin.type));
}

// With functions a row takes its value, or its block, from the column while it is computed.
void spread_rows(Core &core, Instr instr, const Spread &s) {
    const int64_t size = type_size(s.dst.type);
    // a row-major column repeats its block along the row, lane by lane
    const bool lanes = s.thin.row_major && s.thin.valid_cols >= per_block(s.dst.type);
    for (int r = 0; r < s.dst.valid_rows; ++r) {
        const uint32_t place = element_address(s.thin, int64_t(r) * row_step(s.thin));
        const VectorOperand dst(element_address(s.dst, int64_t(r) * s.dst.cols)),
            full(element_address(s.full, int64_t(r) * s.full.cols)), block(place, 0, 0);
        const uint64_t number = lanes ? 0 : spread_value(core, place, int(size));
        if (lanes)
            counted(core, executed(instr), s.dst.type, s.dst.valid_cols, dst, s.swapped ? block : full,
                    s.swapped ? full : block);
        else
            counted(core, executed(instr, number, s.swapped), s.dst.type, s.dst.valid_cols, dst, full);
    }
}

// Rows from `first` on, the column standing at `column` with 32 bytes a row: one instruction for each
// repeat's width of columns.
void issue_by_columns(Core &core, Instr instr, const Spread &s, uint32_t column, int first, int rows) {
    Type type = s.dst.type;
    int lanes = per_repeat(type), cols = s.dst.valid_cols;
    auto stride = [&](const TileRef &t) { return static_cast<uint16_t>(t.cols / per_block(type)); };
    auto step = [&](int col, int width) {
        issue_spread(
            core, executed(instr), s, rows, int64_t(rows) * width,
            VectorOperand(element_address(s.dst, int64_t(first) * s.dst.cols + col), stride(s.dst)),
            VectorOperand(element_address(s.full, int64_t(first) * s.full.cols + col), stride(s.full)),
            VectorOperand(column, 1, 0));
    };
    if (s.dst.cols < lanes || s.full.cols < lanes) {
        mask_elements(core, cols);
        step(0, cols);
        mask_all(core);
        return;
    }
    for (int col = 0; col + lanes <= cols; col += lanes) step(col, lanes);
    if (int rest = cols % lanes) {
        mask_elements(core, rest);
        step(cols - rest, rest);
        mask_all(core);
    }
}

// One instruction for each row, in count mode.
void issue_by_rows(Core &core, Instr instr, const Spread &s, uint32_t column) {
    int cols = s.dst.valid_cols;
    count_elements(core, cols);
    for (int r = 0; r < s.dst.valid_rows; ++r)
        issue_spread(core, executed(instr), s, 0, cols,
                     VectorOperand(element_address(s.dst, int64_t(r) * s.dst.cols)),
                     VectorOperand(element_address(s.full, int64_t(r) * s.full.cols)),
                     VectorOperand(column + uint32_t(r * kBlockBytes), 0, 0));
    count_off(core);
}

void issue_row_spread(Core &core, Instr instr, const Spread &s, const TileRef *tmp) {
    int rows = s.dst.valid_rows, block = per_block(s.dst.type);
    bool too_wide = s.dst.cols / block > kMostRepeats || s.full.cols / block > kMostRepeats;
    bool by_rows = too_wide || s.dst.valid_cols / per_repeat(s.dst.type) > rows;
    bool column_ready = s.thin.row_major && !tmp;
    uint32_t column = column_ready ? s.thin.address : tmp ? tmp->address : kScratch;
    // each value of the column into a block of its own
    auto spread_column = [&](int first, int count) {
        core.vector(executed(Instr::VBRCB), s.dst.type, static_cast<int>(ceil_div(count, 8)), count,
                    VectorOperand(column, 8), VectorOperand(element_address(s.thin, first), 1, 0));
        core.barrier(PipeId::V);
    };
    if (rows <= kMostRepeats) {
        if (!column_ready) spread_column(0, rows);
        if (by_rows)
            issue_by_rows(core, instr, s, column);
        else
            issue_by_columns(core, instr, s, column, 0, rows);
        return;
    }
    // more rows than a repeat count holds; the scratch has room for 240 of them
    int portion = column_ready ? kMostRepeats : 240;
    for (int first = 0; first < rows; first += portion) {
        int count = std::min(portion, rows - first);
        if (!column_ready) spread_column(first, count);
        issue_by_columns(core, instr, s, column_ready ? column + uint32_t(first * kBlockBytes) : column,
                         first, count);
        if (!column_ready && count == portion) core.barrier(PipeId::V);
    }
}

void row_expand(Core &core, const Operands &operands, const char *name, Instr instr,
                std::initializer_list<Type> types) {
    Spread s = row_spread(operands[0].tile, operands[1].tile, operands[2].tile);
    allow_types(core, name, s.dst.type, types);
    check_column(core, name, s);
    if (is_empty(s.dst)) return;
    if (core.register_based()) return spread_rows(core, instr, s);
    issue_row_spread(core, instr, s, operands.count > 3 ? &operands[3].tile : nullptr);
}

} // namespace

TILE_OP_BODY(TROWEXPANDADD) { row_expand(core, operands, "TROWEXPANDADD", Instr::VADD, kSpreadTypes); }
TILE_OP_BODY(TROWEXPANDSUB) { row_expand(core, operands, "TROWEXPANDSUB", Instr::VSUB, kSpreadTypes); }
TILE_OP_BODY(TROWEXPANDMUL) { row_expand(core, operands, "TROWEXPANDMUL", Instr::VMUL, kSpreadTypes); }
TILE_OP_BODY(TROWEXPANDDIV) { row_expand(core, operands, "TROWEXPANDDIV", Instr::VDIV, kSpreadReals); }
TILE_OP_BODY(TROWEXPANDMAX) { row_expand(core, operands, "TROWEXPANDMAX", Instr::VMAX, kSpreadTypes); }
TILE_OP_BODY(TROWEXPANDMIN) { row_expand(core, operands, "TROWEXPANDMIN", Instr::VMIN, kSpreadTypes); }

TILE_OP_BODY(TROWEXPANDEXPDIF) {
    const TileRef &dst = operands[0].tile;
    row_expand(core, operands, "TROWEXPANDEXPDIF", Instr::VSUB, kSpreadReals);
    if (is_empty(dst)) return;
    core.barrier(PipeId::V);
    run(core, Op::TEXP, operands[0], operands[0]);
}

TILE_OP_BODY(TROWEXPAND) {
    const TileRef &dst = operands[0].tile, &src = operands[1].tile;
    if (type_size(dst.type) > 4 && !core.register_based())
        core.unsupported("TROWEXPAND of %s tiles", type_name(dst.type));
    same_type(core, "TROWEXPAND", dst, src);
    need_plain_rows(core, "TROWEXPAND", dst, "result");
    if (src.space != Space::UB || src.inner)
        core.unsupported("TROWEXPAND from a tile that is not a plain vector tile");
    if (is_empty(dst)) return;
    int size = type_size(dst.type), block = per_block(dst.type);
    bool fixed = !dst.dynamic && !src.dynamic && dst.rows == dst.valid_rows && dst.cols == dst.valid_cols &&
                 src.rows == src.valid_rows && src.cols == src.valid_cols;
    bool line = src.row_major ? src.rows == 1 && src.cols == dst.rows : src.cols == 1 && src.rows == dst.rows;
    bool into_blocks = size > 1 && fixed && line && dst.cols == block;
    int step = into_blocks ? 1 : row_step(src);
    if (int64_t(step) * (dst.valid_rows - 1) >= int64_t(src.rows) * src.cols)
        core.kernel_error("TROWEXPAND: %d rows to fill from a source of %d x %d", dst.valid_rows, src.rows,
                          src.cols);
    if (into_blocks && size <= 4) { // a block per value: eight values a repeat, sources stay 32-byte aligned
        constexpr int portion = kMostRepeats - 1;
        int repeats = src.rows * src.cols / 8;
        for (int first = 0; first < repeats; first += portion) {
            int count = std::min(portion, repeats - first);
            core.vector(executed(Instr::VBRCB), dst.type, count, int64_t(count) * 8 * block,
                        VectorOperand(dst.address + uint32_t(first * kRepeatBytes), 8),
                        VectorOperand(element_address(src, int64_t(first) * 8), 1, 0));
        }
        return;
    }
    // bytes go two by two, but not in functions
    const bool pairs = size == 1 && !core.register_based();
    Type type = pairs ? Type::I16 : dst.type;
    int64_t count = pairs ? ceil_div(dst.valid_cols, 2) : dst.valid_cols;
    count_elements(core, count);
    for (int r = 0; r < dst.valid_rows; ++r) {
        handshake(core, PipeId::V, PipeId::S);
        uint64_t number = scalar_load(core, element_address(src, int64_t(r) * step), size);
        handshake(core, PipeId::S, PipeId::V);
        if (pairs) number |= number << 8;
        counted(core, executed(Instr::MOVEV, number), type, count,
                VectorOperand(element_address(dst, int64_t(r) * dst.cols)));
    }
    count_off(core);
}

} // namespace insight_trace::engine
