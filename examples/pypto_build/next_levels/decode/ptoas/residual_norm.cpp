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

AICORE void residual_norm(__gm__ float *v1, __gm__ float *v2, __gm__ float *v3) {
    const int64_t v4 = 0;
    const int64_t v5 = 1;
    const int64_t v6 = 16;
    const int64_t v7 = 128;
    const int64_t v8 = 0;
    const int64_t v11 = 8192;
    const int64_t v16 = 16384;
    const int64_t v19 = 24576;
    const int64_t v22 = 32768;
    const int64_t v27 = 32832;
    const float v40 = 0.0078125f;
    const float v41 = 9.999999974752427e-07f;
    using T = float;

#if defined(__DAV_VEC__)
    set_mask_norm();
    set_vector_mask(-1, -1);
    // pto: %x__tile
    Tile<TileType::Vec, float, 16, 128, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512, PadValue::Null,
         CompactMode::Null>
        v9 = Tile<TileType::Vec, float, 16, 128, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512,
                  PadValue::Null, CompactMode::Null>(v6, v7);
    uint64_t v10 = (uint64_t)v8;
    TASSIGN(v9, v10);
    // pto: %residual__tile
    Tile<TileType::Vec, float, 16, 128, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512, PadValue::Null,
         CompactMode::Null>
        v12 = Tile<TileType::Vec, float, 16, 128, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512,
                   PadValue::Null, CompactMode::Null>(v6, v7);
    uint64_t v13 = (uint64_t)v11;
    TASSIGN(v12, v13);
    // pto: %s__tile
    Tile<TileType::Vec, float, 16, 128, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512, PadValue::Null,
         CompactMode::Null>
        v14 = Tile<TileType::Vec, float, 16, 128, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512,
                   PadValue::Null, CompactMode::Null>(v6, v7);
    uint64_t v15 = (uint64_t)v8;
    TASSIGN(v14, v15);
    // pto: %sq__tile
    Tile<TileType::Vec, float, 16, 128, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512, PadValue::Null,
         CompactMode::Null>
        v17 = Tile<TileType::Vec, float, 16, 128, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512,
                   PadValue::Null, CompactMode::Null>(v6, v7);
    uint64_t v18 = (uint64_t)v16;
    TASSIGN(v17, v18);
    // pto: %tmp_tile
    Tile<TileType::Vec, float, 16, 128, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512, PadValue::Null,
         CompactMode::Null>
        v20 = Tile<TileType::Vec, float, 16, 128, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512,
                   PadValue::Null, CompactMode::Null>(v6, v7);
    uint64_t v21 = (uint64_t)v19;
    TASSIGN(v20, v21);
    // pto: %mean__tile
    Tile<TileType::Vec, float, 16, 1, BLayout::ColMajor, -1, -1, SLayout::NoneBox, 512, PadValue::Null,
         CompactMode::Null>
        v23 = Tile<TileType::Vec, float, 16, 1, BLayout::ColMajor, -1, -1, SLayout::NoneBox, 512,
                   PadValue::Null, CompactMode::Null>(v6, v5);
    uint64_t v24 = (uint64_t)v22;
    TASSIGN(v23, v24);
    // pto: %mean__row
    Tile<TileType::Vec, float, 1, 16, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512, PadValue::Null,
         CompactMode::Null>
        v25 = Tile<TileType::Vec, float, 1, 16, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512,
                   PadValue::Null, CompactMode::Null>(v5, v6);
    uint64_t v26 = (uint64_t)v22;
    TASSIGN(v25, v26);
    // pto: %root__row
    Tile<TileType::Vec, float, 1, 16, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512, PadValue::Null,
         CompactMode::Null>
        v28 = Tile<TileType::Vec, float, 1, 16, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512,
                   PadValue::Null, CompactMode::Null>(v5, v6);
    uint64_t v29 = (uint64_t)v27;
    TASSIGN(v28, v29);
    // pto: %root__tile
    Tile<TileType::Vec, float, 16, 1, BLayout::ColMajor, -1, -1, SLayout::NoneBox, 512, PadValue::Null,
         CompactMode::Null>
        v30 = Tile<TileType::Vec, float, 16, 1, BLayout::ColMajor, -1, -1, SLayout::NoneBox, 512,
                   PadValue::Null, CompactMode::Null>(v6, v5);
    uint64_t v31 = (uint64_t)v27;
    TASSIGN(v30, v31);
    // pto: %y__tile
    Tile<TileType::Vec, float, 16, 128, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512, PadValue::Null,
         CompactMode::Null>
        v32 = Tile<TileType::Vec, float, 16, 128, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512,
                   PadValue::Null, CompactMode::Null>(v6, v7);
    uint64_t v33 = (uint64_t)v11;
    TASSIGN(v32, v33);
    // pto: %x_pview
    pto::Shape<1, 1, 1, 16, 128> v34 = pto::Shape<1, 1, 1, 16, 128>();
    pto::Stride<2048, 2048, 2048, 128, 1> v35 = pto::Stride<2048, 2048, 2048, 128, 1>();
    GlobalTensor<float, pto::Shape<1, 1, 1, 16, 128>, pto::Stride<2048, 2048, 2048, 128, 1>, pto::Layout::ND>
        v36 = GlobalTensor<float, pto::Shape<1, 1, 1, 16, 128>, pto::Stride<2048, 2048, 2048, 128, 1>,
                           pto::Layout::ND>(v1 + (v4 + v4 * v7 + v4 * v5), v34, v35);
    TLOAD(v9, v36);
    // pto: %residual_pview
    pto::Shape<1, 1, 1, 16, 128> v37 = pto::Shape<1, 1, 1, 16, 128>();
    pto::Stride<2048, 2048, 2048, 128, 1> v38 = pto::Stride<2048, 2048, 2048, 128, 1>();
    GlobalTensor<float, pto::Shape<1, 1, 1, 16, 128>, pto::Stride<2048, 2048, 2048, 128, 1>, pto::Layout::ND>
        v39 = GlobalTensor<float, pto::Shape<1, 1, 1, 16, 128>, pto::Stride<2048, 2048, 2048, 128, 1>,
                           pto::Layout::ND>(v2 + (v4 + v4 * v7 + v4 * v5), v37, v38);
    TLOAD(v12, v39);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TADD(v14, v9, v12);
    pipe_barrier(PIPE_V);
    TMUL(v17, v14, v14);
    pipe_barrier(PIPE_V);
    TROWSUM(v23, v17, v20);
    pipe_barrier(PIPE_V);
    TMULS(v25, v25, v40);
    pipe_barrier(PIPE_V);
    TADDS(v25, v25, v41);
    pipe_barrier(PIPE_V);
    TSQRT(v28, v25);
    pipe_barrier(PIPE_V);
    TROWEXPANDDIV(v32, v14, v30);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    // pto: %y_pview
    pto::Shape<1, 1, 1, 16, 128> v42 = pto::Shape<1, 1, 1, 16, 128>();
    pto::Stride<2048, 2048, 2048, 128, 1> v43 = pto::Stride<2048, 2048, 2048, 128, 1>();
    GlobalTensor<float, pto::Shape<1, 1, 1, 16, 128>, pto::Stride<2048, 2048, 2048, 128, 1>, pto::Layout::ND>
        v44 = GlobalTensor<float, pto::Shape<1, 1, 1, 16, 128>, pto::Stride<2048, 2048, 2048, 128, 1>,
                           pto::Layout::ND>(v3 + (v4 + v4 * v7 + v4 * v5), v42, v43);
    TSTORE(v44, v32);
#endif // __DAV_VEC__

    ptoas_auto_sync_tail(PTOAutoSyncTailMode::kBarrierAll);
    return;
}
