// out = x * factor, by rows of 64: parameters of its own, the block index last.
#include <cstdint>
#include <pto/pto-inst.hpp>

using namespace pto;

__global__ AICORE void typed_scale(__gm__ float *x, __gm__ float *out, float factor, int32_t block) {
    Tile<TileType::Vec, float, 1, 64> tile;
    TASSIGN(tile, 0x0);
    GlobalTensor<float, Shape<1, 1, 1, 1, 64>, pto::Stride<64, 64, 64, 64, 1>> from(x + block * 64), to(out + block * 64);
    TLOAD(tile, from);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TMULS(tile, tile, factor);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(to, tile);
    pipe_barrier(PIPE_ALL);
}
