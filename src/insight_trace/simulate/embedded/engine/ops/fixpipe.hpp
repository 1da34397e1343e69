// The way out of the accumulator: conversion, relu and scaling on the fly.
#pragma once

#include <cstring>

#include "elements.hpp"

namespace insight_trace::engine {

// pto::AccToVecMode: to one vector core, or half of the rows or of the columns to each.
enum class ToVector : uint8_t { First, Second, SplitRows, SplitCols };

// What happens to values on their way out.
struct WayOut {
    bool relu = false;
    const Operand *scale = nullptr; // one word, or a Scaling tile with a word for every column
    ToVector mode = ToVector::First;

    // The operands from `first` on, as far as they are there: relu and mode are options, in this order.
    WayOut(const Operands &operands, uint32_t first);
    WayOut(bool relu_, const Operand *scale_) : relu(relu_), scale(scale_) {}
};

void store_accumulator(Core &core, const GlobalRef &g, const TileRef &tile, bool atomic,
                       const WayOut &way_out);

// Values of an accumulator (float, int32) as elements of another type, scaled by a word for each of them, by
// one for all, or not at all (no words).
void convert_values(Type from, const void *values, int64_t count, Type to, bool relu, const uint64_t *words,
                    int64_t word_count, void *out);

// Where a part of one tile lies in another.
struct Corner {
    int64_t row = 0, col = 0;
};
// Acc -> Mat or Vec: `rows` x `cols` elements from one corner to the other.
void move_accumulator(Core &core, const char *op, const TileRef &dst, Corner to, const TileRef &src,
                      Corner from, int64_t rows, int64_t cols, const WayOut &way_out);

// The value that PadValue stands for in a type.
template <class T> T pad_value(uint64_t pad) {
    if (pad >> 32) {
        uint32_t bits = static_cast<uint32_t>(pad);
        T value;
        memcpy(&value, &bits, sizeof(T) < 4 ? sizeof(T) : 4);
        return value;
    }
    if (pad < 2) return T(0);
    if constexpr (is_real<T>)
        return T(pad == 2 ? INFINITY : -INFINITY);
    else
        return pad == 2 ? std::numeric_limits<T>::max() : std::numeric_limits<T>::lowest();
}

} // namespace insight_trace::engine
