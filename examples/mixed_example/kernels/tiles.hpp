// One 64 x 64 tile of floats, which all members of the mix work on.
#pragma once

#include <pto/pto-inst.hpp>

#include "tensor.h"

using namespace pto;

#include "pipe_sync.h"

constexpr int kRows = 64, kCols = 64, kBytes = kRows * kCols * sizeof(float);
using Matrix = GlobalTensor<float, Shape<1, 1, 1, kRows, kCols>, Stride<1, 1, 1, kCols, 1>>;
using MatrixTile = Tile<TileType::Vec, float, kRows, kCols, BLayout::RowMajor, kRows, kCols>;

inline __aicore__ Matrix matrix_at(int64_t slot) {
    auto *tensor = reinterpret_cast<__gm__ ChipTensor *>(slot);
    return Matrix(reinterpret_cast<__gm__ float *>(tensor->buffer.addr) + tensor->start_offset);
}
