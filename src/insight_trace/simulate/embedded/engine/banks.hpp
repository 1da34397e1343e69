// Bank conflicts in the unified buffer.
//
// 48 banks of 4 KB in 16 groups of three; an address is {bank 2 bits, row 7, group 4, offset 5}. In one cycle
// a group serves one read and one write. Two sources that meet in a group, or two blocks of one operand, take
// turns; a write to the bank that is being read costs extra unless both start at the same bank.
#pragma once

#include "core.hpp"

namespace insight_trace::engine {

struct BankPattern {
    int read_turns = 1;  // accesses that the busiest group must serve for one repeat's sources
    int write_turns = 1; // the same for the destination
    bool read_write = false;
};

BankPattern bank_pattern(const VectorOperand &dst, const VectorOperand &src0, const VectorOperand &src1);

} // namespace insight_trace::engine
