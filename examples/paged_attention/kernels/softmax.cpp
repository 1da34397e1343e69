// SF: weights = exp(scores * scale - largest), rounded to bfloat16; the largest and the sum of each row.
// Columns past the valid ones are masked, so that a block which is not full gets weight 0 there.
#include "vector_tiles.hpp"

template <int M, int N>
inline __aicore__ void softmax(__gm__ ChipTensor *scores, __gm__ ChipTensor *weights,
                               __gm__ ChipTensor *largest, __gm__ ChipTensor *total, float scale) {
    using Scores = MatrixTile<float, M, N>;
    using Valid = Tile<TileType::Vec, float, M, N, BLayout::RowMajor, M, -1>;
    using Masked =
        Tile<TileType::Vec, float, M, N, BLayout::RowMajor, M, N, SLayout::NoneBox, 512, PadValue::Min>;
    Matrix<float, M, N> scores_in(first_element<float>(scores));
    Matrix<bfloat16_t, M, N> weights_out(first_element<bfloat16_t>(weights));
    Column<M> largest_out(first_element<float>(largest)), total_out(first_element<float>(total));

    constexpr int kMatrix = M * N * sizeof(float), kColumn = M * sizeof(float);
    Scores tile, weight, scratch;
    Valid valid(static_cast<size_t>(scores->shapes[1]));
    Masked masked;
    ColumnTile<M> peak, sum;
    MatrixTile<bfloat16_t, M, N> rounded;
    TASSIGN(tile, 0);
    TASSIGN(valid, 0);
    TASSIGN(masked, 0);
    TASSIGN(weight, kMatrix);
    TASSIGN(scratch, 2 * kMatrix);
    TASSIGN(peak, 3 * kMatrix);
    TASSIGN(sum, 3 * kMatrix + kColumn);
    TASSIGN(rounded, 3 * kMatrix + 2 * kColumn);

    TLOAD(tile, scores_in);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TFILLPAD_INPLACE(masked, valid);
    pipe_barrier(PIPE_V);
    TMULS(tile, tile, scale);
    pipe_barrier(PIPE_V);
    TROWMAX(peak, tile, scratch);
    pipe_barrier(PIPE_V);
    TROWEXPANDSUB(weight, tile, peak);
    pipe_barrier(PIPE_V);
    TEXP(weight, weight);
    pipe_barrier(PIPE_V);
    TCVT(rounded, weight, RoundMode::CAST_ROUND);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    // the sum is of the rounded weights, while those are already being stored
    pipe_barrier(PIPE_V);
    TCVT(weight, rounded, RoundMode::CAST_ROUND);
    pipe_barrier(PIPE_V);
    TROWSUM(sum, weight, scratch);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID1);

    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(weights_out, rounded);
    TSTORE(largest_out, peak);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID1);
    TSTORE(total_out, sum);
    pipe_sync();
}

extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    auto *scores = reinterpret_cast<__gm__ ChipTensor *>(args[0]);
    auto *weights = reinterpret_cast<__gm__ ChipTensor *>(args[1]);
    auto *largest = reinterpret_cast<__gm__ ChipTensor *>(args[2]);
    auto *total = reinterpret_cast<__gm__ ChipTensor *>(args[3]);
    union {
        uint64_t bits;
        float value;
    } scale = {static_cast<uint64_t>(args[4])};
    if (weights->shapes[0] == 16 && weights->shapes[1] == 16)
        softmax<16, 16>(scores, weights, largest, total, scale.value);
    else if (weights->shapes[0] == 16)
        softmax<16, 128>(scores, weights, largest, total, scale.value);
    else
        softmax<64, 64>(scores, weights, largest, total, scale.value);
}
