// What a run does otherwise than its kernel says: one operand of one tile op, or another op in its place, to
// see what follows from it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core.hpp"

namespace insight_trace::engine {

struct Change {
    enum class Field : uint8_t { Address, ValidRows, ValidCols, Type, Option, Scalar, Op };
    uint32_t call; // in the order of execution, all cores together
    uint32_t operand;
    Field field;
    int64_t value;
};
bool find_field(const std::string &name, Change::Field &found);

// The operands of a call with its changes applied.
std::vector<Operand> changed_operands(const std::vector<Change> &changes, uint32_t call,
                                      const Operands &operands);

// The op that a call runs, which a change may make another one.
Op changed_op(const std::vector<Change> &changes, uint32_t call, Op op);

} // namespace insight_trace::engine
