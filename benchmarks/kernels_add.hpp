// Add of long vectors, tile by tile, with one or two buffers: what vector_add() of whole_kernel_points.py
// runs.
#include <pto/pto-inst.hpp>

using namespace pto;

template <int buffers> AICORE void add(__gm__ half *out, __gm__ half *a, __gm__ half *b, int blocks) {
    constexpr int kTotal = 8192 * 8192, kTile = buffers == 1 ? 32 * 1024 : 16 * 1024;
    using Piece =
        GlobalTensor<half, pto::Shape<1, 1, 1, 1, kTile>, pto::Stride<kTile, kTile, kTile, kTile, 1>>;
    using Row = Tile<TileType::Vec, half, 1, kTile, BLayout::RowMajor, 1, kTile>;
    Row x[buffers], y[buffers];
    for (int i = 0; i < buffers; ++i) {
        TASSIGN(x[i], (2 * i) * kTile * 2);
        TASSIGN(y[i], (2 * i + 1) * kTile * 2 + 256);
        set_flag(PIPE_MTE3, PIPE_MTE2, (event_t)i);
    }
    const int tiles = kTotal / kTile, each = (tiles + blocks - 1) / blocks;
    const int first = get_block_idx() * each, last = first + each < tiles ? first + each : tiles;
    for (int t = first; t < last; ++t) {
        const event_t event = (event_t)((t - first) % buffers);
        Row &left = x[event], &right = y[event];
        Piece from_a(a + t * kTile), from_b(b + t * kTile), to(out + t * kTile);
        wait_flag(PIPE_MTE3, PIPE_MTE2, event);
        TLOAD(left, from_a);
        TLOAD(right, from_b);
        set_flag(PIPE_MTE2, PIPE_V, event);
        wait_flag(PIPE_MTE2, PIPE_V, event);
        TADD(left, left, right);
        set_flag(PIPE_V, PIPE_MTE3, event);
        wait_flag(PIPE_V, PIPE_MTE3, event);
        TSTORE(to, left);
        set_flag(PIPE_MTE3, PIPE_MTE2, event);
    }
    for (int i = 0; i < buffers; ++i) wait_flag(PIPE_MTE3, PIPE_MTE2, (event_t)i);
}
