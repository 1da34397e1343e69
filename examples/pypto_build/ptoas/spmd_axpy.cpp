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

AICORE void spmd_axpy(__gm__ float *v1, __gm__ float *v2, __gm__ float *v3, int32_t v4, int32_t v5) {
    const int64_t v6 = 0;
    const int64_t v7 = 1;
    const int64_t v8 = 32;
    const int64_t v9 = 64;
    const int64_t v10 = 128;
    const int64_t v13 = 4;
    const int64_t v19 = 0;
    const int64_t v22 = 8192;
    const int64_t v25 = 16384;
    const float v36 = 2.0f;
    using T = float;

#if defined(__DAV_VEC__)
    set_mask_norm();
    set_vector_mask(-1, -1);
    int64_t v11 = (int64_t)v4;
    int64_t v12 = (int64_t)v5;
    int64_t v14 = v13 / v12;
    // pto: %first
    int64_t v15 = (int64_t)((uint64_t)v11 * (uint64_t)v14);
    int64_t v16 = (int64_t)((uint64_t)v15 + (uint64_t)v14);
    set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
    for (size_t v17 = (size_t)v15; v17 < ((size_t)v16); v17 += (size_t)v7) {
        // pto: %0
        int64_t v18 = (int64_t)((uint64_t)((int64_t)v17) * (uint64_t)v8);
        // pto: %x__tile
        Tile<TileType::Vec, float, 32, 64, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512, PadValue::Null,
             CompactMode::Null>
            v20 = Tile<TileType::Vec, float, 32, 64, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512,
                       PadValue::Null, CompactMode::Null>(v8, v9);
        uint64_t v21 = (uint64_t)v19;
        TASSIGN(v20, v21);
        // pto: %y__tile
        Tile<TileType::Vec, float, 32, 64, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512, PadValue::Null,
             CompactMode::Null>
            v23 = Tile<TileType::Vec, float, 32, 64, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512,
                       PadValue::Null, CompactMode::Null>(v8, v9);
        uint64_t v24 = (uint64_t)v22;
        TASSIGN(v23, v24);
        // pto: %t__tile
        Tile<TileType::Vec, float, 32, 64, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512, PadValue::Null,
             CompactMode::Null>
            v26 = Tile<TileType::Vec, float, 32, 64, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512,
                       PadValue::Null, CompactMode::Null>(v8, v9);
        uint64_t v27 = (uint64_t)v25;
        TASSIGN(v26, v27);
        // pto: %out__tile
        Tile<TileType::Vec, float, 32, 64, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512, PadValue::Null,
             CompactMode::Null>
            v28 = Tile<TileType::Vec, float, 32, 64, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512,
                       PadValue::Null, CompactMode::Null>(v8, v9);
        uint64_t v29 = (uint64_t)v25;
        TASSIGN(v28, v29);
        wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
        // pto: %x_pview
        pto::Shape<1, 1, 1, 32, 64> v30 = pto::Shape<1, 1, 1, 32, 64>();
        pto::Stride<2048, 2048, 2048, 64, 1> v31 = pto::Stride<2048, 2048, 2048, 64, 1>();
        GlobalTensor<float, pto::Shape<1, 1, 1, 32, 64>, pto::Stride<2048, 2048, 2048, 64, 1>,
                     pto::Layout::ND>
            v32 = GlobalTensor<float, pto::Shape<1, 1, 1, 32, 64>, pto::Stride<2048, 2048, 2048, 64, 1>,
                               pto::Layout::ND>(v1 + (v6 + v18 * v9 + v6 * v7), v30, v31);
        TLOAD(v20, v32);
        // pto: %y_pview
        pto::Shape<1, 1, 1, 32, 64> v33 = pto::Shape<1, 1, 1, 32, 64>();
        pto::Stride<2048, 2048, 2048, 64, 1> v34 = pto::Stride<2048, 2048, 2048, 64, 1>();
        GlobalTensor<float, pto::Shape<1, 1, 1, 32, 64>, pto::Stride<2048, 2048, 2048, 64, 1>,
                     pto::Layout::ND>
            v35 = GlobalTensor<float, pto::Shape<1, 1, 1, 32, 64>, pto::Stride<2048, 2048, 2048, 64, 1>,
                               pto::Layout::ND>(v2 + (v6 + v18 * v9 + v6 * v7), v33, v34);
        TLOAD(v23, v35);
        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        TMULS(v26, v20, v36);
        pipe_barrier(PIPE_V);
        TADD(v28, v26, v23);
        set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        // pto: %out_pview
        pto::Shape<1, 1, 1, 32, 64> v37 = pto::Shape<1, 1, 1, 32, 64>();
        pto::Stride<2048, 2048, 2048, 64, 1> v38 = pto::Stride<2048, 2048, 2048, 64, 1>();
        GlobalTensor<float, pto::Shape<1, 1, 1, 32, 64>, pto::Stride<2048, 2048, 2048, 64, 1>,
                     pto::Layout::ND>
            v39 = GlobalTensor<float, pto::Shape<1, 1, 1, 32, 64>, pto::Stride<2048, 2048, 2048, 64, 1>,
                               pto::Layout::ND>(v3 + (v6 + v18 * v9 + v6 * v7), v37, v38);
        TSTORE(v39, v28);
        set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
    }
    wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
#endif // __DAV_VEC__

    ptoas_auto_sync_tail(PTOAutoSyncTailMode::kBarrierAll);
    return;
}
