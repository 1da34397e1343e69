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

__global__ AICORE void matmul_k_loop(__gm__ bfloat16_t *v1, __gm__ bfloat16_t *v2, __gm__ float *v3) {
    const int32_t v4 = 0;
    const int32_t v5 = 1;
    const int32_t v6 = 32;
    const int32_t v7 = 256;
    const int32_t v8 = 64;
    const int64_t v9 = 0;
    const int64_t v14 = 4096;
    const int32_t v27 = 4;
    using T = float;

#if defined(__DAV_CUBE__)
    // pto: %c__tile_l0
    Tile<TileType::Acc, float, 32, 64, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 1024, PadValue::Null,
         CompactMode::Null>
        v10 = Tile<TileType::Acc, float, 32, 64, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 1024,
                   PadValue::Null, CompactMode::Null>(v6, v8);
    uint64_t v11 = (uint64_t)v9;
    TASSIGN(v10, v11);
    // pto: %a__tile_mat
    Tile<TileType::Mat, bfloat16_t, 32, 64, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 512, PadValue::Null,
         CompactMode::Null>
        v12 = Tile<TileType::Mat, bfloat16_t, 32, 64, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 512,
                   PadValue::Null, CompactMode::Null>(v6, v8);
    uint64_t v13 = (uint64_t)v9;
    TASSIGN(v12, v13);
    // pto: %b__tile_mat
    Tile<TileType::Mat, bfloat16_t, 64, 64, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 512, PadValue::Null,
         CompactMode::Null>
        v15 = Tile<TileType::Mat, bfloat16_t, 64, 64, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 512,
                   PadValue::Null, CompactMode::Null>(v8, v8);
    uint64_t v16 = (uint64_t)v14;
    TASSIGN(v15, v16);
    // pto: %a_pview
    pto::Shape<1, 1, 1, 32, 64> v17 = pto::Shape<1, 1, 1, 32, 64>();
    pto::Stride<8192, 8192, 8192, 256, 1> v18 = pto::Stride<8192, 8192, 8192, 256, 1>();
    GlobalTensor<bfloat16_t, pto::Shape<1, 1, 1, 32, 64>, pto::Stride<8192, 8192, 8192, 256, 1>,
                 pto::Layout::ND>
        v19 = GlobalTensor<bfloat16_t, pto::Shape<1, 1, 1, 32, 64>, pto::Stride<8192, 8192, 8192, 256, 1>,
                           pto::Layout::ND>(v1 + (v4 + v4 * v7 + v4 * v5), v17, v18);
    // pto: %b_pview
    pto::Shape<1, 1, 1, 64, 64> v20 = pto::Shape<1, 1, 1, 64, 64>();
    pto::Stride<4096, 4096, 4096, 64, 1> v21 = pto::Stride<4096, 4096, 4096, 64, 1>();
    GlobalTensor<bfloat16_t, pto::Shape<1, 1, 1, 64, 64>, pto::Stride<4096, 4096, 4096, 64, 1>,
                 pto::Layout::ND>
        v22 = GlobalTensor<bfloat16_t, pto::Shape<1, 1, 1, 64, 64>, pto::Stride<4096, 4096, 4096, 64, 1>,
                           pto::Layout::ND>(v2 + (v4 + v4 * v8 + v4 * v5), v20, v21);
    TLOAD(v12, v19);
    TLOAD(v15, v22);
    set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    // pto: %a__tile_left
    Tile<TileType::Left, bfloat16_t, 32, 64, BLayout::RowMajor, -1, -1, SLayout::RowMajor, 512,
         PadValue::Null, CompactMode::Null>
        v23 = Tile<TileType::Left, bfloat16_t, 32, 64, BLayout::RowMajor, -1, -1, SLayout::RowMajor, 512,
                   PadValue::Null, CompactMode::Null>(v6, v8);
    uint64_t v24 = (uint64_t)v9;
    TASSIGN(v23, v24);
    // pto: %b__tile_right
    Tile<TileType::Right, bfloat16_t, 64, 64, BLayout::RowMajor, -1, -1, SLayout::ColMajor, 512,
         PadValue::Null, CompactMode::Null>
        v25 = Tile<TileType::Right, bfloat16_t, 64, 64, BLayout::RowMajor, -1, -1, SLayout::ColMajor, 512,
                   PadValue::Null, CompactMode::Null>(v8, v8);
    uint64_t v26 = (uint64_t)v9;
    TASSIGN(v25, v26);
    TMOV(v23, v12);
    TMOV(v25, v15);
    set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    TMATMUL(v10, v23, v25);
    set_flag(PIPE_M, PIPE_MTE1, EVENT_ID0);
    wait_flag(PIPE_M, PIPE_MTE1, EVENT_ID0);
    set_flag(PIPE_MTE1, PIPE_MTE2, EVENT_ID0);
    wait_flag(PIPE_MTE1, PIPE_MTE2, EVENT_ID0);
    for (size_t v28 = (size_t)v5; v28 < ((size_t)v27); v28 += (size_t)v5) {
        // pto: %0
        int32_t v29 = (int32_t)((uint64_t)((int32_t)v28) * (uint64_t)v8);
        // pto: %a__tile_mat_1
        Tile<TileType::Mat, bfloat16_t, 32, 64, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 512,
             PadValue::Null, CompactMode::Null>
            v30 = Tile<TileType::Mat, bfloat16_t, 32, 64, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 512,
                       PadValue::Null, CompactMode::Null>(v6, v8);
        uint64_t v31 = (uint64_t)v9;
        TASSIGN(v30, v31);
        // pto: %b__tile_mat_1
        Tile<TileType::Mat, bfloat16_t, 64, 64, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 512,
             PadValue::Null, CompactMode::Null>
            v32 = Tile<TileType::Mat, bfloat16_t, 64, 64, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 512,
                       PadValue::Null, CompactMode::Null>(v8, v8);
        uint64_t v33 = (uint64_t)v14;
        TASSIGN(v32, v33);
        // pto: %a_pview_1
        pto::Shape<1, 1, 1, 32, 64> v34 = pto::Shape<1, 1, 1, 32, 64>();
        pto::Stride<8192, 8192, 8192, 256, 1> v35 = pto::Stride<8192, 8192, 8192, 256, 1>();
        GlobalTensor<bfloat16_t, pto::Shape<1, 1, 1, 32, 64>, pto::Stride<8192, 8192, 8192, 256, 1>,
                     pto::Layout::ND>
            v36 = GlobalTensor<bfloat16_t, pto::Shape<1, 1, 1, 32, 64>, pto::Stride<8192, 8192, 8192, 256, 1>,
                               pto::Layout::ND>(v1 + (v4 + v4 * v7 + v29 * v5), v34, v35);
        // pto: %b_pview_1
        pto::Shape<1, 1, 1, 64, 64> v37 = pto::Shape<1, 1, 1, 64, 64>();
        pto::Stride<4096, 4096, 4096, 64, 1> v38 = pto::Stride<4096, 4096, 4096, 64, 1>();
        GlobalTensor<bfloat16_t, pto::Shape<1, 1, 1, 64, 64>, pto::Stride<4096, 4096, 4096, 64, 1>,
                     pto::Layout::ND>
            v39 = GlobalTensor<bfloat16_t, pto::Shape<1, 1, 1, 64, 64>, pto::Stride<4096, 4096, 4096, 64, 1>,
                               pto::Layout::ND>(v2 + (v4 + v29 * v8 + v4 * v5), v37, v38);
        TLOAD(v30, v36);
        TLOAD(v32, v39);
        set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
        wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
        // pto: %a__tile_left_1
        Tile<TileType::Left, bfloat16_t, 32, 64, BLayout::RowMajor, -1, -1, SLayout::RowMajor, 512,
             PadValue::Null, CompactMode::Null>
            v40 = Tile<TileType::Left, bfloat16_t, 32, 64, BLayout::RowMajor, -1, -1, SLayout::RowMajor, 512,
                       PadValue::Null, CompactMode::Null>(v6, v8);
        uint64_t v41 = (uint64_t)v9;
        TASSIGN(v40, v41);
        // pto: %b__tile_right_1
        Tile<TileType::Right, bfloat16_t, 64, 64, BLayout::RowMajor, -1, -1, SLayout::ColMajor, 512,
             PadValue::Null, CompactMode::Null>
            v42 = Tile<TileType::Right, bfloat16_t, 64, 64, BLayout::RowMajor, -1, -1, SLayout::ColMajor, 512,
                       PadValue::Null, CompactMode::Null>(v8, v8);
        uint64_t v43 = (uint64_t)v9;
        TASSIGN(v42, v43);
        TMOV(v40, v30);
        TMOV(v42, v32);
        set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
        wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
        TMATMUL_ACC(v10, v10, v40, v42);
        set_flag(PIPE_M, PIPE_MTE1, EVENT_ID0);
        wait_flag(PIPE_M, PIPE_MTE1, EVENT_ID0);
        set_flag(PIPE_MTE1, PIPE_MTE2, EVENT_ID0);
        wait_flag(PIPE_MTE1, PIPE_MTE2, EVENT_ID0);
    }
    set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    // pto: %c_pview
    pto::Shape<1, 1, 1, 32, 64> v44 = pto::Shape<1, 1, 1, 32, 64>();
    pto::Stride<2048, 2048, 2048, 64, 1> v45 = pto::Stride<2048, 2048, 2048, 64, 1>();
    GlobalTensor<float, pto::Shape<1, 1, 1, 32, 64>, pto::Stride<2048, 2048, 2048, 64, 1>, pto::Layout::ND>
        v46 = GlobalTensor<float, pto::Shape<1, 1, 1, 32, 64>, pto::Stride<2048, 2048, 2048, 64, 1>,
                           pto::Layout::ND>(v3 + (v4 + v4 * v8 + v4 * v5), v44, v45);
    TSTORE(v46, v10);
#endif // __DAV_CUBE__

    ptoas_auto_sync_tail(PTOAutoSyncTailMode::kBarrierAll);
    return;
}
