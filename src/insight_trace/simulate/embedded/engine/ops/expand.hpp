// Broadcasts: a tile and one column, or one row, that goes along with it.
#pragma once

#include "ops/steps.hpp"

namespace insight_trace::engine {

// Which operand is as large as the result, and which one is spread over it.
struct Spread {
    const TileRef &dst, &full, &thin;
    bool swapped; // the thin one is the first operand of the op
};

// One instruction in the op's own order of operands; without a repeat count it is under a count mask.
inline void issue_spread(Core &core, const Operation &instr, const Spread &s, int repeat, int64_t elements,
                         VectorOperand dst, VectorOperand full, VectorOperand thin) {
    const VectorOperand &first = s.swapped ? thin : full, &second = s.swapped ? full : thin;
    if (repeat)
        core.vector(instr, s.dst.type, repeat, elements, dst, first, second);
    else
        counted(core, instr, s.dst.type, elements, dst, first, second);
}

inline bool same_valid(const TileRef &a, const TileRef &b) {
    return a.valid_rows == b.valid_rows && a.valid_cols == b.valid_cols;
}

inline void check_spread(const Core &core, const char *name, const Spread &s) {
    same_type(core, name, s.dst, s.full);
    same_type(core, name, s.dst, s.thin);
    need_plain_rows(core, name, s.dst, "result");
    need_plain_rows(core, name, s.full, "full-size source");
    if (s.thin.space != Space::UB || s.thin.inner)
        core.unsupported("%s whose column or row is not a plain vector tile", name);
    if (s.full.rows < s.dst.valid_rows || s.full.cols < s.dst.valid_cols)
        core.kernel_error("%s: no source covers the %d x %d of the result", name, s.dst.valid_rows,
                          s.dst.valid_cols);
}

constexpr std::initializer_list<Type> kSpreadTypes = {Type::F32, Type::F16, Type::I32, Type::I16};
constexpr std::initializer_list<Type> kSpreadReals = {Type::F32, Type::F16};

} // namespace insight_trace::engine
