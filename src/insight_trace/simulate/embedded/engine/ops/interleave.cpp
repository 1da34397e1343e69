// Two tiles interleaved element by element, and apart again: the 950 has it.
#include "ops/steps.hpp"

namespace insight_trace::engine {
namespace {

void check_interleave(const Core &core, Op op, const Operands &operands) {
    const char *name = op_names[static_cast<int>(op)];
    if (!core.register_based()) core.unsupported("%s on this chip", name);
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

// One instruction that works on `elements` of the result.
void one(Core &core, const Operation &instr, const TileRef &dst, int64_t to, int64_t elements,
         const TileRef &src0, int64_t from, const TileRef *src1, int64_t read) {
    const int64_t size = type_size(dst.type);
    auto source = [&](const TileRef &tile) {
        return VectorOperand(element_address(tile, from)).spanning(read * size);
    };
    core.vector_counted(instr, dst.type, elements,
                        VectorOperand(element_address(dst, to)).spanning(elements * size), source(src0),
                        src1 ? source(*src1) : VectorOperand());
}

} // namespace

// (dst1, dst0, src1, src0): the first halves of the rows go to dst0, the second ones to dst1.
TILE_OP_BODY(TINTERLEAVE) {
    check_interleave(core, Op::TINTERLEAVE, operands);
    const TileRef &dst1 = operands[0].tile, &dst0 = operands[1].tile, &src1 = operands[2].tile,
                  &src0 = operands[3].tile;
    const int cols = dst0.valid_cols, step = 2 * per_repeat(dst0.type);
    for (int64_t r = 0; r < dst0.valid_rows; ++r)
        for (const TileRef *dst : {&dst0, &dst1})
            for (int c = 0; c < cols; c += step) {
                const int width = std::min(step, cols - c), first = (dst == &dst1 ? cols / 2 : 0) + c / 2;
                one(core, executed(Instr::VINTLV), *dst, r * dst->cols + c, width, src0,
                    r * src0.cols + first, &src1, (width + 1) / 2);
            }
}

// (dst1, dst0, src1, src0): even columns of src0, then of src1, to dst0; odd ones to dst1. (dst1, dst0, src):
// of a source twice as wide.
TILE_OP_BODY(TDEINTERLEAVE) {
    check_interleave(core, Op::TDEINTERLEAVE, operands);
    const TileRef &dst1 = operands[0].tile, &dst0 = operands[1].tile;
    const bool single = operands.count == 3;
    const int half = dst0.valid_cols / 2, step = per_repeat(dst0.type);
    for (int64_t r = 0; r < dst0.valid_rows; ++r)
        for (const TileRef *dst : {&dst0, &dst1})
            for (int part = 0; part < 2; ++part) {
                const TileRef &src = operands[single || part ? 2 : 3].tile;
                const int64_t row = r * src.cols + (single ? part * dst0.valid_cols : 0);
                for (int c = 0; c < half; c += step) {
                    const int width = std::min(step, half - c);
                    one(core, executed(Instr::VDINTLV, 0, dst == &dst1), *dst,
                        r * dst->cols + part * half + c, width, src, row + 2 * c, nullptr, 2 * width);
                }
            }
}

} // namespace insight_trace::engine
