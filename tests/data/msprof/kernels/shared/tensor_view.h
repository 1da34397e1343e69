// What the kernels of these tests know of a tensor descriptor.
#pragma once
#include <cstdint>

#ifndef __gm__
#define __gm__
#endif
#ifndef __aicore__
#define __aicore__
#endif

struct TensorView {
    uint64_t addr, size, owner, start_offset;
    int32_t version;
    uint32_t ndims;
    uint8_t dtype, manual_dep, is_contiguous, address_space;
    uint32_t shapes[5];
    uint64_t extent;
    uint32_t strides[5];
};

template <typename T> __gm__ T *data_of(__gm__ int64_t *args, int slot) {
    auto *view = reinterpret_cast<__gm__ TensorView *>(args[slot]);
    return reinterpret_cast<__gm__ T *>(view->addr) + view->start_offset;
}

inline __gm__ TensorView *view_of(__gm__ int64_t *args, int slot) {
    return reinterpret_cast<__gm__ TensorView *>(args[slot]);
}
