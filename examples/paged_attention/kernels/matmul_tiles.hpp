// One matrix product through L1 and L0, shared by the two cube kernels.
#pragma once

#include <pto/pto-inst.hpp>

#include "tensor.h"

using namespace pto;

#include "pipe_sync.h"

template <class T> inline __aicore__ __gm__ T *first_element(__gm__ ChipTensor *tensor) {
    return reinterpret_cast<__gm__ T *>(tensor->buffer.addr) + tensor->start_offset;
}

// `Right` is how the right operand lies in global memory: as it is, or transposed.
template <int M, int K, int N, class Right, class RightMat>
inline __aicore__ void multiply(__gm__ ChipTensor *left, __gm__ ChipTensor *right, __gm__ ChipTensor *out) {
    using Left = GlobalTensor<bfloat16_t, Shape<1, 1, 1, M, K>, Stride<M * K, M * K, M * K, K, 1>>;
    using Out = GlobalTensor<float, Shape<1, 1, 1, M, N>, Stride<M * N, M * N, M * N, N, 1>>;
    using LeftMat = Tile<TileType::Mat, bfloat16_t, M, K, BLayout::ColMajor, M, K, SLayout::RowMajor, 512>;

    Left left_in(first_element<bfloat16_t>(left));
    Right right_in(first_element<bfloat16_t>(right));
    Out result(first_element<float>(out));
    LeftMat left_mat;
    RightMat right_mat;
    TileLeft<bfloat16_t, M, K, M, K> left_tile;
    TileRight<bfloat16_t, K, N, K, N> right_tile;
    TileAcc<float, M, N, M, N> sum;
    TASSIGN(left_mat, 0x0);
    TASSIGN(right_mat, 0x20000);
    TASSIGN(left_tile, 0x0);
    TASSIGN(right_tile, 0x0);
    TASSIGN(sum, 0x0);

    // the left operand moves on while the right one is still on its way
    TLOAD(left_mat, left_in);
    set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    TLOAD(right_mat, right_in);
    set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID1);
    wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    TMOV(left_tile, left_mat);
    wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID1);
    TMOV(right_tile, right_mat);
    set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    TMATMUL(sum, left_tile, right_tile);
    set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    TSTORE(result, sum);
    pipe_sync();
}
