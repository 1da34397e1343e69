// Ops that are made of other ops.
#pragma once

#include "core.hpp"

namespace insight_trace::engine {

template <class... T> void run(Core &core, Op op, const T &...operands) {
    const Operand list[] = {operands...};
    lower(core, op, {list, sizeof...(T)});
}

inline Operand as_operand(const TileRef &tile) {
    Operand operand{};
    operand.kind = Operand::Tile;
    operand.tile = tile;
    return operand;
}
inline Operand as_operand(int64_t option) {
    Operand operand{};
    operand.kind = Operand::Option;
    operand.option = option;
    return operand;
}

} // namespace insight_trace::engine
