#include "tensor.h"
#include <pto/pto-inst.hpp>
using namespace pto;

static __aicore__ void square_rows(__gm__ float *v1, __gm__ float *v2) {
    const int64_t v3 = 0;
    const int64_t v4 = 4096;
    const int64_t v5 = 8192;
    using T = float;

#if defined(__DAV_VEC__)
    set_mask_norm();
    set_vector_mask(-1, -1);
    Tile<TileType::Vec, float, 16, 64, BLayout::RowMajor, 16, 64, SLayout::NoneBox, 512, PadValue::Null,
         CompactMode::Null>
        v6;
    TASSIGN(v6, v3);
    pto::Shape<1, 1, 1, 16, 64> v7s = pto::Shape<1, 1, 1, 16, 64>();
    pto::Stride<1024, 1024, 1024, 64, 1> v7t = pto::Stride<1024, 1024, 1024, 64, 1>();
    GlobalTensor<float, pto::Shape<1, 1, 1, 16, 64>, pto::Stride<1024, 1024, 1024, 64, 1>, pto::Layout::ND>
        v7 = GlobalTensor<float, pto::Shape<1, 1, 1, 16, 64>, pto::Stride<1024, 1024, 1024, 64, 1>,
                          pto::Layout::ND>(v1, v7s, v7t);
    TLOAD(v6, v7);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    Tile<TileType::Vec, float, 16, 64, BLayout::RowMajor, 16, 64, SLayout::NoneBox, 512, PadValue::Null,
         CompactMode::Null>
        v8;
    TASSIGN(v8, v4);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TMUL(v8, v6, v6);
    Tile<TileType::Vec, float, 16, 64, BLayout::RowMajor, 16, 64, SLayout::NoneBox, 512, PadValue::Null,
         CompactMode::Null>
        v9;
    TASSIGN(v9, v5);
    pipe_barrier(PIPE_V);
    TADD(v9, v8, v6);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    pto::Shape<1, 1, 1, 16, 64> v10s = pto::Shape<1, 1, 1, 16, 64>();
    pto::Stride<1024, 1024, 1024, 64, 1> v10t = pto::Stride<1024, 1024, 1024, 64, 1>();
    GlobalTensor<float, pto::Shape<1, 1, 1, 16, 64>, pto::Stride<1024, 1024, 1024, 64, 1>, pto::Layout::ND>
        v10 = GlobalTensor<float, pto::Shape<1, 1, 1, 16, 64>, pto::Stride<1024, 1024, 1024, 64, 1>,
                           pto::Layout::ND>(v2, v10s, v10t);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(v10, v9);
#endif // __DAV_VEC__

    pipe_barrier(PIPE_ALL);
    return;
}

extern "C" __aicore__ __attribute__((always_inline)) void kernel_entry(__gm__ int64_t *args) {
    __gm__ Tensor *y_tensor = reinterpret_cast<__gm__ Tensor *>(args[0]);
    __gm__ float *y = reinterpret_cast<__gm__ float *>(y_tensor->buffer.addr) + y_tensor->start_offset;
    __gm__ Tensor *z_tensor = reinterpret_cast<__gm__ Tensor *>(args[1]);
    __gm__ float *z = reinterpret_cast<__gm__ float *>(z_tensor->buffer.addr) + z_tensor->start_offset;
    square_rows(y, z);
}
