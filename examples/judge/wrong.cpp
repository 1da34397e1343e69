#include <pto/pto-inst.hpp>
using namespace pto;
using Rows = Tile<TileType::Vec, float, 16, 64, BLayout::RowMajor, 16, 64>;
using Global = GlobalTensor<float, Shape<1, 1, 1, 16, 64>, Stride<1024, 1024, 1024, 64, 1>>;
__global__ AICORE void axpy(__gm__ float *x, __gm__ float *y, __gm__ float *z) {
#if defined(__DAV_VEC__)
    Rows a, b;
    TASSIGN(a, 0x0);
    TASSIGN(b, 0x1000);
    for (int row = 0; row < 4; ++row) {
        Global gx(x + row * 1024), gy(y + row * 1024), gz(z + row * 1024);
        TLOAD(a, gx);
        TLOAD(b, gy);
        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        TMULS(a, a, 3.0f);
        pipe_barrier(PIPE_V);
        TADD(a, a, b);
        set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        TSTORE(gz, a);
        set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
        wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
    }
#endif
}
