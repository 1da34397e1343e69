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

AICORE void vector_add(__gm__ float *v1, __gm__ float *v2, __gm__ float *v3) {
    const int64_t v4 = 0;
    const int64_t v5 = 1;
    const int64_t v6 = 128;
    const int64_t v7 = 64;
    const int64_t v8 = 2;
    const int64_t v11 = 0;
    const int64_t v14 = 16384;
    using T = float;

#if defined(__DAV_VEC__)
    set_mask_norm();
    set_vector_mask(-1, -1);
    set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
    for (size_t v9 = (size_t)v4; v9 < ((size_t)v8); v9 += (size_t)v5) {
        // pto: %0
        int64_t v10 = (int64_t)((uint64_t)((int64_t)v9) * (uint64_t)v7);
        // pto: %a__tile
        Tile<TileType::Vec, float, 64, 64, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512, PadValue::Null,
             CompactMode::Null>
            v12 = Tile<TileType::Vec, float, 64, 64, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512,
                       PadValue::Null, CompactMode::Null>(v7, v7);
        uint64_t v13 = (uint64_t)v11;
        TASSIGN(v12, v13);
        // pto: %b__tile
        Tile<TileType::Vec, float, 64, 64, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512, PadValue::Null,
             CompactMode::Null>
            v15 = Tile<TileType::Vec, float, 64, 64, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512,
                       PadValue::Null, CompactMode::Null>(v7, v7);
        uint64_t v16 = (uint64_t)v14;
        TASSIGN(v15, v16);
        // pto: %out__tile
        Tile<TileType::Vec, float, 64, 64, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512, PadValue::Null,
             CompactMode::Null>
            v17 = Tile<TileType::Vec, float, 64, 64, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512,
                       PadValue::Null, CompactMode::Null>(v7, v7);
        uint64_t v18 = (uint64_t)v11;
        TASSIGN(v17, v18);
        // pto: %a__ssa_v0_pview
        pto::Shape<1, 1, 1, 64, 64> v19 = pto::Shape<1, 1, 1, 64, 64>();
        pto::Stride<4096, 4096, 4096, 64, 1> v20 = pto::Stride<4096, 4096, 4096, 64, 1>();
        GlobalTensor<float, pto::Shape<1, 1, 1, 64, 64>, pto::Stride<4096, 4096, 4096, 64, 1>,
                     pto::Layout::ND>
            v21 = GlobalTensor<float, pto::Shape<1, 1, 1, 64, 64>, pto::Stride<4096, 4096, 4096, 64, 1>,
                               pto::Layout::ND>(v1 + (v4 + v10 * v7 + v4 * v5), v19, v20);
        // pto: %b__ssa_v0_pview
        pto::Shape<1, 1, 1, 64, 64> v22 = pto::Shape<1, 1, 1, 64, 64>();
        pto::Stride<4096, 4096, 4096, 64, 1> v23 = pto::Stride<4096, 4096, 4096, 64, 1>();
        GlobalTensor<float, pto::Shape<1, 1, 1, 64, 64>, pto::Stride<4096, 4096, 4096, 64, 1>,
                     pto::Layout::ND>
            v24 = GlobalTensor<float, pto::Shape<1, 1, 1, 64, 64>, pto::Stride<4096, 4096, 4096, 64, 1>,
                               pto::Layout::ND>(v2 + (v4 + v10 * v7 + v4 * v5), v22, v23);
        wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
        TLOAD(v12, v21);
        TLOAD(v15, v24);
        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        TADD(v17, v12, v15);
        set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        // pto: %out__ssa_v0_pview
        pto::Shape<1, 1, 1, 64, 64> v25 = pto::Shape<1, 1, 1, 64, 64>();
        pto::Stride<4096, 4096, 4096, 64, 1> v26 = pto::Stride<4096, 4096, 4096, 64, 1>();
        GlobalTensor<float, pto::Shape<1, 1, 1, 64, 64>, pto::Stride<4096, 4096, 4096, 64, 1>,
                     pto::Layout::ND>
            v27 = GlobalTensor<float, pto::Shape<1, 1, 1, 64, 64>, pto::Stride<4096, 4096, 4096, 64, 1>,
                               pto::Layout::ND>(v3 + (v4 + v10 * v7 + v4 * v5), v25, v26);
        TSTORE(v27, v17);
        set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
    }
    wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
#endif // __DAV_VEC__

    ptoas_auto_sync_tail(PTOAutoSyncTailMode::kBarrierAll);
    return;
}
