// Values of an accumulator on their way out: conversion, relu, scales.
#pragma once

#include <functional>

#include "isa/moves.hpp"

namespace insight_trace::engine {

// Values of an accumulator (float, int32) as elements of another type, scaled by a word for each of them, by
// one for all, or not at all (no words).
void convert_values(Type from, const void *values, int64_t count, Type to, bool relu, const uint64_t *words,
                    int64_t word_count, void *out);

// The valid part of an accumulator to the places in global memory that `address(row, column)` gives, in runs
// of `run` columns; `adds` to what is there. `scale`: one word, or a Scaling tile with a word for every
// column.
void write_accumulator(Core &core, const TileRef &tile, bool relu, const Operand *scale, Type type,
                       int64_t run, bool adds, const std::function<uint64_t(int64_t, int64_t)> &address);
// A part of it into a tile, of this core or of the vector core in that lane.
void move_accumulator_part(Core &core, const TileRef &dst, Corner to, const TileRef &src, Corner from,
                           int64_t rows, int64_t cols, int64_t lane, bool relu, const Operand *scale);

} // namespace insight_trace::engine
