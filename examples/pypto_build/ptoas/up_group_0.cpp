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

AICORE void up_relu_aic(__gm__ bfloat16_t *v1, __gm__ bfloat16_t *v2, __gm__ float *v3, __gm__ float *v4) {
    const int64_t v5 = 0;
    const int64_t v6 = 1;
    const int32_t v7 = 0;
    const int64_t v8 = 32;
    const int64_t v9 = 64;
    const int64_t v10 = 128;
    const int64_t v12 = 4;
    const int64_t v15 = 0;
    const int64_t v18 = 4096;
    using T = float;

#if defined(__DAV_CUBE__)
    auto v11 = TPipe<0, Direction::DIR_C2V, 4096, 4, 4, false>(v4, v7, v7);
    for (size_t v13 = (size_t)v5; v13 < ((size_t)v12); v13 += (size_t)v6) {
        // pto: %0
        int64_t v14 = (int64_t)((uint64_t)((int64_t)v13) * (uint64_t)v8);
        // pto: %x__mat
        Tile<TileType::Mat, bfloat16_t, 32, 64, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 512,
             PadValue::Null, CompactMode::Null>
            v16 = Tile<TileType::Mat, bfloat16_t, 32, 64, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 512,
                       PadValue::Null, CompactMode::Null>(v8, v9);
        uint64_t v17 = (uint64_t)v15;
        TASSIGN(v16, v17);
        // pto: %w__mat
        Tile<TileType::Mat, bfloat16_t, 64, 32, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 512,
             PadValue::Null, CompactMode::Null>
            v19 = Tile<TileType::Mat, bfloat16_t, 64, 32, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 512,
                       PadValue::Null, CompactMode::Null>(v9, v8);
        uint64_t v20 = (uint64_t)v18;
        TASSIGN(v19, v20);
        // pto: %x_pview
        pto::Shape<1, 1, 1, 32, 64> v21 = pto::Shape<1, 1, 1, 32, 64>();
        pto::Stride<2048, 2048, 2048, 64, 1> v22 = pto::Stride<2048, 2048, 2048, 64, 1>();
        GlobalTensor<bfloat16_t, pto::Shape<1, 1, 1, 32, 64>, pto::Stride<2048, 2048, 2048, 64, 1>,
                     pto::Layout::ND>
            v23 = GlobalTensor<bfloat16_t, pto::Shape<1, 1, 1, 32, 64>, pto::Stride<2048, 2048, 2048, 64, 1>,
                               pto::Layout::ND>(v1 + (v5 + v5 * v9 + v5 * v6), v21, v22);
        TLOAD(v16, v23);
        // pto: %w_pview
        pto::Shape<1, 1, 1, 64, 32> v24 = pto::Shape<1, 1, 1, 64, 32>();
        pto::Stride<8192, 8192, 8192, 128, 1> v25 = pto::Stride<8192, 8192, 8192, 128, 1>();
        GlobalTensor<bfloat16_t, pto::Shape<1, 1, 1, 64, 32>, pto::Stride<8192, 8192, 8192, 128, 1>,
                     pto::Layout::ND>
            v26 = GlobalTensor<bfloat16_t, pto::Shape<1, 1, 1, 64, 32>, pto::Stride<8192, 8192, 8192, 128, 1>,
                               pto::Layout::ND>(v2 + (v5 + v5 * v10 + v14 * v6), v24, v25);
        TLOAD(v19, v26);
        set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
        wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
        // pto: %x__left
        Tile<TileType::Left, bfloat16_t, 32, 64, BLayout::RowMajor, -1, -1, SLayout::RowMajor, 512,
             PadValue::Null, CompactMode::Null>
            v27 = Tile<TileType::Left, bfloat16_t, 32, 64, BLayout::RowMajor, -1, -1, SLayout::RowMajor, 512,
                       PadValue::Null, CompactMode::Null>(v8, v9);
        uint64_t v28 = (uint64_t)v15;
        TASSIGN(v27, v28);
        // pto: %w__right
        Tile<TileType::Right, bfloat16_t, 64, 32, BLayout::RowMajor, -1, -1, SLayout::ColMajor, 512,
             PadValue::Null, CompactMode::Null>
            v29 = Tile<TileType::Right, bfloat16_t, 64, 32, BLayout::RowMajor, -1, -1, SLayout::ColMajor, 512,
                       PadValue::Null, CompactMode::Null>(v9, v8);
        uint64_t v30 = (uint64_t)v15;
        TASSIGN(v29, v30);
        TMOV(v27, v16);
        TMOV(v29, v19);
        set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
        wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
        // pto: %up__acc
        Tile<TileType::Acc, float, 32, 32, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 1024, PadValue::Null,
             CompactMode::Null>
            v31 = Tile<TileType::Acc, float, 32, 32, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 1024,
                       PadValue::Null, CompactMode::Null>(v8, v8);
        uint64_t v32 = (uint64_t)v15;
        TASSIGN(v31, v32);
        TMATMUL(v31, v27, v29);
        set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
        wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
        TPUSH<TPipe<0, Direction::DIR_C2V, 4096, 4, 4, false>,
              Tile<TileType::Acc, float, 32, 32, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 1024,
                   PadValue::Null, CompactMode::Null>,
              TileSplitAxis::TILE_UP_DOWN>(v11, v31);
        set_flag(PIPE_FIX, PIPE_M, EVENT_ID0);
        wait_flag(PIPE_FIX, PIPE_M, EVENT_ID0);
        set_flag(PIPE_M, PIPE_MTE1, EVENT_ID0);
        wait_flag(PIPE_M, PIPE_MTE1, EVENT_ID0);
        set_flag(PIPE_MTE1, PIPE_MTE2, EVENT_ID0);
        wait_flag(PIPE_MTE1, PIPE_MTE2, EVENT_ID0);
    }
#endif // __DAV_CUBE__

    ptoas_auto_sync_tail(PTOAutoSyncTailMode::kBarrierAll);
    return;
}

