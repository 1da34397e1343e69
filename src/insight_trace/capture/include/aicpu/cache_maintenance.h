// Caches of the device's own CPU; on the host memory is coherent and nothing is left to do.
#pragma once

#include <cstddef>

inline void cache_invalidate_range(const void *, size_t) {}
inline void cache_flush_range(const void *, size_t) {}
