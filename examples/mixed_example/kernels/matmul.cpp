// MATMUL: out = left x right, 64 x 64 floats.
#include "tiles.hpp"

extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    Matrix left_in = matrix_at(args[0]), right_in = matrix_at(args[1]), out = matrix_at(args[2]);
    using Mat =
        Tile<TileType::Mat, float, kRows, kCols, BLayout::ColMajor, kRows, kCols, SLayout::RowMajor, 512>;
    Mat left_mat, right_mat;
    TileLeft<float, kRows, kCols, kRows, kCols> left;
    TileRight<float, kRows, kCols, kRows, kCols> right;
    TileAcc<float, kRows, kCols, kRows, kCols> sum;
    TASSIGN(left_mat, 0x0);
    TASSIGN(right_mat, 0x10000);
    TASSIGN(left, 0x0);
    TASSIGN(right, 0x0);
    TASSIGN(sum, 0x0);
    TLOAD(left_mat, left_in);
    TLOAD(right_mat, right_in);
    set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    TMOV(left, left_mat);
    TMOV(right, right_mat);
    set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    TMATMUL(sum, left, right);
    set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    TSTORE(out, sum);
    pipe_sync();
}
