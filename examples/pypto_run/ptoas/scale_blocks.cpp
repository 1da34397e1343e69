#include "pto/pto-inst.hpp"
using namespace pto;

AICORE void scale_blocks(__gm__ float *v1, __gm__ float *v2, float v3, int64_t v4) {
    const int64_t v5 = 0;
    const int64_t v6 = 1;
    const int64_t v7 = 8;
    const int64_t v8 = 16;
    const int64_t v9 = 64;
    const int64_t v10 = 0;
    const int64_t v11 = 4096;
    const int64_t v12 = 8192;
    const float v13 = 1.0f;
    using T = float;

#if defined(__DAV_VEC__)
    set_mask_norm();
    set_vector_mask(-1, -1);
    set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
    for (size_t v14 = (size_t)v5; v14 < ((size_t)v7); v14 += (size_t)v6) {
        bool v15 = (int64_t)v14 < v4;
        if (v15) {
            int64_t v16 = (int64_t)((uint64_t)((int64_t)v14) * (uint64_t)v8);
            Tile<TileType::Vec, float, 16, 64, BLayout::RowMajor, 16, 64, SLayout::NoneBox, 512,
                 PadValue::Null, CompactMode::Null>
                v17;
            TASSIGN(v17, v10);
            pto::Shape<1, 1, 1, 16, 64> v18s = pto::Shape<1, 1, 1, 16, 64>();
            pto::Stride<1024, 1024, 1024, 64, 1> v18t = pto::Stride<1024, 1024, 1024, 64, 1>();
            GlobalTensor<float, pto::Shape<1, 1, 1, 16, 64>, pto::Stride<1024, 1024, 1024, 64, 1>,
                         pto::Layout::ND>
                v18 = GlobalTensor<float, pto::Shape<1, 1, 1, 16, 64>, pto::Stride<1024, 1024, 1024, 64, 1>,
                                   pto::Layout::ND>(v1 + (v5 + v16 * v9 + v5 * v6), v18s, v18t);
            wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
            TLOAD(v17, v18);
            set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
            Tile<TileType::Vec, float, 16, 64, BLayout::RowMajor, 16, 64, SLayout::NoneBox, 512,
                 PadValue::Null, CompactMode::Null>
                v19;
            TASSIGN(v19, v11);
            wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
            TMULS(v19, v17, v3);
            Tile<TileType::Vec, float, 16, 64, BLayout::RowMajor, 16, 64, SLayout::NoneBox, 512,
                 PadValue::Null, CompactMode::Null>
                v20;
            TASSIGN(v20, v12);
            pipe_barrier(PIPE_V);
            TADDS(v20, v19, v13);
            set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
            pto::Shape<1, 1, 1, 16, 64> v21s = pto::Shape<1, 1, 1, 16, 64>();
            pto::Stride<1024, 1024, 1024, 64, 1> v21t = pto::Stride<1024, 1024, 1024, 64, 1>();
            GlobalTensor<float, pto::Shape<1, 1, 1, 16, 64>, pto::Stride<1024, 1024, 1024, 64, 1>,
                         pto::Layout::ND>
                v21 = GlobalTensor<float, pto::Shape<1, 1, 1, 16, 64>, pto::Stride<1024, 1024, 1024, 64, 1>,
                                   pto::Layout::ND>(v2 + (v5 + v16 * v9 + v5 * v6), v21s, v21t);
            wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
            TSTORE(v21, v20);
            set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
        }
    }
    wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
#endif // __DAV_VEC__

    pipe_barrier(PIPE_ALL);
    return;
}
