// Element types of tensors and scalars: their sizes, their names, and those of C++ values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "insight_trace/element_types.hpp"

enum class AddressSpace : uint8_t { HOST = 0, DEVICE = 1 };

namespace insight_trace::capture {
struct TypeRow {
    const char *name;
    uint8_t size;
};
inline constexpr TypeRow kTypes[] = {
    {"FLOAT32", 4}, {"FLOAT16", 2},  {"INT32", 4},     {"INT16", 2},   {"INT8", 1},
    {"UINT8", 1},   {"BFLOAT16", 2}, {"INT64", 8},     {"UINT64", 8},  {"UINT16", 2},
    {"UINT32", 4},  {"BOOL", 1},     {"FP8E4M3FN", 1}, {"FP8E8M0", 1}, {"FP4E2M1", 1},
};
} // namespace insight_trace::capture

inline uint64_t get_element_size(DataType type) {
    auto row = static_cast<size_t>(type);
    return row < static_cast<size_t>(DataType::DATA_TYPE_NUM) ? insight_trace::capture::kTypes[row].size : 0;
}
inline const char *get_dtype_name(DataType type) {
    auto row = static_cast<size_t>(type);
    bool known = row < static_cast<size_t>(DataType::DATA_TYPE_NUM);
    return known ? insight_trace::capture::kTypes[row].name : "UNKNOWN";
}

template <class T>
inline constexpr bool is_supported_scalar_arg_v =
    std::is_arithmetic_v<std::remove_cv_t<std::remove_reference_t<T>>> ||
    std::is_enum_v<std::remove_cv_t<std::remove_reference_t<T>>>;

// The type that a dump names for a scalar of this C++ type; what has none of its own is raw 64 bits.
template <class T> constexpr DataType scalar_data_type() {
    if constexpr (std::is_same_v<T, bool>)
        return DataType::BOOL;
    else if constexpr (std::is_floating_point_v<T>)
        return DataType::FLOAT32;
    else if constexpr (!std::is_integral_v<T>)
        return DataType::UINT64;
    else if constexpr (std::is_signed_v<T>)
        return sizeof(T) == 1   ? DataType::INT8
               : sizeof(T) == 2 ? DataType::INT16
               : sizeof(T) == 4 ? DataType::INT32
                                : DataType::INT64;
    else
        return sizeof(T) == 1   ? DataType::UINT8
               : sizeof(T) == 2 ? DataType::UINT16
               : sizeof(T) == 4 ? DataType::UINT32
                                : DataType::UINT64;
}
