// out = exp(left + right), for any number of elements: one tile after the other, in one buffer.
// Slots: 0 left, 1 right, 2 out (float tensors of the same size), all contiguous.
#include <pto/pto-inst.hpp>

#include "tensor.h"

using namespace pto;

#include "pipe_sync.h"

constexpr int kTile = 4096; // elements; the unified buffer has room for twelve such tiles
using Piece = GlobalTensor<float, Shape<1, 1, 1, 1, DYNAMIC>, Stride<kTile, kTile, kTile, kTile, 1>>;
using PieceTile = Tile<TileType::Vec, float, 1, kTile, BLayout::RowMajor, 1, DYNAMIC>;

inline __aicore__ __gm__ float *elements(int64_t slot) {
    auto *tensor = reinterpret_cast<__gm__ ChipTensor *>(slot);
    return reinterpret_cast<__gm__ float *>(tensor->buffer.addr) + tensor->start_offset;
}

extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    __gm__ float *left = elements(args[0]), *right = elements(args[1]), *out = elements(args[2]);
    auto *tensor = reinterpret_cast<__gm__ ChipTensor *>(args[0]);
    int64_t count = 1;
    for (uint32_t i = 0; i < tensor->ndims; ++i) count *= tensor->shapes[i];

    set_flag(PIPE_V, PIPE_MTE2, EVENT_ID0); // the inputs' tiles are free
    set_flag(PIPE_MTE3, PIPE_V, EVENT_ID0); // the result's tile is free
    for (int64_t done = 0; done < count; done += kTile) {
        int64_t here = count - done < kTile ? count - done : kTile;
        PieceTile a(here), b(here), sum(here);
        TASSIGN(a, 0);
        TASSIGN(b, kTile * sizeof(float) + 256); // 256 bytes further: other banks than a
        TASSIGN(sum, 2 * (kTile * sizeof(float) + 256));
        Piece left_in(left + done, Shape<1, 1, 1, 1, DYNAMIC>(here));
        Piece right_in(right + done, Shape<1, 1, 1, 1, DYNAMIC>(here));
        Piece result(out + done, Shape<1, 1, 1, 1, DYNAMIC>(here));

        wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);
        TLOAD(a, left_in);
        TLOAD(b, right_in);
        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);

        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID0);
        TADD(sum, a, b);
        pipe_barrier(PIPE_V);
        TEXP(sum, sum);
        set_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);
        set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);

        wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        TSTORE(result, sum);
        set_flag(PIPE_MTE3, PIPE_V, EVENT_ID0);
    }
    wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);
    wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID0);
    pipe_sync();
}
