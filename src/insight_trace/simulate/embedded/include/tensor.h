// The 128-byte tensor descriptor behind a tensor slot, as kernels read it. Fields only.
#pragma once

#include <cstdint>

#include "insight_trace/element_types.hpp"

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
