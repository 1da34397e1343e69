#include "pto/pto-inst.hpp"
using namespace pto;

enum class PTOAutoSyncTailMode : int {
    kBarrierAll = 0,
    kSetWaitMte3ToSEvent0 = 1,
};

static AICORE inline void ptoas_auto_sync_tail(PTOAutoSyncTailMode mode = PTOAutoSyncTailMode::kBarrierAll) {
    switch (mode) {
    case PTOAutoSyncTailMode::kSetWaitMte3ToSEvent0:
        set_flag(PIPE_MTE3, PIPE_S, EVENT_ID0);
        wait_flag(PIPE_MTE3, PIPE_S, EVENT_ID0);
        break;
    case PTOAutoSyncTailMode::kBarrierAll:
    default:
        pipe_barrier(PIPE_ALL);
        break;
    }
}

AICORE void row_blocks_by_length(__gm__ float *v1, __gm__ int32_t *v2, __gm__ float *v3) {
    const int64_t v4 = 0;
    const int64_t v5 = 1;
    const int64_t v6 = 16;
    const int64_t v7 = 64;
    const int64_t v12 = 0;
    const int64_t v15 = 4096;
    const float v21 = 1.0f;
    using T = float;

#if defined(__DAV_VEC__)
    set_mask_norm();
    set_vector_mask(-1, -1);
    int32_t v8 = v2[v4];
    int64_t v9 = (int64_t)v8;
    set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
    for (size_t v10 = (size_t)v4; v10 < ((size_t)v9); v10 += (size_t)v5) {
        // pto: %0
        int64_t v11 = (int64_t)((uint64_t)((int64_t)v10) * (uint64_t)v6);
        // pto: %x__tile
        Tile<TileType::Vec, float, 16, 64, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512, PadValue::Null,
             CompactMode::Null>
            v13 = Tile<TileType::Vec, float, 16, 64, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512,
                       PadValue::Null, CompactMode::Null>(v6, v7);
        uint64_t v14 = (uint64_t)v12;
        TASSIGN(v13, v14);
        // pto: %y__tile
        Tile<TileType::Vec, float, 16, 64, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512, PadValue::Null,
             CompactMode::Null>
            v16 = Tile<TileType::Vec, float, 16, 64, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512,
                       PadValue::Null, CompactMode::Null>(v6, v7);
        uint64_t v17 = (uint64_t)v15;
        TASSIGN(v16, v17);
        wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
        // pto: %x_pview
        pto::Shape<1, 1, 1, 16, 64> v18 = pto::Shape<1, 1, 1, 16, 64>();
        pto::Stride<1024, 1024, 1024, 64, 1> v19 = pto::Stride<1024, 1024, 1024, 64, 1>();
        GlobalTensor<float, pto::Shape<1, 1, 1, 16, 64>, pto::Stride<1024, 1024, 1024, 64, 1>,
                     pto::Layout::ND>
            v20 = GlobalTensor<float, pto::Shape<1, 1, 1, 16, 64>, pto::Stride<1024, 1024, 1024, 64, 1>,
                               pto::Layout::ND>(v1 + (v4 + v11 * v7 + v4 * v5), v18, v19);
        TLOAD(v13, v20);
        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        TADDS(v16, v13, v21);
        set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        // pto: %y_pview
        pto::Shape<1, 1, 1, 16, 64> v22 = pto::Shape<1, 1, 1, 16, 64>();
        pto::Stride<1024, 1024, 1024, 64, 1> v23 = pto::Stride<1024, 1024, 1024, 64, 1>();
        GlobalTensor<float, pto::Shape<1, 1, 1, 16, 64>, pto::Stride<1024, 1024, 1024, 64, 1>,
                     pto::Layout::ND>
            v24 = GlobalTensor<float, pto::Shape<1, 1, 1, 16, 64>, pto::Stride<1024, 1024, 1024, 64, 1>,
                               pto::Layout::ND>(v3 + (v4 + v11 * v7 + v4 * v5), v22, v23);
        TSTORE(v24, v16);
        set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
    }
    wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
#endif // __DAV_VEC__

    ptoas_auto_sync_tail(PTOAutoSyncTailMode::kBarrierAll);
    return;
}
