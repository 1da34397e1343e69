// y = x * 2 + 1 in pieces of TILE elements, `rounds` times: a kernel whose arguments and macros decide how
// long it takes.
#include <pto/pto-inst.hpp>

using namespace pto;

#ifndef TILE
#define TILE 1024
#endif

using Piece = Tile<TileType::Vec, float, 1, TILE, BLayout::RowMajor, 1, TILE>;
using Global = GlobalTensor<float, Shape<1, 1, 1, 1, TILE>, Stride<TILE, TILE, TILE, TILE, 1>>;

__global__ AICORE void rounds_of(__gm__ float *x, __gm__ float *y, int32_t rounds, int32_t work) {
#if defined(__DAV_VEC__)
    Piece a;
    TASSIGN(a, 0x0);
    for (int32_t round = 0; round < rounds; ++round) {
        Global from(x + round * TILE), to(y + round * TILE);
        TLOAD(a, from);
        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        for (int32_t i = 0; i < work; ++i) {
            TMULS(a, a, 2.0f);
            pipe_barrier(PIPE_V);
            TADDS(a, a, 1.0f);
            pipe_barrier(PIPE_V);
        }
        set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        TSTORE(to, a);
        set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
        wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
    }
#endif
}
