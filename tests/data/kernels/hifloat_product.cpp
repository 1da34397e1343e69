// c = a @ b of HiFloat8: 32 x 64 by 64 x 32.
#include <cstdint>
#include <pto/pto-inst.hpp>

#include "tensor.h"

using namespace pto;

namespace {
constexpr int M = 32, K = 64, N = 32;

template <class T> T *data(int64_t slot) {
    return reinterpret_cast<T *>(reinterpret_cast<ChipTensor *>(slot)->buffer.addr);
}
template <class T, int R, int C>
using Matrix = GlobalTensor<T, Shape<1, 1, 1, R, C>, pto::Stride<R * C, R * C, R * C, C, 1>>;
} // namespace

extern "C" void kernel_entry(int64_t *args) {
    Tile<TileType::Mat, hifloat8_t, M, K, BLayout::ColMajor, M, K, SLayout::RowMajor, 512> a_mat;
    Tile<TileType::Mat, hifloat8_t, K, N, BLayout::ColMajor, K, N, SLayout::RowMajor, 512> b_mat;
    TileLeft<hifloat8_t, M, K> a;
    TileRight<hifloat8_t, K, N> b;
    TileAcc<float, M, N> c;
    TASSIGN(a_mat, 0x0);
    TASSIGN(b_mat, 0x8000);
    TASSIGN(a, 0x0);
    TASSIGN(b, 0x0);
    TASSIGN(c, 0x0);
    Matrix<hifloat8_t, M, K> a_global(data<hifloat8_t>(args[0]));
    Matrix<hifloat8_t, K, N> b_global(data<hifloat8_t>(args[1]));
    Matrix<float, M, N> c_global(data<float>(args[2]));
    TLOAD(a_mat, a_global);
    TLOAD(b_mat, b_global);
    set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    TMOV(a, a_mat);
    TMOV(b, b_mat);
    set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    TMATMUL(c, a, b);
    set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    TSTORE(c_global, c);
    pipe_barrier(PIPE_ALL);
}
