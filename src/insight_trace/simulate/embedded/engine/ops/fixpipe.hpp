// The way out of the accumulator: conversion, relu and scaling on the fly.
#pragma once

#include "isa/moves.hpp"

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
    // On a2a3 the word, or the address of the tile, is in a register.
    void set_scale(Core &core, bool then_wait) const {
        if (!scale || core.register_based()) return;
        core.set_register(PipeId::FIX, scale->kind == Operand::Tile ? scale->tile.address : 1);
        if (then_wait && scale->kind == Operand::Tile) core.barrier(PipeId::FIX);
    }
};

// Stores that add to what is there where the op asks for it, or the kernel did before it.
template <class Body> void atomic_stores(Core &core, Type type, bool asked, Body body) {
    core.atomic_store = asked || core.atomic_type != 0;
    if (asked) {
        core.set_register(PipeId::S, static_cast<uint64_t>(type));
        core.set_register(PipeId::S, 1);
    }
    body();
    core.atomic_store = false;
    if (asked) core.set_register(PipeId::S, 0);
}

void store_accumulator(Core &core, const GlobalRef &g, const TileRef &tile, bool atomic,
                       const WayOut &way_out);

// Acc -> Mat or Vec: `rows` x `cols` elements from one corner to the other.
void move_accumulator(Core &core, const TileRef &dst, Corner to, const TileRef &src, Corner from,
                      int64_t rows, int64_t cols, const WayOut &way_out);

} // namespace insight_trace::engine
