// Two tiles side by side.
#include <cstring>

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

int64_t whole_blocks(int64_t bytes) { return ceil_div(bytes, kBlockBytes) * kBlockBytes; }

void put(Core &core, const TileRef &dst, int row, int col, const TileRef &src, int count) {
    int size = type_size(dst.type);
    if (count <= 0) return;
    std::memmove(
        core.local(dst.space, element_address(dst, int64_t(row) * dst.cols + col), uint64_t(count * size)),
        core.local(src.space, element_address(src, int64_t(row) * src.cols), uint64_t(count * size)),
        size_t(count * size));
}

void concat_valid(Core &core, const TileRef &dst, const TileRef &a, const TileRef &b) {
    int rows = dst.valid_rows, first = a.valid_cols, second = b.valid_cols;
    int size = type_size(dst.type);
    if (first + second > dst.cols)
        core.kernel_error("TCONCAT: %d and %d columns do not fit the %d of the result", first, second,
                          dst.cols);
    if (core.computes)
        for (int r = 0; r < rows; ++r) {
            put(core, dst, r, 0, a, first);
            put(core, dst, r, first, b, second);
        }
    auto copy = [&](const TileRef &src, int col, int count) {
        for (int r = 0; r < rows; ++r)
            core.move(Instr::MOV_UB_TO_UB, dst.type, element_address(dst, int64_t(r) * dst.cols + col),
                      element_address(src, int64_t(r) * src.cols), 1, whole_blocks(int64_t(count) * size));
    };
    copy(a, 0, first);
    if (first % per_block(dst.type) == 0) {
        copy(b, first, second);
        return;
    }
    handshake(core, PipeId::V, PipeId::S);
    handshake(core, PipeId::MTE2, PipeId::S);
    for (int r = 0; r < rows; ++r)
        for (int c = 0; c < second; ++c) {
            scalar_load(core, element_address(b, int64_t(r) * b.cols + c));
            scalar_store(core, element_address(dst, int64_t(r) * dst.cols + first + c));
        }
}

// How many bytes of indices each row of a source has stands in an index tile.
int row_count(Core &core, const TileRef &idx, int row) {
    return with_type(idx.type, [&](auto tag) -> int {
        using T = decltype(tag);
        if constexpr (std::is_integral_v<T>) {
            auto bytes = View<T>(core, idx, row + 1, 1).at(row, 0);
            return static_cast<int>(static_cast<uint64_t>(bytes) / sizeof(T));
        } else
            core.unsupported("TCONCAT with %s counts", type_name(idx.type));
    });
}

void copy_stretch(Core &core, const TileRef &dst, int64_t at, const TileRef &src, int64_t from, int count) {
    Type type = type_size(dst.type) == 4 ? Type::I32 : Type::I16;
    int lanes = per_repeat(dst.type), repeats = static_cast<int>(ceil_div(count, lanes));
    if (repeats > 1)
        core.vector(Instr::VCOPY, type, repeats - 1, int64_t(repeats - 1) * lanes,
                    VectorOperand(element_address(dst, at)), VectorOperand(element_address(src, from)));
    int64_t done = int64_t(std::max(0, repeats - 1)) * lanes;
    mask_elements(core, count - done);
    core.vector(Instr::VCOPY, type, 1, count - done, VectorOperand(element_address(dst, at + done)),
                VectorOperand(element_address(src, from + done)));
    mask_all(core);
}

void concat_counted(Core &core, const TileRef &dst, const TileRef &a, const TileRef &b,
                    const TileRef *dst_count, const TileRef &a_count, const TileRef &b_count) {
    int width = dst.valid_cols;
    for (int r = 0; r < dst.valid_rows; ++r) {
        handshake(core, PipeId::MTE2, PipeId::S);
        scalar_load(core, element_address(a_count, int64_t(r) * row_step(a_count)));
        scalar_load(core, element_address(b_count, int64_t(r) * row_step(b_count)));
        int asked_a = core.computes ? row_count(core, a_count, r) : a.valid_cols;
        int asked_b = core.computes ? row_count(core, b_count, r) : b.valid_cols;
        int first = std::min(asked_a, width), second = std::min(asked_b, width - first);
        if (dst_count) {
            uint32_t at = element_address(*dst_count, int64_t(r) * row_step(*dst_count));
            if (core.computes) {
                size_t size = size_t(type_size(dst_count->type));
                uint64_t bytes = uint64_t(std::min(asked_a + asked_b, width)) * size;
                std::memcpy(core.local(dst_count->space, at, size), &bytes, size);
            }
            scalar_store(core, at);
        }
        if (core.computes) {
            put(core, dst, r, 0, a, first);
            put(core, dst, r, first, b, second);
        }
        handshake(core, PipeId::S, PipeId::V);
        copy_stretch(core, dst, int64_t(r) * dst.cols, a, int64_t(r) * a.cols, first);
        if (first % per_block(dst.type) == 0) {
            copy_stretch(core, dst, int64_t(r) * dst.cols + first, b, int64_t(r) * b.cols, second);
            continue;
        }
        handshake(core, PipeId::V, PipeId::S);
        for (int c = 0; c < second; ++c) {
            scalar_load(core, element_address(b, int64_t(r) * b.cols + c));
            scalar_store(core, element_address(dst, int64_t(r) * dst.cols + first + c));
        }
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
