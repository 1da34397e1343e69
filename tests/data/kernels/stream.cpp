// out = left + right, tile by tile of 64 x 64 floats with two buffers, as often as args[3] says.
#include <pto/pto-inst.hpp>

#include "tensor.h"

using namespace pto;

#include "pipe_sync.h"

constexpr int kRows = 64, kCols = 64, kBytes = kRows * kCols * sizeof(float);
using Matrix = GlobalTensor<float, Shape<1, 1, 1, kRows, kCols>, Stride<1, 1, 1, kCols, 1>>;
using MatrixTile = Tile<TileType::Vec, float, kRows, kCols, BLayout::RowMajor, kRows, kCols>;

inline __aicore__ Matrix matrix_at(int64_t slot) {
    auto *tensor = reinterpret_cast<__gm__ ChipTensor *>(slot);
    return Matrix(reinterpret_cast<__gm__ float *>(tensor->buffer.addr) + tensor->start_offset);
}

extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    Matrix left_in = matrix_at(args[0]), right_in = matrix_at(args[1]), out = matrix_at(args[2]);
    MatrixTile left[2], right[2], sum[2];
    for (int i = 0; i < 2; ++i) {
        TASSIGN(left[i], i * kBytes);
        TASSIGN(right[i], (2 + i) * kBytes + 0x100);
        TASSIGN(sum[i], (5 + i) * kBytes);
        set_flag(PIPE_V, PIPE_MTE2, i);
        set_flag(PIPE_MTE3, PIPE_V, i);
    }
    for (int64_t step = 0; step < args[3]; ++step) {
        int p = step & 1;
        wait_flag(PIPE_V, PIPE_MTE2, p);
        TLOAD(left[p], left_in);
        TLOAD(right[p], right_in);
        set_flag(PIPE_MTE2, PIPE_V, p);
        wait_flag(PIPE_MTE2, PIPE_V, p);
        wait_flag(PIPE_MTE3, PIPE_V, p);
        TADD(sum[p], left[p], right[p]);
        set_flag(PIPE_V, PIPE_MTE2, p);
        set_flag(PIPE_V, PIPE_MTE3, p);
        wait_flag(PIPE_V, PIPE_MTE3, p);
        TSTORE(out, sum[p]);
        set_flag(PIPE_MTE3, PIPE_V, p);
    }
    for (int i = 0; i < 2; ++i) {
        wait_flag(PIPE_V, PIPE_MTE2, i);
        wait_flag(PIPE_MTE3, PIPE_V, i);
    }
    pipe_sync();
}
