// Which vector instructions an element-wise op over the valid part of a tile is on the hardware.
//
// The library that kernels are written against chooses between five shapes: one run of full repeats and a
// masked tail; one instruction in count mode; count mode line by line; full repeats line by line; and one
// repeat per line, column group by column group. The choice depends on the size of the tile, on its valid
// size and on whether the valid size is known when the kernel is compiled; it decides the op's time, so it is
// followed here.
#pragma once

#include "elements.hpp"

namespace insight_trace::engine {

constexpr int kRepeatBytes = 256;

// A tile without boxes as lines of consecutive elements: its rows, or its columns when it is column major.
struct Lines {
    uint32_t address;
    int lines, width;      // valid
    int tile_lines, pitch; // of the whole tile; pitch: elements from one line to the next
    bool rows;             // lines are rows
    bool fixed_width;      // the valid width is part of the tile's type
    int size;              // bytes of an element

    bool whole_width() const { return width == pitch; }
    int blocks() const { return pitch * size / 32; } // from one line to the next
    // The same bytes as elements of another size (bitwise instructions know only 16-bit elements).
    Lines as(int other) const;
    // An element, as the place of an operand whose repeats are `stride` blocks apart.
    VectorOperand at(int64_t line, int64_t column = 0, int64_t stride = 8) const {
        return VectorOperand(address + static_cast<uint64_t>((line * pitch + column) * size), stride);
    }
};

// The valid part of `tile`; fails when the tile is not in UB, has boxes or holds less than `valid` elements.
Lines lines_of(Core &core, const TileRef &tile);
Lines lines_of(Core &core, const TileRef &tile, const Lines &valid);

// One place in a walk where the op's instructions go.
struct Step {
    int repeat;
    int64_t elements;
    bool counted; // under a count mask
    VectorOperand dst, src0, src1;
};

// What the op does at each step, by reference: the walks are compiled once for all ops.
class Issue {
  public:
    template <class Body>
    Issue(const Body &body)
        : object_(&body),
          call_([](const void *object, const Step &step) { (*static_cast<const Body *>(object))(step); }) {}
    void operator()(const Step &step) const { call_(object_, step); }

  private:
    const void *object_;
    void (*call_)(const void *, const Step &);
};

// Bit masks and count masks of the vector unit.
void mask_elements(Core &core, int elements);
void mask_all(Core &core);
void count_elements(Core &core, int64_t elements);
void count_off(Core &core);

// `to` goes on when `from` has done what it was given: a flag set and waited for.
void handshake(Core &core, PipeId from, PipeId to);
// The scalar unit goes element by element over two tiles, or over one and a number; the vector unit stands
// still.
void scalar_loop(Core &core, Instr instr, Type type, const Lines &dst, const Lines &a, const Lines *b,
                 uint64_t number = 0, bool number_first = false);

// Issues one instruction for a step.
void issue(Core &core, const Operation &operation, Type type, const Step &step);
void issue(Core &core, const Operation &operation, Type type, const Step &step, const VectorOperand &dst,
           const VectorOperand &src0 = {}, const VectorOperand &src1 = {});

// Two tiles in, one out. `reshaped`: the elements are not those of the tile's type.
void walk_binary(Core &core, const Lines &dst, const Lines &src0, const Lines &src1, bool reshaped,
                 Issue body);
// One tile and a scalar in, one tile out.
void walk_scalar(Core &core, const Lines &dst, const Lines &src, Issue body);
// One tile in, one out.
void walk_unary(Core &core, const Lines &dst, const Lines &src, Issue body);
// A scalar in, one tile out.
void walk_fill(Core &core, const Lines &dst, Issue body);
// Two tiles in, one out, always in column groups.
void walk_column_groups(Core &core, const Lines &dst, const Lines &src0, const Lines &src1, Issue body);
// One instruction in count mode per line.
void walk_counted_lines(Core &core, const Lines &dst, const Lines *src0, const Lines *src1, Issue body);

} // namespace insight_trace::engine
