#include "pto/pto-inst.hpp"
using namespace pto;
template <typename T, int R, int C> using Ub = Tile<TileType::Vec, T, R, C, BLayout::RowMajor, R, C>;
template <typename T, int R, int C>
using Gm =
    GlobalTensor<T, pto::Shape<1, 1, 1, R, C>, pto::Stride<R * C, R * C, R * C, C, 1>, pto::Layout::ND>;
template <int R, int C>
using Mat = Tile<TileType::Mat, half, R, C, BLayout::ColMajor, R, C, SLayout::RowMajor, 512>;
AICORE void add_twice(__gm__ float *v1, __gm__ float *v2) {
#if defined(__DAV_VEC__)
    set_mask_norm();
    set_vector_mask(-1, -1);
    Ub<float, 16, 64> v3, v4, v5;
    TASSIGN(v3, 0x0);
    TASSIGN(v4, 0x1000);
    TASSIGN(v5, 0x2000);
    Gm<float, 16, 64> v6(v1), v7(v2);
    TLOAD(v3, v6);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TADDS(v4, v3, 1.0f);
    TADDS(v5, v3, 1.0f);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(v7, v4);
#endif
    pipe_barrier(PIPE_ALL);
}
