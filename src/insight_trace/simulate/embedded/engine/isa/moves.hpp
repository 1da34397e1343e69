// Copies between places of one core that tile ops issue.
#pragma once

#include "core.hpp"

namespace insight_trace::engine {

// Lines of UB: where the first begins, and bytes from one to the next.
struct LinesOfUb {
    uint32_t address;
    int64_t step = 0;
};

// MOV_UB_TO_UB of `count` lines. The unit copies whole blocks of 32 bytes; the functions of the 950 store as
// many bytes as are asked for.
void copy_lines(Core &core, Type type, LinesOfUb to, LinesOfUb from, int64_t count, int64_t bytes);

// SET_L1_2D: `count` pieces of `bytes`, `step` bytes apart, filled with an element; `charged` repeats.
void fill_matrix(Core &core, Type type, uint32_t address, int64_t count, int64_t bytes, int64_t step,
                 uint64_t element, int64_t charged);

// Along which direction neighbouring elements of a tile lie side by side, and for how long.
struct RunShape {
    bool along_rows; // true: (r, c) and (r + 1, c) are neighbours
    int64_t length;  // elements before the run breaks; aligned to multiples of it
};
RunShape run_shape(const TileRef &tile);

// dst(to + (r, c)) = src(from + (r, c)) for r < rows, c < cols, whatever the two layouts, bytes as they are:
// what the units between memories do. The caller issues the instruction. `dst` lies in `owner`'s memory;
// null: nobody runs there, and nothing is written.
struct Corner {
    int64_t row = 0, col = 0;
};
void copy_part(Core *owner, const TileRef &dst, Corner to, Core &core, const TileRef &src, Corner from,
               int64_t rows, int64_t cols);

// Patches of a feature map as rows of the left operand: LOAD_L1_TO_L0A_3Dv2.
void load_patches(Core &core, const Operands &operands);
// The same of elements of four bits, to the first corner of `dst`.
void copy_nibbles(Core &core, const TileRef &dst, const TileRef &src, Corner from, int64_t rows,
                  int64_t cols);
// A row of 16-bit floats as floats, into the bias table.
void widen_floats(Core &core, const TileRef &dst, const TileRef &src, int64_t count);

} // namespace insight_trace::engine
