// Two tiles side by side.
#include "ops/steps.hpp"

namespace insight_trace::engine {
namespace {

void check_concat(const Core &core, const char *name, const TileRef &dst, const TileRef &a,
                  const TileRef &b) {
    if (type_size(dst.type) > 4) core.unsupported("%s of %s tiles", name, type_name(dst.type));
    same_type(core, name, dst, a);
    same_type(core, name, dst, b);
    need_plain_rows(core, name, dst, "result");
    need_plain_rows(core, name, a, "first source");
    need_plain_rows(core, name, b, "second source");
    if (a.rows < dst.valid_rows || b.rows < dst.valid_rows)
        core.kernel_error("%s: sources of %d and %d rows for a result of %d", name, a.rows, b.rows,
                          dst.valid_rows);
}

// Elements one by one on the scalar unit.
void copy_by_scalar(Core &core, const TileRef &dst, int64_t to, const TileRef &src, int64_t from, int count) {
    const int size = type_size(dst.type);
    for (int c = 0; c < count; ++c)
        scalar_store(core, element_address(dst, to + c),
                     scalar_load(core, element_address(src, from + c), size), size);
}

void concat_valid(Core &core, const TileRef &dst, const TileRef &a, const TileRef &b) {
    int rows = dst.valid_rows, first = a.valid_cols, second = b.valid_cols;
    int size = type_size(dst.type);
    if (first + second > dst.cols)
        core.kernel_error("TCONCAT: %d and %d columns do not fit the %d of the result", first, second,
                          dst.cols);
    auto copy = [&](const TileRef &src, int col, int count) {
        for (int r = 0; r < rows; ++r)
            copy_lines(core, dst.type, {element_address(dst, int64_t(r) * dst.cols + col)},
                       {element_address(src, int64_t(r) * src.cols)}, 1, int64_t(count) * size);
    };
    copy(a, 0, first);
    if (first % per_block(dst.type) == 0) {
        copy(b, first, second);
        return;
    }
    handshake(core, PipeId::V, PipeId::S);
    handshake(core, PipeId::MTE2, PipeId::S);
    for (int r = 0; r < rows; ++r)
        copy_by_scalar(core, dst, int64_t(r) * dst.cols + first, b, int64_t(r) * b.cols, second);
}

// How many elements of a row are asked for: an index tile has the bytes that their indices take.
int asked_for(Core &core, const TileRef &counts, int row, const TileRef &src) {
    const int size = type_size(counts.type);
    const uint64_t bytes = scalar_load(core, element_address(counts, int64_t(row) * row_step(counts)), size);
    return core.computes ? static_cast<int>(bytes / uint64_t(size)) : src.valid_cols;
}

// Bytes are copied two at a time.
void copy_stretch(Core &core, const TileRef &dst, int64_t at, const TileRef &src, int64_t from, int count) {
    const int size = type_size(dst.type), unit = size == 4 ? 4 : 2;
    const Type type = unit == 4 ? Type::I32 : Type::I16;
    const int lanes = per_repeat(dst.type), repeats = static_cast<int>(ceil_div(count, lanes));
    const Operation copy = executed(Instr::VCOPY);
    if (repeats > 1)
        core.vector(copy, type, repeats - 1, int64_t(repeats - 1) * kRepeatBytes / unit,
                    VectorOperand(element_address(dst, at)), VectorOperand(element_address(src, from)));
    const int64_t done = int64_t(std::max(0, repeats - 1)) * lanes;
    const int64_t rest = ceil_div((count - done) * size, unit);
    mask_elements(core, int(rest));
    core.vector(copy, type, 1, rest, VectorOperand(element_address(dst, at + done)),
                VectorOperand(element_address(src, from + done)));
    mask_all(core);
}

void concat_counted(Core &core, const TileRef &dst, const TileRef &a, const TileRef &b,
                    const TileRef *dst_count, const TileRef &a_count, const TileRef &b_count) {
    int width = dst.valid_cols;
    for (const TileRef *counts : {&a_count, &b_count})
        if (counts->type == Type::F32 || counts->type == Type::F16 || counts->type == Type::BF16)
            core.unsupported("TCONCAT with %s counts", type_name(counts->type));
    for (int r = 0; r < dst.valid_rows; ++r) {
        handshake(core, PipeId::MTE2, PipeId::S);
        const int asked_a = asked_for(core, a_count, r, a), asked_b = asked_for(core, b_count, r, b);
        int first = std::min(asked_a, width), second = std::min(asked_b, width - first);
        if (dst_count) {
            const int size = type_size(dst_count->type);
            scalar_store(core, element_address(*dst_count, int64_t(r) * row_step(*dst_count)),
                         uint64_t(std::min(asked_a + asked_b, width)) * uint64_t(size), size);
        }
        handshake(core, PipeId::S, PipeId::V);
        copy_stretch(core, dst, int64_t(r) * dst.cols, a, int64_t(r) * a.cols, first);
        if (first % per_block(dst.type) == 0) {
            copy_stretch(core, dst, int64_t(r) * dst.cols + first, b, int64_t(r) * b.cols, second);
            continue;
        }
        handshake(core, PipeId::V, PipeId::S);
        copy_by_scalar(core, dst, int64_t(r) * dst.cols + first, b, int64_t(r) * b.cols, second);
        handshake(core, PipeId::S, PipeId::V);
        handshake(core, PipeId::S, PipeId::MTE3);
    }
}

} // namespace

// (dst, a, b), with counts per row (…, a_count, b_count) and with the resulting count (…, dst_count, …)
TILE_OP_BODY(TCONCAT) {
    const TileRef &dst = operands[0].tile, &a = operands[1].tile, &b = operands[2].tile;
    check_concat(core, "TCONCAT", dst, a, b);
    if (dst.valid_rows <= 0) return;
    if (operands.count == 3)
        concat_valid(core, dst, a, b);
    else if (operands.count == 5)
        concat_counted(core, dst, a, b, nullptr, operands[3].tile, operands[4].tile);
    else
        concat_counted(core, dst, a, b, &operands[3].tile, operands[4].tile, operands[5].tile);
}

} // namespace insight_trace::engine
