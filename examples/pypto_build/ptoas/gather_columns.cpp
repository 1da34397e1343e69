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

extern "C" __global__ AICORE void gather_columns(__gm__ float *v1, __gm__ int32_t *v2, __gm__ float *v3) {
    const int64_t v4 = 0;
    const int64_t v5 = 1;
    const int64_t v6 = 64;
    const int64_t v7 = 0;
    const int64_t v10 = 256;
    const int64_t v13 = 512;
    const int64_t v16 = 768;
    using T = float;

#if defined(__DAV_VEC__)
    set_mask_norm();
    set_vector_mask(-1, -1);
    // pto: %x__tile
    Tile<TileType::Vec, float, 1, 64, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512, PadValue::Null,
         CompactMode::Null>
        v8 = Tile<TileType::Vec, float, 1, 64, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512,
                  PadValue::Null, CompactMode::Null>(v5, v6);
    uint64_t v9 = (uint64_t)v7;
    TASSIGN(v8, v9);
    // pto: %idx__tile
    Tile<TileType::Vec, int32_t, 1, 64, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512, PadValue::Null,
         CompactMode::Null>
        v11 = Tile<TileType::Vec, int32_t, 1, 64, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512,
                   PadValue::Null, CompactMode::Null>(v5, v6);
    uint64_t v12 = (uint64_t)v10;
    TASSIGN(v11, v12);
    // pto: %tmp_tile
    Tile<TileType::Vec, int32_t, 1, 64, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512, PadValue::Null,
         CompactMode::Null>
        v14 = Tile<TileType::Vec, int32_t, 1, 64, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512,
                   PadValue::Null, CompactMode::Null>(v5, v6);
    uint64_t v15 = (uint64_t)v13;
    TASSIGN(v14, v15);
    // pto: %y__tile
    Tile<TileType::Vec, float, 1, 64, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512, PadValue::Null,
         CompactMode::Null>
        v17 = Tile<TileType::Vec, float, 1, 64, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512,
                   PadValue::Null, CompactMode::Null>(v5, v6);
    uint64_t v18 = (uint64_t)v16;
    TASSIGN(v17, v18);
    // pto: %x_pview
    pto::Shape<1, 1, 1, 1, 64> v19 = pto::Shape<1, 1, 1, 1, 64>();
    pto::Stride<64, 64, 64, 64, 1> v20 = pto::Stride<64, 64, 64, 64, 1>();
    GlobalTensor<float, pto::Shape<1, 1, 1, 1, 64>, pto::Stride<64, 64, 64, 64, 1>, pto::Layout::ND> v21 =
        GlobalTensor<float, pto::Shape<1, 1, 1, 1, 64>, pto::Stride<64, 64, 64, 64, 1>, pto::Layout::ND>(
            v1 + (v4 + v4 * v6 + v4 * v5), v19, v20);
    TLOAD(v8, v21);
    // pto: %idx_pview
    pto::Shape<1, 1, 1, 1, 64> v22 = pto::Shape<1, 1, 1, 1, 64>();
    pto::Stride<64, 64, 64, 64, 1> v23 = pto::Stride<64, 64, 64, 64, 1>();
    GlobalTensor<int32_t, pto::Shape<1, 1, 1, 1, 64>, pto::Stride<64, 64, 64, 64, 1>, pto::Layout::ND> v24 =
        GlobalTensor<int32_t, pto::Shape<1, 1, 1, 1, 64>, pto::Stride<64, 64, 64, 64, 1>, pto::Layout::ND>(
            v2 + (v4 + v4 * v6 + v4 * v5), v22, v23);
    TLOAD(v11, v24);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TGATHER(v17, v8, v11, v14);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    // pto: %y_pview
    pto::Shape<1, 1, 1, 1, 64> v25 = pto::Shape<1, 1, 1, 1, 64>();
    pto::Stride<64, 64, 64, 64, 1> v26 = pto::Stride<64, 64, 64, 64, 1>();
    GlobalTensor<float, pto::Shape<1, 1, 1, 1, 64>, pto::Stride<64, 64, 64, 64, 1>, pto::Layout::ND> v27 =
        GlobalTensor<float, pto::Shape<1, 1, 1, 1, 64>, pto::Stride<64, 64, 64, 64, 1>, pto::Layout::ND>(
            v3 + (v4 + v4 * v6 + v4 * v5), v25, v26);
    TSTORE(v27, v17);
#endif // __DAV_VEC__

    ptoas_auto_sync_tail(PTOAutoSyncTailMode::kBarrierAll);
    return;
}
