// out = left + right, for any number of elements: one tile at a time, loads ahead of additions.
// Slots: 0 left, 1 right, 2 out (float tensors of the same size), all contiguous.
#include <pto/pto-inst.hpp>

#include "tensor.h"

using namespace pto;

#include "pipe_sync.h"

constexpr int kTile = 4096; // elements: six of them, two rounds of three, fit the unified buffer
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

    // a room is free again once its result is stored
    set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
    set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID1);
    int room = 0;
    for (int64_t done = 0; done < count; done += kTile, room ^= 1) {
        int64_t here = count - done < kTile ? count - done : kTile;
        event_t event = room ? EVENT_ID1 : EVENT_ID0;
        uint64_t base = static_cast<uint64_t>(room) * 3 * kTile * sizeof(float);
        PieceTile a(here), b(here), sum(here);
        TASSIGN(a, base);
        TASSIGN(b, base + kTile * sizeof(float));
        TASSIGN(sum, base + 2 * kTile * sizeof(float));
        Piece left_in(left + done, Shape<1, 1, 1, 1, DYNAMIC>(here));
        Piece right_in(right + done, Shape<1, 1, 1, 1, DYNAMIC>(here));
        Piece result(out + done, Shape<1, 1, 1, 1, DYNAMIC>(here));

        wait_flag(PIPE_MTE3, PIPE_MTE2, event);
        TLOAD(a, left_in);
        TLOAD(b, right_in);
        set_flag(PIPE_MTE2, PIPE_V, event);
        wait_flag(PIPE_MTE2, PIPE_V, event);
        TADD(sum, a, b);
        set_flag(PIPE_V, PIPE_MTE3, event);
        wait_flag(PIPE_V, PIPE_MTE3, event);
        TSTORE(result, sum);
        set_flag(PIPE_MTE3, PIPE_MTE2, event);
    }
    wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
    wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID1);
    pipe_sync();
}
