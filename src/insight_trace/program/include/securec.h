// Bounded copies under the names that programs use.
#pragma once

#include <cstring>

using errno_t = int;
constexpr errno_t EOK = 0;

inline int memcpy_s(void *to, size_t most, const void *from, size_t size) {
    if (size > most) return 1;
    memcpy(to, from, size);
    return 0;
}
inline int memset_s(void *to, size_t most, int value, size_t size) {
    if (size > most) return 1;
    memset(to, value, size);
    return 0;
}
