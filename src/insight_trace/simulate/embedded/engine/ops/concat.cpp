// Tiles side by side, and interleaved element by element and apart again.
#include "ops/steps.hpp"

namespace insight_trace::engine {
namespace {

// Part of a row, from a column on.
struct Stretch {
    const TileRef &tile;
    int row, col;
    uint32_t address(int64_t more = 0) const { return address_of(tile, row, col + more); }
};

// Elements one by one on the scalar unit.
void copy_by_scalar(Core &core, Stretch to, Stretch from, int count) {
    for (int c = 0; c < count; ++c)
        copy_element(core, to.address(c), from.address(c), type_size(to.tile.type));
}

// On the vector unit; bytes two at a time.
void copy_by_vector(Core &core, Stretch to, Stretch from, int count) {
    const int size = type_size(to.tile.type), unit = size == 4 ? 4 : 2;
    const Type type = unit == 4 ? Type::I32 : Type::I16;
    const int lanes = per_repeat(to.tile.type), full = std::max(0, int(ceil_div(count, lanes)) - 1);
    if (full)
        core.vector(Instr::VCOPY, type, full, int64_t(full) * kRepeatBytes / unit,
                    VectorOperand(to.address()), VectorOperand(from.address()));
    const int done = full * lanes;
    const auto rest = static_cast<int>(ceil_div(int64_t(count - done) * size, unit));
    under_mask(core, rest, [&] {
        core.vector(Instr::VCOPY, type, 1, rest, VectorOperand(to.address(done)),
                    VectorOperand(from.address(done)));
    });
}

void concat_valid(Core &core, const TileRef &dst, const TileRef &a, const TileRef &b) {
    const int rows = dst.valid_rows, first = a.valid_cols, second = b.valid_cols;
    need_room(core, dst, "result", rows, int64_t(first) + second);
    auto copy = [&](const TileRef &src, int col, int count) {
        for (int r = 0; r < rows; ++r)
            copy_lines(core, dst.type, {address_of(dst, r, col)}, {address_of(src, r)}, 1,
                       int64_t(count) * type_size(dst.type));
    };
    copy(a, 0, first);
    if (first % per_block(dst.type) == 0) return copy(b, first, second);
    handshake(core, PipeId::V, PipeId::S);
    handshake(core, PipeId::MTE2, PipeId::S);
    for (int r = 0; r < rows; ++r) copy_by_scalar(core, {dst, r, first}, {b, r, 0}, second);
}

// How many elements of a row are asked for: an index tile has the bytes that their indices take.
int asked_for(Core &core, const TileRef &counts, int row, const TileRef &src) {
    const int size = type_size(counts.type);
    const uint64_t bytes = scalar_load(core, element_address(counts, int64_t(row) * row_step(counts)), size);
    return core.computes ? static_cast<int>(bytes / uint64_t(size)) : src.valid_cols;
}

void concat_counted(Core &core, const TileRef &dst, const TileRef &a, const TileRef &b,
                    const TileRef *dst_count, const TileRef &a_count, const TileRef &b_count) {
    const int width = dst.valid_cols;
    for (const TileRef *counts : {&a_count, &b_count})
        if (is_real_type(counts->type)) core.unsupported("TCONCAT with %s counts", type_name(counts->type));
    for (int r = 0; r < dst.valid_rows; ++r) {
        handshake(core, PipeId::MTE2, PipeId::S);
        const int asked_a = asked_for(core, a_count, r, a), asked_b = asked_for(core, b_count, r, b);
        const int first = std::min(asked_a, width), second = std::min(asked_b, width - first);
        if (dst_count) {
            const int size = type_size(dst_count->type);
            scalar_store(core, element_address(*dst_count, int64_t(r) * row_step(*dst_count)),
                         uint64_t(std::min(asked_a + asked_b, width)) * uint64_t(size), size);
        }
        handshake(core, PipeId::S, PipeId::V);
        copy_by_vector(core, {dst, r, 0}, {a, r, 0}, first);
        if (first % per_block(dst.type) == 0) {
            copy_by_vector(core, {dst, r, first}, {b, r, 0}, second);
            continue;
        }
        handshake(core, PipeId::V, PipeId::S);
        copy_by_scalar(core, {dst, r, first}, {b, r, 0}, second);
        handshake(core, PipeId::S, PipeId::V);
        handshake(core, PipeId::S, PipeId::MTE3);
    }
}

void check_interleave(const Core &core, const Operands &operands) {
    if (!core.register_based()) core.unsupported("%s on this chip", core.op);
    const TileRef &like = operands[1].tile;
    if (type_size(like.type) > 4) refuse_type(core, like.type);
    for (uint32_t i = 0; i < operands.count; ++i) {
        same_type(core, like, operands[i].tile);
        need_plain_rows(core, operands[i].tile, "tile");
        need_room(core, operands[i].tile, "tile", like.valid_rows,
                  like.valid_cols * (i == 2 && operands.count == 3 ? 2 : 1));
    }
}

// One instruction that works on `elements` of the result.
void interleave(Core &core, const Operation &instr, VectorOperand dst, Type type, int64_t elements,
                VectorOperand src0, VectorOperand src1, int64_t read) {
    const int64_t size = type_size(type);
    core.vector_counted(instr, type, elements, dst.spanning(elements * size), src0.spanning(read * size),
                        src1.used ? src1.spanning(read * size) : src1);
}

} // namespace

// (dst, a, b), with counts per row (…, a_count, b_count) and with the resulting count (…, dst_count, …)
TILE_OP_BODY(TCONCAT) {
    const TileRef &dst = operands[0].tile, &a = operands[1].tile, &b = operands[2].tile;
    if (type_size(dst.type) > 4) refuse_type(core, dst.type);
    need_plain_rows(core, dst, "result");
    for (const TileRef *source : {&a, &b}) {
        same_type(core, dst, *source);
        need_plain_rows(core, *source, "source");
        need_room(core, *source, "source", dst.valid_rows, 0);
    }
    if (dst.valid_rows <= 0) return;
    const uint32_t counts = operands.count - 2; // the last two, where there are more than three
    if (operands.count == 3)
        concat_valid(core, dst, a, b);
    else
        concat_counted(core, dst, a, b, counts == 4 ? &operands[3].tile : nullptr, operands[counts].tile,
                       operands[counts + 1].tile);
}

// (dst1, dst0, src1, src0): the first halves of the rows go to dst0, the second ones to dst1. With an odd
// number the halves share their middle.
TILE_OP_BODY(TINTERLEAVE) {
    check_interleave(core, operands);
    const TileRef &dst1 = operands[0].tile, &dst0 = operands[1].tile, &src1 = operands[2].tile,
                  &src0 = operands[3].tile;
    const int cols = dst0.valid_cols, step = 2 * per_repeat(dst0.type);
    for (int r = 0; r < dst0.valid_rows; ++r)
        for (const TileRef *dst : {&dst0, &dst1})
            portions(cols, step, [&](int c, int width) {
                const int first = (dst == &dst1 ? cols / 2 : 0) + c / 2;
                interleave(core, Instr::VINTLV, row_of(*dst, r, c), dst->type, width, row_of(src0, r, first),
                           row_of(src1, r, first), (width + 1) / 2);
            });
}

// (dst1, dst0, src1, src0): even columns of src0, then of src1, to dst0; odd ones to dst1. (dst1, dst0, src):
// of a source twice as wide.
TILE_OP_BODY(TDEINTERLEAVE) {
    check_interleave(core, operands);
    const TileRef &dst1 = operands[0].tile, &dst0 = operands[1].tile;
    if (dst0.valid_cols % 2) core.kernel_error("%s: %d columns are not even", core.op, dst0.valid_cols);
    const bool single = operands.count == 3;
    const int half = dst0.valid_cols / 2;
    for (int r = 0; r < dst0.valid_rows; ++r)
        for (const TileRef *dst : {&dst0, &dst1})
            for (int part = 0; part < 2; ++part) {
                const TileRef &src = operands[single || part ? 2 : 3].tile;
                const int from = single ? part * dst0.valid_cols : 0;
                portions(half, per_repeat(dst0.type), [&](int c, int width) {
                    interleave(core, {Instr::VDINTLV, 0, dst == &dst1}, row_of(*dst, r, part * half + c),
                               dst->type, width, row_of(src, r, from + 2 * c), {}, 2 * width);
                });
            }
}

} // namespace insight_trace::engine
