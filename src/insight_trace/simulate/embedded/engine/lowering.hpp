// Vector ops as the tile library writes them for chips with vector functions.
#pragma once

#include "core.hpp"

namespace insight_trace::engine {

enum class Shape : uint8_t {
    Each,      // element by element over the result
    Real,      // the same, for floats alone
    Source,    // element by element over the source: the result has another type
    Spread,    // element by element, but a source is one column or one row
    Rows,      // every row of the source to one element
    Folded,    // the same, each row folded upon itself
    Columns,   // every column of the source to one element
    Convert,   // element by element, the wider of two types decides
    Counted,   // one row of the result, with a scratch tile; without one it is the scalar unit's work
    Scattered, // the result filled, then every element of the source to its place
};

// One instruction of a loop, and how often it is there.
struct LoopStep {
    Instr instr = Instr::NOP;
    int times = 1;
};

// What one loop of an op's function computes.
struct Lowering {
    Op op;
    Shape shape;
    int sources; // tiles that are loaded
    LoopStep steps[6];
};

// Null for an op whose function is made of what its body issues.
const Lowering *find_lowering(Op op);

} // namespace insight_trace::engine
