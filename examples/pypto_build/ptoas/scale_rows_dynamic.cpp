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

AICORE void scale_rows_dynamic(__gm__ float *v1, __gm__ bfloat16_t *v2, float v3, int64_t v4, int64_t v5) {
    const int64_t v6 = 0;
    const int64_t v7 = 1;
    const int64_t v8 = 16;
    const int64_t v9 = 64;
    const int64_t v14 = 0;
    const int64_t v17 = 4096;
    const int64_t v20 = 8192;
    using T = float;

#if defined(__DAV_VEC__)
    set_mask_norm();
    set_vector_mask(-1, -1);
    // pto: %x_pitch
    int64_t v10 = (int64_t)((uint64_t)v5 * (uint64_t)v9);
    int64_t v11 = v4 / v8;
    set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
    for (size_t v12 = (size_t)v6; v12 < ((size_t)v11); v12 += (size_t)v7) {
        // pto: %0
        int64_t v13 = (int64_t)((uint64_t)((int64_t)v12) * (uint64_t)v8);
        // pto: %x__tile
        Tile<TileType::Vec, float, 16, 64, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512, PadValue::Null,
             CompactMode::Null>
            v15 = Tile<TileType::Vec, float, 16, 64, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512,
                       PadValue::Null, CompactMode::Null>(v8, v9);
        uint64_t v16 = (uint64_t)v14;
        TASSIGN(v15, v16);
        // pto: %s__tile
        Tile<TileType::Vec, float, 16, 64, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512, PadValue::Null,
             CompactMode::Null>
            v18 = Tile<TileType::Vec, float, 16, 64, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512,
                       PadValue::Null, CompactMode::Null>(v8, v9);
        uint64_t v19 = (uint64_t)v17;
        TASSIGN(v18, v19);
        // pto: %y__tile
        Tile<TileType::Vec, bfloat16_t, 16, 64, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512,
             PadValue::Null, CompactMode::Null>
            v21 = Tile<TileType::Vec, bfloat16_t, 16, 64, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512,
                       PadValue::Null, CompactMode::Null>(v8, v9);
        uint64_t v22 = (uint64_t)v20;
        TASSIGN(v21, v22);
        // pto: %x__ssa_v0_pview
        pto::Shape<1, 1, 1, 16, 64> v23 = pto::Shape<1, 1, 1, 16, 64>();
        pto::Stride<-1, -1, -1, -1, -1> v24 =
            pto::Stride<-1, -1, -1, -1, -1>(v8 * v10, v8 * v10, v8 * v10, v10, v7);
        GlobalTensor<float, pto::Shape<1, 1, 1, 16, 64>, pto::Stride<-1, -1, -1, -1, -1>, pto::Layout::ND>
            v25 = GlobalTensor<float, pto::Shape<1, 1, 1, 16, 64>, pto::Stride<-1, -1, -1, -1, -1>,
                               pto::Layout::ND>(v1 + (v6 + v13 * v10 + v6 * v7), v23, v24);
        wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
        TLOAD(v15, v25);
        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        TMULS(v18, v15, v3);
        pipe_barrier(PIPE_V);
        TCVT(v21, v18, RoundMode::CAST_RINT);
        set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        // pto: %y__ssa_v0_pview
        pto::Shape<1, 1, 1, 16, 64> v26 = pto::Shape<1, 1, 1, 16, 64>();
        pto::Stride<1024, 1024, 1024, 64, 1> v27 = pto::Stride<1024, 1024, 1024, 64, 1>();
        GlobalTensor<bfloat16_t, pto::Shape<1, 1, 1, 16, 64>, pto::Stride<1024, 1024, 1024, 64, 1>,
                     pto::Layout::ND>
            v28 = GlobalTensor<bfloat16_t, pto::Shape<1, 1, 1, 16, 64>, pto::Stride<1024, 1024, 1024, 64, 1>,
                               pto::Layout::ND>(v2 + (v6 + v13 * v9 + v6 * v7), v26, v27);
        TSTORE(v28, v21);
        set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
    }
    wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
#endif // __DAV_VEC__

    ptoas_auto_sync_tail(PTOAutoSyncTailMode::kBarrierAll);
    return;
}
