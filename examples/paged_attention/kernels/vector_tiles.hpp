// Tiles and places that the two vector kernels share.
#pragma once

#include <pto/pto-inst.hpp>

#include "tensor.h"

using namespace pto;

#include "pipe_sync.h"

template <class T> inline __aicore__ __gm__ T *first_element(__gm__ ChipTensor *tensor) {
    return reinterpret_cast<__gm__ T *>(tensor->buffer.addr) + tensor->start_offset;
}

template <class T, int M, int N> using Matrix = GlobalTensor<T, Shape<1, 1, 1, M, N>, Stride<1, 1, 1, N, 1>>;
// A value for each row, in global memory one after the other.
template <int M> using Column = GlobalTensor<float, Shape<1, 1, 1, M, 1>, Stride<1, 1, 1, 1, 1>, Layout::DN>;

template <class T, int M, int N> using MatrixTile = Tile<TileType::Vec, T, M, N, BLayout::RowMajor, M, N>;
template <int M> using ColumnTile = Tile<TileType::Vec, float, M, 1, BLayout::ColMajor, M, 1>;
template <int M> using RowTile = Tile<TileType::Vec, float, 1, M, BLayout::RowMajor, 1, M>;
