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

__global__ AICORE void strided_copy(__gm__ float *v1, __gm__ float *v2) {
    const int32_t v3 = 0;
    const int32_t v4 = 1;
    const int32_t v5 = 16;
    const int32_t v6 = 64;
    const int32_t v7 = 3;
    const int64_t v9 = 0;
    using T = float;

#if defined(__DAV_VEC__)
    set_mask_norm();
    set_vector_mask(-1, -1);
    // pto: %src_pitch
    int32_t v8 = (int32_t)((uint64_t)v6 * (uint64_t)v7);
    // pto: %row__tile
    Tile<TileType::Vec, float, 16, 64, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512, PadValue::Null,
         CompactMode::Null>
        v10 = Tile<TileType::Vec, float, 16, 64, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512,
                   PadValue::Null, CompactMode::Null>(v5, v6);
    uint64_t v11 = (uint64_t)v9;
    TASSIGN(v10, v11);
    // pto: %src_pview
    pto::Shape<1, 1, 1, 16, 64> v12 = pto::Shape<1, 1, 1, 16, 64>();
    pto::Stride<-1, -1, -1, -1, -1> v13 = pto::Stride<-1, -1, -1, -1, -1>(v5 * v8, v5 * v8, v5 * v8, v8, v4);
    GlobalTensor<float, pto::Shape<1, 1, 1, 16, 64>, pto::Stride<-1, -1, -1, -1, -1>, pto::Layout::ND> v14 =
        GlobalTensor<float, pto::Shape<1, 1, 1, 16, 64>, pto::Stride<-1, -1, -1, -1, -1>, pto::Layout::ND>(
            v1 + (v3 + v3 * v8 + v6 * v4), v12, v13);
    TLOAD(v10, v14);
    set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
    // pto: %dst_pview
    pto::Shape<1, 1, 1, 16, 64> v15 = pto::Shape<1, 1, 1, 16, 64>();
    pto::Stride<1024, 1024, 1024, 64, 1> v16 = pto::Stride<1024, 1024, 1024, 64, 1>();
    GlobalTensor<float, pto::Shape<1, 1, 1, 16, 64>, pto::Stride<1024, 1024, 1024, 64, 1>, pto::Layout::ND>
        v17 = GlobalTensor<float, pto::Shape<1, 1, 1, 16, 64>, pto::Stride<1024, 1024, 1024, 64, 1>,
                           pto::Layout::ND>(v2 + (v3 + v3 * v6 + v3 * v4), v15, v16);
    TSTORE(v17, v10);
#endif // __DAV_VEC__

    ptoas_auto_sync_tail(PTOAutoSyncTailMode::kBarrierAll);
    return;
}
