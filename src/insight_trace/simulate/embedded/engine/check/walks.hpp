// The bytes of an operand, run by run.
#pragma once

#include <algorithm>
#include <cstdint>

#include "../record.hpp"

namespace insight_trace::engine::check {

// Calls `run(address, bytes)` for the bytes that a walk from `base` touches; neighbours come as one run.
template <class Run> void for_each_run(const Traversal &walk, uint64_t base, int element_bytes, Run &&run) {
    uint64_t begin = 0, bytes = 0;
    auto give = [&](uint64_t at, uint64_t count) {
        if (count == 0) return;
        if (bytes && at == begin + bytes) {
            bytes += count;
            return;
        }
        if (bytes) run(begin, bytes);
        begin = at;
        bytes = count;
    };
    const bool masked = walk.mask[0] || walk.mask[1];
    const uint64_t size = static_cast<uint64_t>(std::max(1, element_bytes));
    uint64_t left = walk.total ? walk.total : ~uint64_t(0);
    for (uint32_t i0 = 0; i0 < walk.count[0] && left; ++i0) {
        uint64_t lead = walk.lead ? walk.lead : ~uint64_t(0), order = 0;
        for (uint32_t i1 = 0; i1 < walk.count[1] && lead && left; ++i1)
            for (uint32_t i2 = 0; i2 < walk.count[2] && lead && left; ++i2)
                for (uint32_t i3 = 0; i3 < walk.count[3] && lead && left; ++i3) {
                    const int64_t offset = walk.offset + i0 * walk.step[0] + i1 * walk.step[1] +
                                           i2 * walk.step[2] + i3 * walk.step[3];
                    const uint64_t at = base + static_cast<uint64_t>(offset);
                    const uint64_t count = std::min({uint64_t(walk.run), lead, left});
                    if (!masked) {
                        give(at, count);
                    } else {
                        for (uint64_t b = 0; b < count; b += size) {
                            const uint64_t lane = (order + b) / size;
                            if (lane < 128 && (walk.mask[lane / 64] >> (lane % 64) & 1))
                                give(at + b, std::min(size, count - b));
                        }
                    }
                    order += count;
                    lead -= count;
                    left -= count;
                }
    }
    if (bytes) run(begin, bytes);
}

} // namespace insight_trace::engine::check
