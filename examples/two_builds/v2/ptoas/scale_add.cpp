#include "pto/pto-inst.hpp"
using namespace pto;
template <typename T, int R, int C> using Ub = Tile<TileType::Vec, T, R, C, BLayout::RowMajor, R, C>;
template <typename T, int R, int C>
using Gm =
    GlobalTensor<T, pto::Shape<1, 1, 1, R, C>, pto::Stride<R * C, R * C, R * C, C, 1>, pto::Layout::ND>;
template <int R, int C>
using Mat = Tile<TileType::Mat, half, R, C, BLayout::ColMajor, R, C, SLayout::RowMajor, 512>;
AICORE void scale_add(__gm__ float *v5, __gm__ float *v6) {
#if defined(__DAV_VEC__)
    set_mask_norm();
    set_vector_mask(-1, -1);
    Ub<float, 8, 64> v7, v8, v9;
    TASSIGN(v7, 0x0);
    TASSIGN(v8, 0x1000);
    TASSIGN(v9, 0x2000);
    Gm<float, 8, 64> v10(v5), v11(v6);
    TLOAD(v7, v10);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TADDS(v9, v7, 1.0f);
    pipe_barrier(PIPE_V);
    TMULS(v8, v9, 2.0f);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(v11, v8);
#endif
    pipe_barrier(PIPE_ALL);
}
