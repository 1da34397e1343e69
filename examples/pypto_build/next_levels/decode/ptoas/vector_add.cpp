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

extern "C" __global__ AICORE void vector_add(__gm__ half *v1, __gm__ half *v2, __gm__ half *v3) {
    const int64_t v4 = 0;
    const int64_t v5 = 1;
    const int64_t v6 = 32;
    const int64_t v7 = 128;
    const int64_t v8 = 16;
    const int64_t v9 = 2;
    const int64_t v12 = 0;
    const int64_t v15 = 4096;
    using T = float;

#if defined(__DAV_VEC__)
    set_mask_norm();
    set_vector_mask(-1, -1);
    set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
    for (size_t v10 = (size_t)v4; v10 < ((size_t)v9); v10 += (size_t)v5) {
        // pto: %0
        int64_t v11 = (int64_t)((uint64_t)((int64_t)v10) * (uint64_t)v8);
        // pto: %a__tile
        Tile<TileType::Vec, half, 16, 128, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512, PadValue::Null,
             CompactMode::Null>
            v13 = Tile<TileType::Vec, half, 16, 128, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512,
                       PadValue::Null, CompactMode::Null>(v8, v7);
        uint64_t v14 = (uint64_t)v12;
        TASSIGN(v13, v14);
        // pto: %b__tile
        Tile<TileType::Vec, half, 16, 128, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512, PadValue::Null,
             CompactMode::Null>
            v16 = Tile<TileType::Vec, half, 16, 128, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512,
                       PadValue::Null, CompactMode::Null>(v8, v7);
        uint64_t v17 = (uint64_t)v15;
        TASSIGN(v16, v17);
        // pto: %out__tile
        Tile<TileType::Vec, half, 16, 128, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512, PadValue::Null,
             CompactMode::Null>
            v18 = Tile<TileType::Vec, half, 16, 128, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512,
                       PadValue::Null, CompactMode::Null>(v8, v7);
        uint64_t v19 = (uint64_t)v12;
        TASSIGN(v18, v19);
        // pto: %a__ssa_v0_pview
        pto::Shape<1, 1, 1, 16, 128> v20 = pto::Shape<1, 1, 1, 16, 128>();
        pto::Stride<2048, 2048, 2048, 128, 1> v21 = pto::Stride<2048, 2048, 2048, 128, 1>();
        GlobalTensor<half, pto::Shape<1, 1, 1, 16, 128>, pto::Stride<2048, 2048, 2048, 128, 1>,
                     pto::Layout::ND>
            v22 = GlobalTensor<half, pto::Shape<1, 1, 1, 16, 128>, pto::Stride<2048, 2048, 2048, 128, 1>,
                               pto::Layout::ND>(v1 + (v4 + v11 * v7 + v4 * v5), v20, v21);
        // pto: %b__ssa_v0_pview
        pto::Shape<1, 1, 1, 16, 128> v23 = pto::Shape<1, 1, 1, 16, 128>();
        pto::Stride<2048, 2048, 2048, 128, 1> v24 = pto::Stride<2048, 2048, 2048, 128, 1>();
        GlobalTensor<half, pto::Shape<1, 1, 1, 16, 128>, pto::Stride<2048, 2048, 2048, 128, 1>,
                     pto::Layout::ND>
            v25 = GlobalTensor<half, pto::Shape<1, 1, 1, 16, 128>, pto::Stride<2048, 2048, 2048, 128, 1>,
                               pto::Layout::ND>(v2 + (v4 + v11 * v7 + v4 * v5), v23, v24);
        wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
        TLOAD(v13, v22);
        TLOAD(v16, v25);
        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        TADD(v18, v13, v16);
        set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        // pto: %out__ssa_v0_pview
        pto::Shape<1, 1, 1, 16, 128> v26 = pto::Shape<1, 1, 1, 16, 128>();
        pto::Stride<2048, 2048, 2048, 128, 1> v27 = pto::Stride<2048, 2048, 2048, 128, 1>();
        GlobalTensor<half, pto::Shape<1, 1, 1, 16, 128>, pto::Stride<2048, 2048, 2048, 128, 1>,
                     pto::Layout::ND>
            v28 = GlobalTensor<half, pto::Shape<1, 1, 1, 16, 128>, pto::Stride<2048, 2048, 2048, 128, 1>,
                               pto::Layout::ND>(v3 + (v4 + v11 * v7 + v4 * v5), v26, v27);
        TSTORE(v28, v18);
        set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
    }
    wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
#endif // __DAV_VEC__

    ptoas_auto_sync_tail(PTOAutoSyncTailMode::kBarrierAll);
    return;
}
