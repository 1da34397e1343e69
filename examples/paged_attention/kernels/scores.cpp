// QK: scores[M,N] = query[M,K] x keys[N,K] transposed.
#include "matmul_tiles.hpp"

template <int M, int K, int N>
inline __aicore__ void scores(__gm__ ChipTensor *query, __gm__ ChipTensor *keys, __gm__ ChipTensor *out) {
    // keys lie row after row of K: read column by column they are the transposed operand
    using Keys =
        GlobalTensor<bfloat16_t, Shape<1, 1, 1, K, N>, Stride<K * N, K * N, K * N, 1, K>, Layout::DN>;
    using KeysMat = Tile<TileType::Mat, bfloat16_t, K, N, BLayout::RowMajor, K, N, SLayout::ColMajor, 512>;
    multiply<M, K, N, Keys, KeysMat>(query, keys, out);
}

extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    auto *query = reinterpret_cast<__gm__ ChipTensor *>(args[0]);
    auto *keys = reinterpret_cast<__gm__ ChipTensor *>(args[1]);
    auto *out = reinterpret_cast<__gm__ ChipTensor *>(args[2]);
    if (query->shapes[0] == 16 && query->shapes[1] == 16)
        scores<16, 16, 16>(query, keys, out);
    else if (query->shapes[0] == 16)
        scores<16, 128, 128>(query, keys, out);
    else
        scores<64, 128, 64>(query, keys, out);
}
