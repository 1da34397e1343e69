// The 128-byte tensor descriptor behind a tensor slot, as kernels read it. Fields only.
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
};

struct PTOBufferHandle {
    uint64_t addr;
    uint64_t size;
};

struct alignas(64) ChipTensor {
    PTOBufferHandle buffer;
    uint64_t owner_task_id;
    uint64_t start_offset; // elements
    int32_t version;
    uint32_t ndims;
    DataType dtype;
    bool manual_dep;
    bool is_contiguous;
    uint8_t address_space;
    uint32_t shapes[MAX_TENSOR_DIMS];
    uint64_t extent_elem_cache;
    uint32_t strides[MAX_TENSOR_DIMS]; // elements
    uint8_t reserved[36];

    uint64_t numel() const {
        uint64_t product = 1;
        for (uint32_t i = 0; i < ndims; ++i) product *= shapes[i];
        return product;
    }
};
static_assert(sizeof(ChipTensor) == 128, "the descriptor has 128 bytes");

// Its name until August 2026.
using Tensor = ChipTensor;

// Scalars travel as the low bytes of a 64-bit slot.
template <class T> inline T from_u64(uint64_t bits) {
    static_assert(sizeof(T) <= sizeof bits, "a slot has 64 bits");
    T value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}
template <class T> inline uint64_t to_u64(T value) {
    static_assert(sizeof(T) <= sizeof(uint64_t), "a slot has 64 bits");
    uint64_t bits = 0;
    __builtin_memcpy(&bits, &value, sizeof value);
    return bits;
}
