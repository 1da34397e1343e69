// Stores to global memory that combine with what is there (set_atomic_*).
#pragma once

#include "core.hpp"

namespace insight_trace::engine {

// Whether the core's stores add to, or take the larger or smaller of, what they find.
bool stores_combine(const Core &core);
// Elements of the type that the core was set to; `bytes` of them side by side.
void combine_with(Core &core, uint8_t *to, const uint8_t *from, uint64_t bytes);

} // namespace insight_trace::engine
