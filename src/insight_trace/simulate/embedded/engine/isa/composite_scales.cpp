// Scales of groups into boxes.
#include <cstring>

#include "elements.hpp"
#include "isa/composites.hpp"

namespace insight_trace::engine {

// Scales of groups, packed row by row, into boxes of 16 by 2. `down`: groups lay along columns, so a row of
// the source is a column of the boxes.
void scales_to_boxes(Core &core, const TileRef &dst, const TileRef &src, bool down) {
    if (!core.register_based() || dst.inner != 1 || !dst.row_major || dst.fractal != 32 || src.inner != 0 ||
        !src.row_major || type_size(dst.type) != 1 || type_size(src.type) != 1)
        core.unsupported("TMOV with a scratch tile between these tiles");
    const int64_t lines = down ? src.valid_cols : dst.valid_rows,
                  groups = down ? src.valid_rows : dst.valid_cols;
    // a device reads them without gaps, whatever the tile's width: rows with gaps would be read wrongly there
    if (src.rows > 1 && src.cols != (down ? lines : groups))
        core.kernel_error(
            "TMOV into boxes of scales reads %lld scales a row without gaps, but the rows of its "
            "%d x %d source lie %d apart: make the source one row, or as wide as its scales",
            (long long)(down ? lines : groups), src.rows, src.cols, src.cols);
    const int64_t blocks = (lines + 15) / 16, pairs = groups / 2;
    if (core.computes && lines > 0 && pairs > 0) {
        const uint64_t bytes = uint64_t(blocks * pairs * 32);
        uint8_t *to = core.local(Space::UB, dst.address, bytes);
        uint8_t *from = core.local(Space::UB, src.address, bytes);
        if (!down) memset(from + lines * groups, 0, size_t(blocks * 16 - lines) * size_t(groups));
        for (int64_t block = 0; block < blocks; ++block)
            for (int64_t pair = 0; pair < pairs; ++pair)
                for (int64_t i = 0; i < 32; ++i) {
                    const int64_t line = block * 16 + i / 2, group = pair * 2 + i % 2;
                    to[(block * pairs + pair) * 32 + i] =
                        down ? (line < lines ? from[group * lines + line]
                                             : to[(block * pairs + pair) * 32 + i])
                             : from[line * groups + group];
                }
    }
    core.vector(issued_only(Instr::VCONV), Type::U8, static_cast<int>((lines * groups + 255) / 256),
                lines * groups, VectorOperand(dst.address), VectorOperand(src.address));
}

} // namespace insight_trace::engine
