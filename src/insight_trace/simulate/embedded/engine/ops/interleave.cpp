// Two tiles interleaved element by element, and apart again. An a5 op: one register instruction per repeat.
#include <vector>

#include "ops/steps.hpp"

namespace insight_trace::engine {
namespace {

void check_interleave(const Core &core, Op op, const Operands &operands) {
    const char *name = op_names[static_cast<int>(op)];
    const TileRef &like = operands[1].tile;
    if (type_size(like.type) > 4) core.unsupported("%s of %s tiles", name, type_name(like.type));
    for (uint32_t i = 0; i < operands.count; ++i) {
        same_type(core, name, like, operands[i].tile);
        need_plain_rows(core, name, operands[i].tile, "tile");
        int needed = like.valid_cols * (i == 2 && operands.count == 3 ? 2 : 1);
        if (operands[i].tile.rows < like.valid_rows || operands[i].tile.cols < needed)
            core.kernel_error("%s: a tile of %d x %d is too small", name, operands[i].tile.rows,
                              operands[i].tile.cols);
    }
    // with an odd number the halves of a row share their middle when they come together, but not apart
    if (like.valid_cols % 2 && op == Op::TDEINTERLEAVE)
        core.kernel_error("%s: %d columns are not even", name, like.valid_cols);
}

template <class T> std::vector<T> row_of(Core &core, const TileRef &tile, int row, int count) {
    View<T> view(core, tile, row + 1, count);
    const T *first = view.data + int64_t(row) * tile.cols;
    return std::vector<T>(first, first + count);
}

// Each half of the columns in repeats, for every row.
void issue_halves(Core &core, Instr instr, const TileRef &dst1, const TileRef &dst0,
                  std::initializer_list<const TileRef *> sources) {
    const TileRef &src0 = **sources.begin();
    int lanes = per_repeat(dst0.type), half = dst0.valid_cols / 2;
    for (int r = 0; r < dst0.valid_rows; ++r)
        for (const TileRef *dst : {&dst0, &dst1})
            for (int c = 0; c < half; c += lanes) {
                const int64_t width = 2 * std::min(lanes, half - c);
                for (const TileRef *src : sources)
                    core.also(kReads, src->space, src->type, part_of(*src, r, 0, 1, src->valid_cols), false);
                core.vector(instr, dst->type, 1, width,
                            VectorOperand(element_address(*dst, int64_t(r) * dst->cols + 2 * c))
                                .spanning(width * type_size(dst->type)),
                            VectorOperand(element_address(src0, int64_t(r) * src0.cols + c)).elsewhere());
            }
}

} // namespace

// (dst1, dst0, src1, src0): the first halves of the rows go to dst0, the second ones to dst1.
TILE_OP_BODY(TINTERLEAVE) {
    check_interleave(core, Op::TINTERLEAVE, operands);
    const TileRef &dst1 = operands[0].tile, &dst0 = operands[1].tile, &src1 = operands[2].tile,
                  &src0 = operands[3].tile;
    if (core.computes)
        with_bits(dst0.type, [&](auto tag) {
            using T = decltype(tag);
            int rows = dst0.valid_rows, cols = dst0.valid_cols, half = cols / 2;
            View<T> high(core, dst1, rows, cols), low(core, dst0, rows, cols);
            for (int r = 0; r < rows; ++r) {
                std::vector<T> a = row_of<T>(core, src0, r, cols), b = row_of<T>(core, src1, r, cols);
                for (int c = 0; c < cols; ++c) {
                    low.at(r, c) = (c % 2 ? b : a)[size_t(c / 2)];
                    high.at(r, c) = (c % 2 ? b : a)[size_t(half + c / 2)];
                }
            }
        });
    issue_halves(core, Instr::VINTLV, dst1, dst0, {&src0, &src1});
}

// (dst1, dst0, src1, src0): even columns of src0, then of src1, to dst0; odd ones to dst1. (dst1, dst0, src):
// of a source twice as wide.
TILE_OP_BODY(TDEINTERLEAVE) {
    check_interleave(core, Op::TDEINTERLEAVE, operands);
    const TileRef &dst1 = operands[0].tile, &dst0 = operands[1].tile;
    bool single = operands.count == 3;
    const TileRef &first = operands[single ? 2 : 3].tile, &second = operands[2].tile;
    if (core.computes)
        with_bits(dst0.type, [&](auto tag) {
            using T = decltype(tag);
            int rows = dst0.valid_rows, cols = dst0.valid_cols;
            View<T> odd(core, dst1, rows, cols), even(core, dst0, rows, cols);
            for (int r = 0; r < rows; ++r) {
                std::vector<T> line = row_of<T>(core, first, r, single ? 2 * cols : cols);
                if (!single) {
                    std::vector<T> rest = row_of<T>(core, second, r, cols);
                    line.insert(line.end(), rest.begin(), rest.end());
                }
                for (int c = 0; c < cols; ++c) {
                    even.at(r, c) = line[size_t(2 * c)];
                    odd.at(r, c) = line[size_t(2 * c + 1)];
                }
            }
        });
    issue_halves(core, Instr::VDINTLV, dst1, dst0, {&first, &second});
}

} // namespace insight_trace::engine
