// How element-wise ops walk a tile, and which vector instructions that walk is on the hardware.
#pragma once

#include "elements.hpp"

namespace insight_trace::engine {

// The shape of the instructions for an element-wise op over dst's valid part: contiguous data is one run of
// full repeats and a masked tail, or count mode past 255 repeats; a narrow tile is one instruction with a row
// stride; anything else is one instruction per 256-byte column group with one repeat per row.
inline void issue_elementwise(Core &core, Instr instr, const TileRef &dst, const TileRef *src0,
                              const TileRef *src1) {
    int size = type_size(dst.type);
    int per_repeat = 256 / size, per_block = 32 / size;
    int rows = dst.row_major ? dst.valid_rows : dst.valid_cols;
    int cols = dst.row_major ? dst.valid_cols : dst.valid_rows;
    int pitch = dst.row_major ? dst.cols : dst.rows;
    if (rows <= 0 || cols <= 0) return;
    auto operand = [&](const TileRef *tile, uint32_t offset, uint16_t repeat_stride) {
        if (!tile) return VectorOperand();
        return VectorOperand(tile->address + offset, repeat_stride);
    };
    if (cols == pitch || rows == 1) { // contiguous
        int64_t total = int64_t(rows) * cols;
        int64_t full = total / per_repeat;
        if (full > 255 || (total % per_repeat != 0 && full > 0)) {
            core.vector_count(instr, dst.type, total, operand(&dst, 0, 8), operand(src0, 0, 8),
                              operand(src1, 0, 8));
            return;
        }
        if (full)
            core.vector(instr, dst.type, int(full), full * per_repeat, operand(&dst, 0, 8),
                        operand(src0, 0, 8), operand(src1, 0, 8));
        else
            core.vector(instr, dst.type, 1, total, operand(&dst, 0, 8), operand(src0, 0, 8),
                        operand(src1, 0, 8));
        return;
    }
    auto stride = [&](const TileRef *tile) {
        if (!tile) return uint16_t(0);
        int own = tile->row_major ? tile->cols : tile->rows;
        return static_cast<uint16_t>(own / per_block);
    };
    for (int col = 0; col < cols; col += per_repeat) {
        int width = std::min(per_repeat, cols - col);
        uint32_t offset = static_cast<uint32_t>(col * size);
        core.vector(instr, dst.type, rows, int64_t(rows) * width, operand(&dst, offset, stride(&dst)),
                    operand(src0, offset, stride(src0)), operand(src1, offset, stride(src1)));
    }
}

template <class Body> void binary(Core &core, const Operands &operands, Instr instr, Body body) {
    const TileRef &dst = operands[0].tile, &a = operands[1].tile, &b = operands[2].tile;
    if (core.computes)
        with_type(dst.type, [&](auto tag) {
            using T = decltype(tag);
            View<T> to(core, dst), x(core, a), y(core, b);
            for (int r = 0; r < dst.valid_rows; ++r)
                for (int c = 0; c < dst.valid_cols; ++c)
                    to.at(r, c) = T(body(Wide<T>(x.at(r, c)), Wide<T>(y.at(r, c))));
        });
    issue_elementwise(core, instr, dst, &a, &b);
}

} // namespace insight_trace::engine
