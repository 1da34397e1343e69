// PV: out[M,N] = weights[M,K] x values[K,N].
#include "matmul_tiles.hpp"

template <int M, int K, int N>
inline __aicore__ void weigh(__gm__ ChipTensor *weights, __gm__ ChipTensor *values, __gm__ ChipTensor *out) {
    using Values = GlobalTensor<bfloat16_t, Shape<1, 1, 1, K, N>, Stride<K * N, K * N, K * N, N, 1>>;
    using ValuesMat = Tile<TileType::Mat, bfloat16_t, K, N, BLayout::ColMajor, K, N, SLayout::RowMajor, 512>;
    multiply<M, K, N, Values, ValuesMat>(weights, values, out);
}

extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    auto *weights = reinterpret_cast<__gm__ ChipTensor *>(args[0]);
    auto *values = reinterpret_cast<__gm__ ChipTensor *>(args[1]);
    auto *out = reinterpret_cast<__gm__ ChipTensor *>(args[2]);
    if (weights->shapes[0] == 16 && weights->shapes[1] == 16)
        weigh<16, 16, 16>(weights, values, out);
    else if (weights->shapes[0] == 16)
        weigh<16, 128, 128>(weights, values, out);
    else
        weigh<64, 64, 128>(weights, values, out);
}
