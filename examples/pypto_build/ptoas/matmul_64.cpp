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

extern "C" __global__ AICORE void matmul_64(__gm__ bfloat16_t *v1, __gm__ bfloat16_t *v2, __gm__ float *v3) {
    const int64_t v4 = 0;
    const int64_t v5 = 1;
    const int64_t v6 = 64;
    const int64_t v7 = 0;
    const int64_t v12 = 8192;
    using T = float;

#if defined(__DAV_CUBE__)
    // pto: %c__tile_l0
    Tile<TileType::Acc, float, 64, 64, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 1024, PadValue::Null,
         CompactMode::Null>
        v8 = Tile<TileType::Acc, float, 64, 64, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 1024,
                  PadValue::Null, CompactMode::Null>(v6, v6);
    uint64_t v9 = (uint64_t)v7;
    TASSIGN(v8, v9);
    // pto: %a__tile_mat
    Tile<TileType::Mat, bfloat16_t, 64, 64, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 512, PadValue::Null,
         CompactMode::Null>
        v10 = Tile<TileType::Mat, bfloat16_t, 64, 64, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 512,
                   PadValue::Null, CompactMode::Null>(v6, v6);
    uint64_t v11 = (uint64_t)v7;
    TASSIGN(v10, v11);
    // pto: %b__tile_mat
    Tile<TileType::Mat, bfloat16_t, 64, 64, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 512, PadValue::Null,
         CompactMode::Null>
        v13 = Tile<TileType::Mat, bfloat16_t, 64, 64, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 512,
                   PadValue::Null, CompactMode::Null>(v6, v6);
    uint64_t v14 = (uint64_t)v12;
    TASSIGN(v13, v14);
    // pto: %a_pview
    pto::Shape<1, 1, 1, 64, 64> v15 = pto::Shape<1, 1, 1, 64, 64>();
    pto::Stride<4096, 4096, 4096, 64, 1> v16 = pto::Stride<4096, 4096, 4096, 64, 1>();
    GlobalTensor<bfloat16_t, pto::Shape<1, 1, 1, 64, 64>, pto::Stride<4096, 4096, 4096, 64, 1>,
                 pto::Layout::ND>
        v17 = GlobalTensor<bfloat16_t, pto::Shape<1, 1, 1, 64, 64>, pto::Stride<4096, 4096, 4096, 64, 1>,
                           pto::Layout::ND>(v1 + (v4 + v4 * v6 + v4 * v5), v15, v16);
    // pto: %b_pview
    pto::Shape<1, 1, 1, 64, 64> v18 = pto::Shape<1, 1, 1, 64, 64>();
    pto::Stride<4096, 4096, 4096, 64, 1> v19 = pto::Stride<4096, 4096, 4096, 64, 1>();
    GlobalTensor<bfloat16_t, pto::Shape<1, 1, 1, 64, 64>, pto::Stride<4096, 4096, 4096, 64, 1>,
                 pto::Layout::ND>
        v20 = GlobalTensor<bfloat16_t, pto::Shape<1, 1, 1, 64, 64>, pto::Stride<4096, 4096, 4096, 64, 1>,
                           pto::Layout::ND>(v2 + (v4 + v4 * v6 + v4 * v5), v18, v19);
    TLOAD(v10, v17);
    TLOAD(v13, v20);
    set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    // pto: %a__tile_left
    Tile<TileType::Left, bfloat16_t, 64, 64, BLayout::RowMajor, -1, -1, SLayout::RowMajor, 512,
         PadValue::Null, CompactMode::Null>
        v21 = Tile<TileType::Left, bfloat16_t, 64, 64, BLayout::RowMajor, -1, -1, SLayout::RowMajor, 512,
                   PadValue::Null, CompactMode::Null>(v6, v6);
    uint64_t v22 = (uint64_t)v7;
    TASSIGN(v21, v22);
    // pto: %b__tile_right
    Tile<TileType::Right, bfloat16_t, 64, 64, BLayout::RowMajor, -1, -1, SLayout::ColMajor, 512,
         PadValue::Null, CompactMode::Null>
        v23 = Tile<TileType::Right, bfloat16_t, 64, 64, BLayout::RowMajor, -1, -1, SLayout::ColMajor, 512,
                   PadValue::Null, CompactMode::Null>(v6, v6);
    uint64_t v24 = (uint64_t)v7;
    TASSIGN(v23, v24);
    TMOV(v21, v10);
    TMOV(v23, v13);
    set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    TMATMUL(v8, v21, v23);
    set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    // pto: %c_pview
    pto::Shape<1, 1, 1, 64, 64> v25 = pto::Shape<1, 1, 1, 64, 64>();
    pto::Stride<4096, 4096, 4096, 64, 1> v26 = pto::Stride<4096, 4096, 4096, 64, 1>();
    GlobalTensor<float, pto::Shape<1, 1, 1, 64, 64>, pto::Stride<4096, 4096, 4096, 64, 1>, pto::Layout::ND>
        v27 = GlobalTensor<float, pto::Shape<1, 1, 1, 64, 64>, pto::Stride<4096, 4096, 4096, 64, 1>,
                           pto::Layout::ND>(v3 + (v4 + v4 * v6 + v4 * v5), v25, v26);
    TSTORE(v27, v8);
#endif // __DAV_CUBE__

    ptoas_auto_sync_tail(PTOAutoSyncTailMode::kBarrierAll);
    return;
}
