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

AICORE void softmax_rows(__gm__ float *v1, __gm__ float *v2) {
    const int64_t v3 = 0;
    const int64_t v4 = 1;
    const int64_t v5 = 32;
    const int64_t v6 = 64;
    const int64_t v7 = 0;
    const int64_t v10 = 8192;
    const int64_t v13 = 16384;
    const int64_t v16 = 16512;
    const int64_t v21 = 24704;
    using T = float;

#if defined(__DAV_VEC__)
    set_mask_norm();
    set_vector_mask(-1, -1);
    // pto: %x__tile
    Tile<TileType::Vec, float, 32, 64, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512, PadValue::Null,
         CompactMode::Null>
        v8 = Tile<TileType::Vec, float, 32, 64, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512,
                  PadValue::Null, CompactMode::Null>(v5, v6);
    uint64_t v9 = (uint64_t)v7;
    TASSIGN(v8, v9);
    // pto: %tmp_tile
    Tile<TileType::Vec, float, 32, 64, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512, PadValue::Null,
         CompactMode::Null>
        v11 = Tile<TileType::Vec, float, 32, 64, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512,
                   PadValue::Null, CompactMode::Null>(v5, v6);
    uint64_t v12 = (uint64_t)v10;
    TASSIGN(v11, v12);
    // pto: %m__tile
    Tile<TileType::Vec, float, 32, 1, BLayout::ColMajor, -1, -1, SLayout::NoneBox, 512, PadValue::Null,
         CompactMode::Null>
        v14 = Tile<TileType::Vec, float, 32, 1, BLayout::ColMajor, -1, -1, SLayout::NoneBox, 512,
                   PadValue::Null, CompactMode::Null>(v5, v4);
    uint64_t v15 = (uint64_t)v13;
    TASSIGN(v14, v15);
    // pto: %shifted__tile
    Tile<TileType::Vec, float, 32, 64, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512, PadValue::Null,
         CompactMode::Null>
        v17 = Tile<TileType::Vec, float, 32, 64, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512,
                   PadValue::Null, CompactMode::Null>(v5, v6);
    uint64_t v18 = (uint64_t)v16;
    TASSIGN(v17, v18);
    // pto: %e__tile
    Tile<TileType::Vec, float, 32, 64, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512, PadValue::Null,
         CompactMode::Null>
        v19 = Tile<TileType::Vec, float, 32, 64, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512,
                   PadValue::Null, CompactMode::Null>(v5, v6);
    uint64_t v20 = (uint64_t)v16;
    TASSIGN(v19, v20);
    // pto: %s__tile
    Tile<TileType::Vec, float, 32, 1, BLayout::ColMajor, -1, -1, SLayout::NoneBox, 512, PadValue::Null,
         CompactMode::Null>
        v22 = Tile<TileType::Vec, float, 32, 1, BLayout::ColMajor, -1, -1, SLayout::NoneBox, 512,
                   PadValue::Null, CompactMode::Null>(v5, v4);
    uint64_t v23 = (uint64_t)v21;
    TASSIGN(v22, v23);
    // pto: %y__tile
    Tile<TileType::Vec, float, 32, 64, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512, PadValue::Null,
         CompactMode::Null>
        v24 = Tile<TileType::Vec, float, 32, 64, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512,
                   PadValue::Null, CompactMode::Null>(v5, v6);
    uint64_t v25 = (uint64_t)v7;
    TASSIGN(v24, v25);
    // pto: %x__ssa_v0_pview
    pto::Shape<1, 1, 1, 32, 64> v26 = pto::Shape<1, 1, 1, 32, 64>();
    pto::Stride<2048, 2048, 2048, 64, 1> v27 = pto::Stride<2048, 2048, 2048, 64, 1>();
    GlobalTensor<float, pto::Shape<1, 1, 1, 32, 64>, pto::Stride<2048, 2048, 2048, 64, 1>, pto::Layout::ND>
        v28 = GlobalTensor<float, pto::Shape<1, 1, 1, 32, 64>, pto::Stride<2048, 2048, 2048, 64, 1>,
                           pto::Layout::ND>(v1 + (v3 + v3 * v6 + v3 * v4), v26, v27);
    TLOAD(v8, v28);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TROWMAX(v14, v8, v11);
    pipe_barrier(PIPE_V);
    TROWEXPANDSUB(v17, v8, v14);
    pipe_barrier(PIPE_V);
    TEXP(v19, v17);
    pipe_barrier(PIPE_V);
    TROWSUM(v22, v19, v11);
    pipe_barrier(PIPE_V);
    TROWEXPANDDIV(v24, v19, v22);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    // pto: %y__ssa_v0_pview
    pto::Shape<1, 1, 1, 32, 64> v29 = pto::Shape<1, 1, 1, 32, 64>();
    pto::Stride<2048, 2048, 2048, 64, 1> v30 = pto::Stride<2048, 2048, 2048, 64, 1>();
    GlobalTensor<float, pto::Shape<1, 1, 1, 32, 64>, pto::Stride<2048, 2048, 2048, 64, 1>, pto::Layout::ND>
        v31 = GlobalTensor<float, pto::Shape<1, 1, 1, 32, 64>, pto::Stride<2048, 2048, 2048, 64, 1>,
                           pto::Layout::ND>(v2 + (v3 + v3 * v6 + v3 * v4), v29, v30);
    TSTORE(v31, v24);
#endif // __DAV_VEC__

    ptoas_auto_sync_tail(PTOAutoSyncTailMode::kBarrierAll);
    return;
}
