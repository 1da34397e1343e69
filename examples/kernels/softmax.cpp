// out = softmax of each row: exp(x - largest) / sum. Rows of up to 128 floats, any number of them.
// Slots: 0 x [rows, columns], 1 out of the same shape.
#include <pto/pto-inst.hpp>

#include "tensor.h"

using namespace pto;

#include "pipe_sync.h"

constexpr int kRows = 16, kCols = 128;
using Rows = GlobalTensor<float, Shape<1, 1, 1, DYNAMIC, DYNAMIC>, Stride<1, 1, 1, DYNAMIC, 1>>;
using RowsTile = Tile<TileType::Vec, float, kRows, kCols, BLayout::RowMajor, DYNAMIC, DYNAMIC>;
using PerRow = Tile<TileType::Vec, float, kRows, 1, BLayout::ColMajor, DYNAMIC, 1>;

inline __aicore__ __gm__ float *elements(__gm__ ChipTensor *tensor) {
    return reinterpret_cast<__gm__ float *>(tensor->buffer.addr) + tensor->start_offset;
}

extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    auto *x = reinterpret_cast<__gm__ ChipTensor *>(args[0]);
    auto *out = reinterpret_cast<__gm__ ChipTensor *>(args[1]);
    int64_t rows = x->shapes[0], columns = x->shapes[1];
    constexpr uint64_t kTile = kRows * kCols * sizeof(float), kColumn = kRows * sizeof(float);
    for (int64_t first = 0; first < rows; first += kRows) {
        int64_t here = rows - first < kRows ? rows - first : kRows;
        Rows in(elements(x) + first * columns, Shape<1, 1, 1, DYNAMIC, DYNAMIC>(here, columns),
                Stride<1, 1, 1, DYNAMIC, 1>(columns));
        Rows result(elements(out) + first * columns, Shape<1, 1, 1, DYNAMIC, DYNAMIC>(here, columns),
                    Stride<1, 1, 1, DYNAMIC, 1>(columns));
        RowsTile tile(here, columns), scratch(here, columns);
        PerRow largest(here), sum(here);
        TASSIGN(tile, 0);
        TASSIGN(scratch, kTile);
        TASSIGN(largest, 2 * kTile);
        TASSIGN(sum, 2 * kTile + kColumn);

        TLOAD(tile, in);
        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        TROWMAX(largest, tile, scratch);
        pipe_barrier(PIPE_V);
        TROWEXPANDSUB(tile, tile, largest);
        pipe_barrier(PIPE_V);
        TEXP(tile, tile);
        pipe_barrier(PIPE_V);
        TROWSUM(sum, tile, scratch);
        pipe_barrier(PIPE_V);
        TROWEXPANDDIV(tile, tile, sum);
        set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        TSTORE(result, tile);
        set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
        wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
    }
    pipe_sync();
}
