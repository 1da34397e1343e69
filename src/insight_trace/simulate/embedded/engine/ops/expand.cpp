// Broadcasts: a tile and one column, or one row, that goes along with it.
#include "ops/steps.hpp"

namespace insight_trace::engine {

namespace {

constexpr std::initializer_list<Type> kSpreadTypes = {Type::F32, Type::F16, Type::I32, Type::I16};
constexpr std::initializer_list<Type> kSpreadReals = {Type::F32, Type::F16};

// Which operand is as large as the result, and which one is spread over it.
struct Spread {
    const TileRef &dst, &full, &thin;
    bool swapped; // the thin one is the first operand of the op
};

// One instruction in the op's own order of operands; without a repeat count it is under a count mask.
void issue_spread(Core &core, const Operation &instr, const Spread &s, int repeat, int64_t elements,
                  VectorOperand dst, VectorOperand full, VectorOperand thin) {
    const VectorOperand &first = s.swapped ? thin : full, &second = s.swapped ? full : thin;
    if (repeat)
        core.vector(instr, s.dst.type, repeat, elements, dst, first, second);
    else
        counted(core, instr, s.dst.type, elements, dst, first, second);
}

void check_spread(const Core &core, const Spread &s, std::initializer_list<Type> types) {
    allow_types(core, s.dst.type, types);
    same_type(core, s.dst, s.full);
    same_type(core, s.dst, s.thin);
    need_plain_rows(core, s.dst, "result");
    need_plain_rows(core, s.full, "full-size source");
    if (s.thin.space != Space::UB || s.thin.inner)
        core.unsupported("%s whose column or row is not a plain vector tile", core.op);
    need_room(core, s.full, "source", s.dst.valid_rows, s.dst.valid_cols);
}

// --- one row of values, spread down the columns

// `step(repeat, elements, dst, full, line)` issues what stands for one stretch of elements.
template <class Step> void walk_down(Core &core, const Spread &s, Step step) {
    const int rows = s.dst.valid_rows, cols = s.dst.valid_cols, lanes = per_repeat(s.dst.type);
    const bool fixed_width = fixed_cols(s.dst) && s.dst.valid_cols == s.dst.cols;
    if (!fixed_width && s.dst.rows != 1) // row by row in count mode
        return under_count(core, cols, [&] {
            for (int r = 0; r < rows; ++r)
                step(0, cols, row_of(s.dst, r), row_of(s.full, r), VectorOperand(s.thin.address));
        });
    auto columns = [&](int col, int width) {
        step(rows, int64_t(rows) * width, rows_of(s.dst, 0, col), rows_of(s.full, 0, col),
             VectorOperand(element_address(s.thin, col), 0));
    };
    if (s.dst.cols < lanes && s.full.cols < lanes) return under_mask(core, cols, [&] { columns(0, cols); });
    column_repeats(core, cols, lanes, columns);
}

void expand_down(Core &core, const Operands &operands, Instr instr, std::initializer_list<Type> types,
                 bool exponential = false) {
    const TileRef &dst = operands[0].tile, &a = operands[1].tile, &b = operands[2].tile;
    const bool second = !same_valid(a, dst) && same_valid(b, dst);
    const Spread s = second ? Spread{dst, b, a, true} : Spread{dst, a, b, false};
    check_spread(core, s, types);
    if (exponential && dst.type != Type::F32 && dst.type != Type::F16) refuse_type(core, dst.type);
    if (int64_t(s.thin.rows) * s.thin.cols < dst.valid_cols)
        core.kernel_error("%s: a row of %d values for %d columns", core.op, s.thin.rows * s.thin.cols,
                          dst.valid_cols);
    if (is_empty(dst)) return;
    walk_down(core, s,
              [&](int repeat, int64_t elements, VectorOperand to, VectorOperand full, VectorOperand line) {
                  issue_spread(core, instr, s, repeat, elements, to, full, line);
                  if (!exponential) return;
                  barrier(core);
                  if (repeat)
                      core.vector(Instr::VEXP, dst.type, repeat, elements, to, to);
                  else
                      counted(core, Instr::VEXP, dst.type, elements, to, to);
              });
}

// --- one value per row, spread along the row

// With functions a row takes its value, or its block, from the column while it is computed.
void spread_rows(Core &core, Instr instr, const Spread &s) {
    const Type type = s.dst.type;
    // a row-major column repeats its block along the row, lane by lane
    const bool lanes = s.thin.row_major && s.thin.valid_cols >= per_block(type);
    for (int r = 0; r < s.dst.valid_rows; ++r) {
        const uint32_t place = element_address(s.thin, int64_t(r) * row_step(s.thin));
        if (lanes)
            issue_spread(core, instr, s, 0, s.dst.valid_cols, row_of(s.dst, r), row_of(s.full, r),
                         VectorOperand(place, 0, 0));
        else
            counted(core, {instr, spread_value(core, place, type_size(type)), s.swapped}, type,
                    s.dst.valid_cols, row_of(s.dst, r), row_of(s.full, r));
    }
}

// Rows from `first` on, the column standing at `column` with 32 bytes a row: one instruction for each
// repeat's width of columns.
void spread_by_columns(Core &core, Instr instr, const Spread &s, uint32_t column, int first, int rows) {
    const int lanes = per_repeat(s.dst.type), cols = s.dst.valid_cols;
    auto step = [&](int col, int width) {
        issue_spread(core, instr, s, rows, int64_t(rows) * width, rows_of(s.dst, first, col),
                     rows_of(s.full, first, col), VectorOperand(column, 1, 0));
    };
    if (s.dst.cols < lanes || s.full.cols < lanes) return under_mask(core, cols, [&] { step(0, cols); });
    column_repeats(core, cols, lanes, step);
}

void spread_column(Core &core, Instr instr, const Spread &s, const TileRef *tmp) {
    const int rows = s.dst.valid_rows, cols = s.dst.valid_cols;
    const bool too_wide = std::max(row_blocks(s.dst), row_blocks(s.full)) > kMostRepeats;
    const bool by_rows = too_wide || cols / per_repeat(s.dst.type) > rows;
    const bool ready = s.thin.row_major && !tmp;
    const uint32_t column = ready ? s.thin.address : tmp ? tmp->address : kScratch;
    // each value of the column into a block of its own
    auto into_blocks = [&](int first, int count) {
        if (ready) return;
        core.vector(Instr::VBRCB, s.dst.type, static_cast<int>(ceil_div(count, 8)), count,
                    VectorOperand(column), VectorOperand(element_address(s.thin, first), 1, 0));
        barrier(core);
    };
    if (rows <= kMostRepeats) {
        into_blocks(0, rows);
        if (!by_rows) return spread_by_columns(core, instr, s, column, 0, rows);
        return under_count(core, cols, [&] { // one instruction for each row
            for (int r = 0; r < rows; ++r)
                issue_spread(core, instr, s, 0, cols, row_of(s.dst, r), row_of(s.full, r),
                             VectorOperand(column + uint32_t(r * kBlockBytes), 0, 0));
        });
    }
    // more rows than a repeat count holds; the scratch has room for 240 of them
    const int portion = ready ? kMostRepeats : 240;
    portions(rows, portion, [&](int first, int count) {
        into_blocks(first, count);
        spread_by_columns(core, instr, s, ready ? column + uint32_t(first * kBlockBytes) : column, first,
                          count);
        if (!ready && count == portion) barrier(core);
    });
}

void expand_along(Core &core, const Operands &operands, Instr instr, std::initializer_list<Type> types) {
    const TileRef &dst = operands[0].tile, &a = operands[1].tile, &b = operands[2].tile;
    bool first = same_valid(a, dst), second = same_valid(b, dst);
    if (first && second) first = row_step(a) >= row_step(b);
    if (!first && !second) first = b.valid_cols <= a.valid_cols;
    const Spread s = first ? Spread{dst, a, b, false} : Spread{dst, b, a, true};
    check_spread(core, s, types);
    if (s.thin.rows < dst.valid_rows)
        core.kernel_error("%s: a column of %d values for %d rows", core.op, s.thin.rows, dst.valid_rows);
    if (s.thin.row_major && s.thin.cols != per_block(s.thin.type))
        core.kernel_error("%s: a row-major column tile must have 32 bytes a row, not %d", core.op,
                          s.thin.cols * type_size(s.thin.type));
    if (is_empty(dst)) return;
    if (core.register_based()) return spread_rows(core, instr, s);
    spread_column(core, instr, s, operands.count > 3 ? &operands[3].tile : nullptr);
}

} // namespace

TILE_OP_BODY(TCOLEXPANDADD) { expand_down(core, operands, Instr::VADD, kSpreadTypes); }
TILE_OP_BODY(TCOLEXPANDSUB) { expand_down(core, operands, Instr::VSUB, kSpreadTypes); }
TILE_OP_BODY(TCOLEXPANDMUL) { expand_down(core, operands, Instr::VMUL, kSpreadTypes); }
TILE_OP_BODY(TCOLEXPANDDIV) { expand_down(core, operands, Instr::VDIV, kSpreadReals); }
TILE_OP_BODY(TCOLEXPANDMAX) { expand_down(core, operands, Instr::VMAX, kSpreadTypes); }
TILE_OP_BODY(TCOLEXPANDMIN) { expand_down(core, operands, Instr::VMIN, kSpreadTypes); }
TILE_OP_BODY(TCOLEXPANDEXPDIF) { expand_down(core, operands, Instr::VSUB, kSpreadReals, true); }

TILE_OP_BODY(TCOLEXPAND) {
    const TileRef &dst = operands[0].tile, &src = operands[1].tile;
    if (type_size(dst.type) > 4 && !core.register_based()) refuse_type(core, dst.type);
    same_type(core, dst, src);
    need_plain_rows(core, dst, "result");
    need_plain_rows(core, src, "source");
    if (is_empty(dst) || is_empty(src)) return;
    need_room(core, src, "source", 1, dst.valid_cols);
    for (int r = 0; r < dst.valid_rows; ++r)
        copy_lines(core, dst.type, {address_of(dst, r)}, {src.address}, 1,
                   int64_t(dst.valid_cols) * type_size(dst.type));
}

TILE_OP_BODY(TROWEXPANDADD) { expand_along(core, operands, Instr::VADD, kSpreadTypes); }
TILE_OP_BODY(TROWEXPANDSUB) { expand_along(core, operands, Instr::VSUB, kSpreadTypes); }
TILE_OP_BODY(TROWEXPANDMUL) { expand_along(core, operands, Instr::VMUL, kSpreadTypes); }
TILE_OP_BODY(TROWEXPANDDIV) { expand_along(core, operands, Instr::VDIV, kSpreadReals); }
TILE_OP_BODY(TROWEXPANDMAX) { expand_along(core, operands, Instr::VMAX, kSpreadTypes); }
TILE_OP_BODY(TROWEXPANDMIN) { expand_along(core, operands, Instr::VMIN, kSpreadTypes); }
TILE_OP_BODY(TROWEXPANDEXPDIF) {
    expand_along(core, operands, Instr::VSUB, kSpreadReals);
    if (is_empty(operands[0].tile)) return;
    barrier(core);
    run(core, Op::TEXP, operands[0], operands[0]);
}

TILE_OP_BODY(TROWEXPAND) {
    const TileRef &dst = operands[0].tile, &src = operands[1].tile;
    if (type_size(dst.type) > 4 && !core.register_based()) refuse_type(core, dst.type);
    same_type(core, dst, src);
    need_plain_rows(core, dst, "result");
    if (src.space != Space::UB || src.inner)
        core.unsupported("TROWEXPAND from a tile that is not a plain vector tile");
    if (is_empty(dst)) return;
    const int size = type_size(dst.type), block = per_block(dst.type);
    auto whole = [](const TileRef &t) {
        return !t.dynamic && t.rows == t.valid_rows && t.cols == t.valid_cols;
    };
    const bool line =
        src.row_major ? src.rows == 1 && src.cols == dst.rows : src.cols == 1 && src.rows == dst.rows;
    const bool into_blocks = size > 1 && whole(dst) && whole(src) && line && dst.cols == block;
    const int step = into_blocks ? 1 : row_step(src);
    if (int64_t(step) * (dst.valid_rows - 1) >= int64_t(src.rows) * src.cols)
        core.kernel_error("TROWEXPAND: %d rows to fill from a source of %d x %d", dst.valid_rows, src.rows,
                          src.cols);
    if (into_blocks && size <= 4) // a block per value: eight values a repeat, sources stay 32-byte aligned
        return portions(src.rows * src.cols / 8, kMostRepeats - 1, [&](int first, int count) {
            core.vector(Instr::VBRCB, dst.type, count, int64_t(count) * 8 * block,
                        VectorOperand(dst.address + uint32_t(first * kRepeatBytes)),
                        VectorOperand(element_address(src, int64_t(first) * 8), 1, 0));
        });
    // bytes go two by two, but not in functions
    const bool pairs = size == 1 && !core.register_based();
    const int64_t count = pairs ? ceil_div(dst.valid_cols, 2) : dst.valid_cols;
    under_count(core, count, [&] {
        for (int r = 0; r < dst.valid_rows; ++r) {
            handshake(core, PipeId::V, PipeId::S);
            uint64_t number = scalar_load(core, element_address(src, int64_t(r) * step), size);
            handshake(core, PipeId::S, PipeId::V);
            if (pairs) number |= number << 8;
            counted(core, {Instr::MOVEV, number}, pairs ? Type::I16 : dst.type, count, row_of(dst, r));
        }
    });
}

} // namespace insight_trace::engine
