// SCALE: this block's 16 rows of x, times a factor, plus the block's number.
#include <pto/pto-inst.hpp>

#include "intrinsic.h"
#include "tensor.h"

using namespace pto;

#include "pipe_sync.h"

constexpr int kRows = 16, kCols = 64;
using Matrix = GlobalTensor<float, Shape<1, 1, 1, kRows, kCols>, Stride<1, 1, 1, kCols, 1>>;
using MatrixTile = Tile<TileType::Vec, float, kRows, kCols, BLayout::RowMajor, kRows, kCols>;

extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    auto *x = reinterpret_cast<__gm__ ChipTensor *>(args[0]);
    auto *out = reinterpret_cast<__gm__ ChipTensor *>(args[1]);
    union {
        uint64_t bits;
        float value;
    } factor = {static_cast<uint64_t>(args[2])};
    int32_t block = get_block_idx(args);
    uint64_t first = x->start_offset + static_cast<uint64_t>(block) * kRows * kCols;
    Matrix in(reinterpret_cast<__gm__ float *>(x->buffer.addr) + first);
    Matrix result(reinterpret_cast<__gm__ float *>(out->buffer.addr) + first);
    MatrixTile tile;
    TASSIGN(tile, 0);
    TLOAD(tile, in);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TMULS(tile, tile, factor.value);
    pipe_barrier(PIPE_V);
    TADDS(tile, tile, static_cast<float>(block));
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(result, tile);
    pipe_sync();
}
