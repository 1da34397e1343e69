// C = A x B of half-precision matrices in tiles of 128 x 256, 64 deep, with two buffers in L1 and in L0.
// args: A, B, C, then m, n and k; blocks share the tiles of C.
#include <pto/pto-inst.hpp>

#include "tensor.h"

using namespace pto;

#include "pipe_sync.h"

constexpr int kM = 128, kN = 256, kK = 64;
using Step = Stride<1, 1, 1, DYNAMIC, 1>;
using LeftIn = GlobalTensor<half, Shape<1, 1, 1, kM, kK>, Step>;
using RightIn = GlobalTensor<half, Shape<1, 1, 1, kK, kN>, Step>;
using Out = GlobalTensor<float, Shape<1, 1, 1, kM, kN>, Step>;
using LeftMat = Tile<TileType::Mat, half, kM, kK, BLayout::ColMajor, kM, kK, SLayout::RowMajor, 512>;
using RightMat = Tile<TileType::Mat, half, kK, kN, BLayout::ColMajor, kK, kN, SLayout::RowMajor, 512>;

template <class T> inline __aicore__ __gm__ T *elements(int64_t slot) {
    auto *tensor = reinterpret_cast<__gm__ ChipTensor *>(slot);
    return reinterpret_cast<__gm__ T *>(tensor->buffer.addr) + tensor->start_offset;
}

extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    __gm__ half *a = elements<half>(args[0]), *b = elements<half>(args[1]);
    __gm__ float *c = elements<float>(args[2]);
    int64_t m = args[3], n = args[4], k = args[5];
    LeftMat left_mat[2];
    RightMat right_mat[2];
    TileLeft<half, kM, kK, kM, kK> left[2];
    TileRight<half, kK, kN, kK, kN> right[2];
    TileAcc<float, kM, kN, kM, kN> sum;
    for (int i = 0; i < 2; ++i) {
        TASSIGN(left_mat[i], i * 0x4000);
        TASSIGN(right_mat[i], 0x10000 + i * 0x8000);
        TASSIGN(left[i], i * 0x4000);
        TASSIGN(right[i], i * 0x8000);
        set_flag(PIPE_MTE1, PIPE_MTE2, i);
        set_flag(PIPE_M, PIPE_MTE1, i);
    }
    TASSIGN(sum, 0);
    set_flag(PIPE_FIX, PIPE_M, 0);
    int64_t across = n / kN, tiles = m / kM * across;
    for (int64_t tile = get_block_idx(); tile < tiles; tile += get_block_num()) {
        int64_t row = tile / across * kM, col = tile % across * kN;
        wait_flag(PIPE_FIX, PIPE_M, 0);
        for (int64_t step = 0; step < k / kK; ++step) {
            int p = step & 1;
            wait_flag(PIPE_MTE1, PIPE_MTE2, p);
            TLOAD(left_mat[p], LeftIn(a + row * k + step * kK, {}, Step(k)));
            TLOAD(right_mat[p], RightIn(b + step * kK * n + col, {}, Step(n)));
            set_flag(PIPE_MTE2, PIPE_MTE1, p);
            wait_flag(PIPE_MTE2, PIPE_MTE1, p);
            wait_flag(PIPE_M, PIPE_MTE1, p);
            TMOV(left[p], left_mat[p]);
            TMOV(right[p], right_mat[p]);
            set_flag(PIPE_MTE1, PIPE_MTE2, p);
            set_flag(PIPE_MTE1, PIPE_M, p);
            wait_flag(PIPE_MTE1, PIPE_M, p);
            if (step == 0)
                TMATMUL(sum, left[p], right[p]);
            else
                TMATMUL_ACC(sum, sum, left[p], right[p]);
            set_flag(PIPE_M, PIPE_MTE1, p);
        }
        set_flag(PIPE_M, PIPE_FIX, 0);
        wait_flag(PIPE_M, PIPE_FIX, 0);
        Out out(c + row * n + col, {}, Step(n));
        TSTORE(out, sum);
        set_flag(PIPE_FIX, PIPE_M, 0);
    }
    for (int i = 0; i < 2; ++i) {
        wait_flag(PIPE_MTE1, PIPE_MTE2, i);
        wait_flag(PIPE_M, PIPE_MTE1, i);
    }
    wait_flag(PIPE_FIX, PIPE_M, 0);
    pipe_sync();
}
