#include "banks.hpp"

#include <algorithm>

namespace insight_trace::engine {

namespace {

constexpr int kGroups = 16, kBlocks = 8, kBlockBytes = 32, kRegionBytes = 1 << 16;

int group_of(uint32_t address) { return static_cast<int>(address / kBlockBytes) % kGroups; }

// How often each group is asked for the eight blocks of the operand's first repeat.
void count_groups(const VectorOperand &operand, int *count) {
    if (!operand.used) return;
    int blocks = operand.block_stride == 0 ? 1 : kBlocks; // one block that all lanes share is one access
    for (int i = 0; i < blocks; ++i)
        ++count[group_of(operand.address + uint32_t(i) * operand.block_stride * kBlockBytes)];
}

bool share_a_bank(const VectorOperand &a, const VectorOperand &b) {
    if (!a.used || !b.used || a.address / kRegionBytes != b.address / kRegionBytes) return false;
    int mine[kGroups] = {}, other[kGroups] = {};
    count_groups(a, mine);
    count_groups(b, other);
    for (int group = 0; group < kGroups; ++group)
        if (mine[group] && other[group]) return true;
    return false;
}

} // namespace

BankPattern bank_pattern(const VectorOperand &dst, const VectorOperand &src0, const VectorOperand &src1) {
    BankPattern pattern;
    int reads[kGroups] = {}, writes[kGroups] = {};
    count_groups(src0, reads);
    // the same operand twice is read once
    if (!(src1.used && src1.address == src0.address && src1.repeat_stride == src0.repeat_stride))
        count_groups(src1, reads);
    count_groups(dst, writes);
    pattern.read_turns = std::max(1, *std::max_element(reads, reads + kGroups));
    pattern.write_turns = std::max(1, *std::max_element(writes, writes + kGroups));
    for (const VectorOperand *src : {&src0, &src1})
        if (share_a_bank(dst, *src) && group_of(dst.address) != group_of(src->address))
            pattern.read_write = true;
    return pattern;
}

} // namespace insight_trace::engine
