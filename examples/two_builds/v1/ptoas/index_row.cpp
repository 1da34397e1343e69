#include "pto/pto-inst.hpp"
using namespace pto;
template <typename T, int R, int C> using Ub = Tile<TileType::Vec, T, R, C, BLayout::RowMajor, R, C>;
template <typename T, int R, int C>
using Gm =
    GlobalTensor<T, pto::Shape<1, 1, 1, R, C>, pto::Stride<R * C, R * C, R * C, C, 1>, pto::Layout::ND>;
template <int R, int C>
using Mat = Tile<TileType::Mat, half, R, C, BLayout::ColMajor, R, C, SLayout::RowMajor, 512>;
AICORE void index_row(__gm__ int32_t *v1) {
#if defined(__DAV_VEC__)
    set_mask_norm();
    set_vector_mask(-1, -1);
    Ub<int32_t, 1, 64> v2, v3;
    TASSIGN(v2, 0x0);
    TASSIGN(v3, 0x1000);
    Gm<int32_t, 1, 64> v4(v1);
    TCI<Ub<int32_t, 1, 64>, Ub<int32_t, 1, 64>, int32_t, 0>(v2, 5, v3);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(v4, v2);
#endif
    pipe_barrier(PIPE_ALL);
}
