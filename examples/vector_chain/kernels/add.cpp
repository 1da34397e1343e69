// ADD: out = left + right.
#include "tiles.hpp"

extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    Matrix left_in = matrix_at(args[0]), right_in = matrix_at(args[1]), out = matrix_at(args[2]);
    MatrixTile left, right, sum;
    TASSIGN(left, 0);
    TASSIGN(right, kBytes);
    TASSIGN(sum, 2 * kBytes);
    TLOAD(left, left_in);
    TLOAD(right, right_in);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TADD(sum, left, right);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(out, sum);
    pipe_sync();
}
