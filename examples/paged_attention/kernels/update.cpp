// UP: joins one block's softmax and weighted values with what came before it; after the last block divides by
// the sum of all weights.
#include "vector_tiles.hpp"

struct Places {
    __gm__ ChipTensor *block_largest, *block_total, *block_sum, *largest, *total, *sum, *out;
};

template <int M, int N> inline __aicore__ void update(const Places &at, bool is_first, bool is_last) {
    Matrix<float, M, N> block_sum_in(first_element<float>(at.block_sum));
    Matrix<float, M, N> sum_gm(first_element<float>(at.sum)), out_gm(first_element<float>(at.out));
    Column<M> block_largest_in(first_element<float>(at.block_largest));
    Column<M> block_total_in(first_element<float>(at.block_total));
    Column<M> largest_gm(first_element<float>(at.largest)), total_gm(first_element<float>(at.total));

    constexpr int kMatrix = M * N * sizeof(float), kColumn = M * sizeof(float);
    MatrixTile<float, M, N> block_sum, sum;
    ColumnTile<M> block_largest, block_total, largest, total;
    TASSIGN(block_sum, 0);
    TASSIGN(sum, kMatrix);
    TASSIGN(block_largest, 2 * kMatrix);
    TASSIGN(block_total, 2 * kMatrix + kColumn);
    TASSIGN(largest, 2 * kMatrix + 2 * kColumn);
    TASSIGN(total, 2 * kMatrix + 3 * kColumn);
    ColumnTile<M> new_largest, old_scale, new_scale, new_total;
    TASSIGN(new_largest, 2 * kMatrix + 4 * kColumn);
    TASSIGN(old_scale, 2 * kMatrix + 5 * kColumn);
    TASSIGN(new_scale, 2 * kMatrix + 6 * kColumn);
    TASSIGN(new_total, 2 * kMatrix + 7 * kColumn);

    TLOAD(block_sum, block_sum_in);
    TLOAD(block_largest, block_largest_in);
    TLOAD(block_total, block_total_in);
    if (is_first) {
        set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
        wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
        TSTORE(largest_gm, block_largest);
        TSTORE(total_gm, block_total);
        TSTORE(sum_gm, block_sum);
        if (is_last) {
            set_flag(PIPE_MTE3, PIPE_V, EVENT_ID0);
            wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID0);
            TROWEXPANDDIV(block_sum, block_sum, block_total);
            set_flag(PIPE_V, PIPE_MTE3, EVENT_ID1);
            wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID1);
            TSTORE(out_gm, block_sum);
        }
        pipe_sync();
        return;
    }

    TLOAD(sum, sum_gm);
    TLOAD(largest, largest_gm);
    TLOAD(total, total_gm);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);

    // a value for each row is one short row of a tile: the same bytes, seen the other way round
    RowTile<M> block_largest_row, block_total_row, largest_row, total_row;
    RowTile<M> new_largest_row, old_scale_row, new_scale_row, new_total_row;
    TRESHAPE(block_largest_row, block_largest);
    TRESHAPE(block_total_row, block_total);
    TRESHAPE(largest_row, largest);
    TRESHAPE(total_row, total);
    TRESHAPE(new_largest_row, new_largest);
    TRESHAPE(old_scale_row, old_scale);
    TRESHAPE(new_scale_row, new_scale);
    TRESHAPE(new_total_row, new_total);

    TMAX(new_largest_row, largest_row, block_largest_row);
    pipe_barrier(PIPE_V);
    TSUB(old_scale_row, largest_row, new_largest_row);
    TSUB(new_scale_row, block_largest_row, new_largest_row);
    pipe_barrier(PIPE_V);
    TEXP(old_scale_row, old_scale_row);
    TEXP(new_scale_row, new_scale_row);
    pipe_barrier(PIPE_V);
    TMUL(total_row, old_scale_row, total_row);
    TMUL(new_total_row, new_scale_row, block_total_row);
    TROWEXPANDMUL(sum, sum, old_scale);
    TROWEXPANDMUL(block_sum, block_sum, new_scale);
    pipe_barrier(PIPE_V);
    TADD(new_total_row, total_row, new_total_row);
    TADD(sum, sum, block_sum);
    if (is_last) {
        pipe_barrier(PIPE_V);
        TROWEXPANDDIV(sum, sum, new_total);
    }
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(largest_gm, new_largest);
    TSTORE(total_gm, new_total);
    if (is_last)
        TSTORE(out_gm, sum);
    else
        TSTORE(sum_gm, sum);
    pipe_sync();
}

extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    Places at;
    at.block_largest = reinterpret_cast<__gm__ ChipTensor *>(args[0]);
    at.block_total = reinterpret_cast<__gm__ ChipTensor *>(args[1]);
    at.block_sum = reinterpret_cast<__gm__ ChipTensor *>(args[2]);
    at.largest = reinterpret_cast<__gm__ ChipTensor *>(args[3]);
    at.total = reinterpret_cast<__gm__ ChipTensor *>(args[4]);
    at.sum = reinterpret_cast<__gm__ ChipTensor *>(args[5]);
    at.out = reinterpret_cast<__gm__ ChipTensor *>(args[6]);
    bool is_first = args[7] != 0, is_last = args[8] != 0;
    uint32_t rows = at.block_sum->shapes[0], columns = at.block_sum->shapes[1];
    if (rows == 16 && columns == 16)
        update<16, 16>(at, is_first, is_last);
    else if (rows == 16)
        update<16, 128>(at, is_first, is_last);
    else
        update<64, 128>(at, is_first, is_last);
}
