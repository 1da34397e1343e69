// What kernels and orchestrations both know of tensors: element types, and scalars in 64-bit slots.
#pragma once

#include <cstdint>

constexpr int MAX_TENSOR_DIMS = 5;

enum class DataType : uint8_t {
    FLOAT32 = 0,
    FLOAT16 = 1,
    INT32 = 2,
    INT16 = 3,
    INT8 = 4,
    UINT8 = 5,
    BFLOAT16 = 6,
    INT64 = 7,
    UINT64 = 8,
    UINT16 = 9,
    UINT32 = 10,
    BOOL = 11,
    FP8E4M3FN = 12,
    FP8E8M0 = 13,
    FP4E2M1 = 14,
    DATA_TYPE_NUM = 15,
};

struct PTOBufferHandle {
    uint64_t addr;
    uint64_t size; // bytes
};

// Scalars travel as the low bytes of a 64-bit slot.
template <class T> inline T from_u64(uint64_t bits) {
    static_assert(sizeof(T) <= sizeof bits && __is_trivially_copyable(T), "a slot has 64 bits");
    T value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}
template <class T> inline uint64_t to_u64(T value) {
    static_assert(sizeof(T) <= sizeof(uint64_t) && __is_trivially_copyable(T), "a slot has 64 bits");
    uint64_t bits = 0;
    __builtin_memcpy(&bits, &value, sizeof value);
    return bits;
}
