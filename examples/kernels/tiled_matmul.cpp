// out = left x right: float16 in, float32 out. The inner dimension comes in tiles; while the cube multiplies
// one pair of tiles, the next is on its way.
// Slots: 0 left [M, K], 1 right [K, N], 2 out [M, N]; M and N whole tiles of 64, K of 64.
#include <pto/pto-inst.hpp>

#include "tensor.h"

using namespace pto;

#include "pipe_sync.h"

constexpr int kSide = 64;
using Piece = GlobalTensor<half, Shape<1, 1, 1, kSide, kSide>, Stride<1, 1, 1, DYNAMIC, 1>>;
using Result = GlobalTensor<float, Shape<1, 1, 1, kSide, kSide>, Stride<1, 1, 1, DYNAMIC, 1>>;
using MatTile =
    Tile<TileType::Mat, half, kSide, kSide, BLayout::ColMajor, kSide, kSide, SLayout::RowMajor, 512>;

template <class T> inline __aicore__ __gm__ T *elements(__gm__ ChipTensor *tensor) {
    return reinterpret_cast<__gm__ T *>(tensor->buffer.addr) + tensor->start_offset;
}

// One tile of the result: the sum over the inner dimension stays in the accumulator.
inline __aicore__ void multiply(__gm__ half *left, __gm__ half *right, __gm__ float *out, int inner,
                                int columns) {
    constexpr uint64_t kMat = kSide * kSide * sizeof(half);
    TileAcc<float, kSide, kSide> sum;
    TASSIGN(sum, 0);
    set_flag(PIPE_MTE1, PIPE_MTE2, EVENT_ID0);
    set_flag(PIPE_MTE1, PIPE_MTE2, EVENT_ID1);
    set_flag(PIPE_M, PIPE_MTE1, EVENT_ID0);
    set_flag(PIPE_M, PIPE_MTE1, EVENT_ID1);
    for (int k = 0; k < inner; k += kSide) {
        int room = k / kSide % 2;
        event_t event = room ? EVENT_ID1 : EVENT_ID0;
        MatTile left_mat, right_mat;
        TileLeft<half, kSide, kSide> left_tile;
        TileRight<half, kSide, kSide> right_tile;
        TASSIGN(left_mat, room * 2 * kMat);
        TASSIGN(right_mat, room * 2 * kMat + kMat);
        TASSIGN(left_tile, room * kMat);
        TASSIGN(right_tile, room * kMat);
        Piece left_in(left + k, Shape<1, 1, 1, kSide, kSide>(), Stride<1, 1, 1, DYNAMIC, 1>(inner));
        Piece right_in(right + static_cast<int64_t>(k) * columns, Shape<1, 1, 1, kSide, kSide>(),
                       Stride<1, 1, 1, DYNAMIC, 1>(columns));

        wait_flag(PIPE_MTE1, PIPE_MTE2, event);
        TLOAD(left_mat, left_in);
        TLOAD(right_mat, right_in);
        set_flag(PIPE_MTE2, PIPE_MTE1, event);
        wait_flag(PIPE_MTE2, PIPE_MTE1, event);
        wait_flag(PIPE_M, PIPE_MTE1, event);
        TMOV(left_tile, left_mat);
        TMOV(right_tile, right_mat);
        set_flag(PIPE_MTE1, PIPE_MTE2, event);
        set_flag(PIPE_MTE1, PIPE_M, event);
        wait_flag(PIPE_MTE1, PIPE_M, event);
        if (k == 0)
            TMATMUL(sum, left_tile, right_tile);
        else
            TMATMUL_ACC(sum, sum, left_tile, right_tile);
        set_flag(PIPE_M, PIPE_MTE1, event);
    }
    wait_flag(PIPE_MTE1, PIPE_MTE2, EVENT_ID0);
    wait_flag(PIPE_MTE1, PIPE_MTE2, EVENT_ID1);
    wait_flag(PIPE_M, PIPE_MTE1, EVENT_ID0);
    wait_flag(PIPE_M, PIPE_MTE1, EVENT_ID1);
    set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    Result result(out, Shape<1, 1, 1, kSide, kSide>(), Stride<1, 1, 1, DYNAMIC, 1>(columns));
    TSTORE(result, sum);
    set_flag(PIPE_FIX, PIPE_M, EVENT_ID0);
    wait_flag(PIPE_FIX, PIPE_M, EVENT_ID0);
}

extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    auto *left = reinterpret_cast<__gm__ ChipTensor *>(args[0]);
    auto *right = reinterpret_cast<__gm__ ChipTensor *>(args[1]);
    auto *out = reinterpret_cast<__gm__ ChipTensor *>(args[2]);
    int rows = static_cast<int>(left->shapes[0]), inner = static_cast<int>(left->shapes[1]);
    int columns = static_cast<int>(right->shapes[1]);
    for (int i = 0; i + kSide <= rows; i += kSide)
        for (int j = 0; j + kSide <= columns; j += kSide)
            multiply(elements<half>(left) + static_cast<int64_t>(i) * inner, elements<half>(right) + j,
                     elements<float>(out) + static_cast<int64_t>(i) * columns + j, inner, columns);
    pipe_sync();
}
