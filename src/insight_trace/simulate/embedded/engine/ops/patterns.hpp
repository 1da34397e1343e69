// Mask patterns of gather and scatter: which of every two or four neighbours they mean.
#pragma once

#include "core.hpp"

namespace insight_trace::engine {

struct Pattern {
    int64_t group; // neighbours that belong together
    int64_t which; // the one of them that is meant

    // `number` as pto::MaskPattern: P0101 = 1, P1010, P0001, P0010, P0100, P1000, P1111
    Pattern(const Core &core, const char *op, int64_t number) {
        static constexpr int64_t groups[] = {2, 2, 4, 4, 4, 4, 1}, picks[] = {0, 1, 0, 1, 2, 3, 0};
        if (number < 1 || number > 7)
            core.kernel_error("%s: there is no mask pattern %lld", op, (long long)number);
        group = groups[number - 1];
        which = picks[number - 1];
    }

    // Position of the i-th element that is meant, and how many there are among the first `count`.
    int64_t position(int64_t i) const { return i * group + which; }
    int64_t picked_of(int64_t count) const { return (count - which + group - 1) / group; }
};

} // namespace insight_trace::engine