AICORE void up_relu_aiv(__gm__ bfloat16_t *v1, __gm__ bfloat16_t *v2, __gm__ float *v3, __gm__ float *v4,
                        int32_t v5) {
    const int64_t v6 = 0;
    const int64_t v7 = 1;
    const int32_t v8 = 0;
    const int64_t v9 = 32;
    const int64_t v10 = 128;
    const int64_t v13 = 16;
    const int64_t v15 = 4;
    const int64_t v19 = 16384;
    const float v22 = 0.0f;
    using T = float;

#if defined(__DAV_VEC__)
    set_mask_norm();
    set_vector_mask(-1, -1);
    auto v11 = TPipe<0, Direction::DIR_C2V, 4096, 4, 4, false>(v4, v8, v8);
    int64_t v12 = (int64_t)v5;
    // pto: %row
    int64_t v14 = (int64_t)((uint64_t)v12 * (uint64_t)v13);
    set_flag(PIPE_MTE3, PIPE_V, EVENT_ID0);
    for (size_t v16 = (size_t)v6; v16 < ((size_t)v15); v16 += (size_t)v7) {
        // pto: %0
        int64_t v17 = (int64_t)((uint64_t)((int64_t)v16) * (uint64_t)v9);
        Tile<TileType::Vec, float, 16, 32, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512, PadValue::Null,
             CompactMode::Null>
            v18 = Tile<TileType::Vec, float, 16, 32, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512,
                       PadValue::Null, CompactMode::Null>(v13, v9);
        TPOP<TPipe<0, Direction::DIR_C2V, 4096, 4, 4, false>,
             Tile<TileType::Vec, float, 16, 32, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512,
                  PadValue::Null, CompactMode::Null>,
             TileSplitAxis::TILE_UP_DOWN>(v11, v18);
        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        // pto: %out__tile
        Tile<TileType::Vec, float, 16, 32, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512, PadValue::Null,
             CompactMode::Null>
            v20 = Tile<TileType::Vec, float, 16, 32, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512,
                       PadValue::Null, CompactMode::Null>(v13, v9);
        uint64_t v21 = (uint64_t)v19;
        TASSIGN(v20, v21);
        wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID0);
        TMAXS(v20, v18, v22);
        set_flag(PIPE_V, PIPE_MTE2, EVENT_ID1);
        wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID1);
        TFREE<TPipe<0, Direction::DIR_C2V, 4096, 4, 4, false>, TileSplitAxis::TILE_UP_DOWN>(v11);
        set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        // pto: %out_pview
        pto::Shape<1, 1, 1, 16, 32> v23 = pto::Shape<1, 1, 1, 16, 32>();
        pto::Stride<2048, 2048, 2048, 128, 1> v24 = pto::Stride<2048, 2048, 2048, 128, 1>();
        GlobalTensor<float, pto::Shape<1, 1, 1, 16, 32>, pto::Stride<2048, 2048, 2048, 128, 1>,
                     pto::Layout::ND>
            v25 = GlobalTensor<float, pto::Shape<1, 1, 1, 16, 32>, pto::Stride<2048, 2048, 2048, 128, 1>,
                               pto::Layout::ND>(v3 + (v6 + v14 * v10 + v17 * v7), v23, v24);
        TSTORE(v25, v20);
        set_flag(PIPE_MTE3, PIPE_V, EVENT_ID0);
    }
    wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID0);
#endif // __DAV_VEC__

    ptoas_auto_sync_tail(PTOAutoSyncTailMode::kBarrierAll);
    return;
}
