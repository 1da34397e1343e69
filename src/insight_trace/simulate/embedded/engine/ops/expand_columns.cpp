// One row of values, spread down the columns.
#include <cstring>

#include "ops/expand.hpp"

namespace insight_trace::engine {
namespace {

// `step(repeat, elements, dst, full, line)` issues what stands for one stretch of elements.
template <class Step> void issue_column_spread(Core &core, const Spread &s, Step step) {
    Type type = s.dst.type;
    int rows = s.dst.valid_rows, cols = s.dst.valid_cols, lanes = per_repeat(type);
    bool fixed_width = fixed_cols(s.dst) && s.dst.valid_cols == s.dst.cols;
    if (!fixed_width && s.dst.rows != 1) { // row by row in count mode
        count_elements(core, cols);
        for (int r = 0; r < rows; ++r)
            step(0, int64_t(cols), VectorOperand(element_address(s.dst, int64_t(r) * s.dst.cols)),
                 VectorOperand(element_address(s.full, int64_t(r) * s.full.cols)),
                 VectorOperand(s.thin.address));
        count_off(core);
        return;
    }
    auto stride = [&](const TileRef &t) { return static_cast<uint16_t>(t.cols / per_block(type)); };
    auto columns = [&](int col, int width) {
        step(rows, int64_t(rows) * width, VectorOperand(element_address(s.dst, col), stride(s.dst)),
             VectorOperand(element_address(s.full, col), stride(s.full)),
             VectorOperand(element_address(s.thin, col), 0));
    };
    if (s.dst.cols < lanes && s.full.cols < lanes) {
        mask_elements(core, cols);
        columns(0, cols);
        mask_all(core);
        return;
    }
    for (int col = 0; col + lanes <= cols; col += lanes) columns(col, lanes);
    if (int rest = cols % lanes) {
        mask_elements(core, rest);
        columns(cols - rest, rest);
        mask_all(core);
    }
}

Spread column_spread(Core &core, const Operands &operands, const char *name,
                     std::initializer_list<Type> types) {
    const TileRef &dst = operands[0].tile, &a = operands[1].tile, &b = operands[2].tile;
    Spread s = same_valid(a, dst) || !same_valid(b, dst) ? Spread{dst, a, b, false} : Spread{dst, b, a, true};
    allow_types(core, name, dst.type, types);
    check_spread(core, name, s);
    if (int64_t(s.thin.rows) * s.thin.cols < dst.valid_cols)
        core.kernel_error("%s: a row of %d values for %d columns", name, s.thin.rows * s.thin.cols,
                          dst.valid_cols);
    return s;
}

void column_expand(Core &core, const Operands &operands, const char *name, Instr instr,
                   std::initializer_list<Type> types) {
    Spread s = column_spread(core, operands, name, types);
    if (is_empty(s.dst)) return;
    issue_column_spread(
        core, s,
        [&](int repeat, int64_t elements, VectorOperand dst, VectorOperand full, VectorOperand line) {
            issue_spread(core, executed(instr), s, repeat, elements, dst, full, line);
        });
}

} // namespace

TILE_OP_BODY(TCOLEXPANDADD) { column_expand(core, operands, "TCOLEXPANDADD", Instr::VADD, kSpreadTypes); }
TILE_OP_BODY(TCOLEXPANDSUB) { column_expand(core, operands, "TCOLEXPANDSUB", Instr::VSUB, kSpreadTypes); }
TILE_OP_BODY(TCOLEXPANDMUL) { column_expand(core, operands, "TCOLEXPANDMUL", Instr::VMUL, kSpreadTypes); }
TILE_OP_BODY(TCOLEXPANDDIV) { column_expand(core, operands, "TCOLEXPANDDIV", Instr::VDIV, kSpreadReals); }
TILE_OP_BODY(TCOLEXPANDMAX) { column_expand(core, operands, "TCOLEXPANDMAX", Instr::VMAX, kSpreadTypes); }
TILE_OP_BODY(TCOLEXPANDMIN) { column_expand(core, operands, "TCOLEXPANDMIN", Instr::VMIN, kSpreadTypes); }

TILE_OP_BODY(TCOLEXPANDEXPDIF) {
    Spread s = column_spread(core, operands, "TCOLEXPANDEXPDIF", kSpreadReals);
    if (is_empty(s.dst)) return;
    if (s.dst.type != Type::F32 && s.dst.type != Type::F16)
        core.unsupported("TCOLEXPANDEXPDIF of %s tiles", type_name(s.dst.type));
    issue_column_spread(
        core, s,
        [&](int repeat, int64_t elements, VectorOperand dst, VectorOperand full, VectorOperand line) {
            issue_spread(core, executed(Instr::VSUB), s, repeat, elements, dst, full, line);
            core.barrier(PipeId::V);
            if (repeat)
                core.vector(executed(Instr::VEXP), s.dst.type, repeat, elements, dst, dst);
            else
                counted(core, executed(Instr::VEXP), s.dst.type, elements, dst, dst);
        });
}

TILE_OP_BODY(TCOLEXPAND) {
    const TileRef &dst = operands[0].tile, &src = operands[1].tile;
    if (type_size(dst.type) > 4 && !core.register_based())
        core.unsupported("TCOLEXPAND of %s tiles", type_name(dst.type));
    same_type(core, "TCOLEXPAND", dst, src);
    need_plain_rows(core, "TCOLEXPAND", dst, "result");
    need_plain_rows(core, "TCOLEXPAND", src, "source");
    if (is_empty(dst) || is_empty(src)) return;
    if (src.cols < dst.valid_cols)
        core.kernel_error("TCOLEXPAND: a row of %d values for %d columns", src.cols, dst.valid_cols);
    int size = type_size(dst.type);
    for (int r = 0; r < dst.valid_rows; ++r)
        copy_lines(core, dst.type, {element_address(dst, int64_t(r) * dst.cols)}, {src.address}, 1,
                   int64_t(dst.valid_cols) * size);
}

} // namespace insight_trace::engine
