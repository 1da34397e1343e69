// How the kernel of a custom operator gets its tiling data (program/op_kernels.py): a copy, read by scalar
// loads.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace insight_trace {

struct NoTiling {}; // no definition of tiling data was found for this kernel

template <class T, class From> inline void read_tiling(T &to, From *from) {
    static_assert(!std::is_same_v<T, NoTiling>, "no definition of this kernel's tiling data "
                                                "(BEGIN_TILING_DATA_DEF, REGISTER_TILING_DEFAULT) was found");
    static_assert(std::is_trivially_copyable_v<T>, "tiling data is plain data");
    auto *words = reinterpret_cast<const uint32_t *>(from);
    for (uint32_t i = 0; i < sizeof(T) / 4; ++i) {
        const uint32_t word = words[i];
        memcpy(reinterpret_cast<uint8_t *>(&to) + i * 4, &word, 4);
    }
    auto *bytes = reinterpret_cast<const uint8_t *>(from);
    for (uint32_t i = sizeof(T) / 4 * 4; i < sizeof(T); ++i) reinterpret_cast<uint8_t *>(&to)[i] = bytes[i];
}

} // namespace insight_trace

#undef GET_TILING_DATA
#undef GET_TILING_DATA_WITH_STRUCT
#undef GET_TILING_DATA_MEMBER
#undef GET_TILING_DATA_PTR_WITH_STRUCT
#undef COPY_TILING_WITH_STRUCT
#undef COPY_TILING_WITH_ARRAY
#undef __tiling_data_ptr__
#define __tiling_data_ptr__
#define GET_TILING_DATA(name, from) GET_TILING_DATA_WITH_STRUCT(INSIGHT_TRACE_TILING, name, from)
#define GET_TILING_DATA_WITH_STRUCT(type, name, from)                                                        \
    type name;                                                                                               \
    ::insight_trace::read_tiling(name, from)
#define GET_TILING_DATA_MEMBER(type, member, name, from)                                                     \
    GET_TILING_DATA_WITH_STRUCT(type, insight_trace_tiling_##name, from);                                    \
    auto &name = insight_trace_tiling_##name.member
#define GET_TILING_DATA_PTR_WITH_STRUCT(type, name, from)                                                    \
    GET_TILING_DATA_WITH_STRUCT(type, insight_trace_tiling_##name, from);                                    \
    type *name = &insight_trace_tiling_##name
#define COPY_TILING_WITH_STRUCT(type, from, name)                                                            \
    type insight_trace_tiling_##name = *(from);                                                              \
    const type *name = &insight_trace_tiling_##name
#define COPY_TILING_WITH_ARRAY(type, count, from, name) type(*name)[count] = (type(*)[count])(from)
