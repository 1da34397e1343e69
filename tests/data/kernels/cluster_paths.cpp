// What cores of one cluster write into each other's memory (Ascend 950). Slot 3: which path.
//   0..3  the product of slots 0 and 1 goes to the vector cores by AccToVecMode; each stores what it has, in
//         slot 2 at its own place
//   4     the same to lane 0 as half, with a scale for every column (slot 4) and without negative numbers
//   6, 7  its lower right quarter is cut out for lane 1, or all of it put into a larger tile of lane 0
//   5     lane 0 puts slot 0 into the cube core's memory, which gives it to both vector cores
#include <cstdint>
#include <pto/pto-inst.hpp>

#include "tensor.h"

using namespace pto;

namespace {

constexpr int N = 32;
using Whole = GlobalTensor<half, Shape<1, 1, 1, N, N>, pto::Stride<N * N, N * N, N * N, N, 1>>;
using Mat = Tile<TileType::Mat, half, N, N, BLayout::ColMajor, N, N, SLayout::RowMajor, 512>;

template <class T> T *data(int64_t slot) {
    auto *tensor = reinterpret_cast<ChipTensor *>(slot);
    return reinterpret_cast<T *>(tensor->buffer.addr) + tensor->start_offset;
}

#if defined(__DAV_CUBE__)
using Acc = TileAcc<float, N, N>;

void multiply(int64_t *args, Acc &acc) {
    Whole a(data<half>(args[0])), b(data<half>(args[1]));
    Mat a_mat, b_mat;
    TileLeft<half, N, N> left;
    TileRight<half, N, N> right;
    TASSIGN(a_mat, 0x0);
    TASSIGN(b_mat, 0x1000);
    TASSIGN(left, 0x0);
    TASSIGN(right, 0x0);
    TASSIGN(acc, 0x0);
    TLOAD(a_mat, a);
    TLOAD(b_mat, b);
    set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    TMOV(left, a_mat);
    TMOV(right, b_mat);
    set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    TMATMUL(acc, left, right);
    set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
}

template <AccToVecMode mode> void give(int64_t *args) {
    constexpr int R = mode == AccToVecMode::DualModeSplitM ? N / 2 : N;
    constexpr int C = mode == AccToVecMode::DualModeSplitN ? N / 2 : N;
    using Vec = Tile<TileType::Vec, float, R, C>;
    Acc acc;
    Vec vec;
    TASSIGN(vec, 0x400);
    multiply(args, acc);
    TMOV<Vec, Acc, mode>(vec, acc);
    set_intra_block(PIPE_FIX, 0);
    set_intra_block(PIPE_FIX, 16);
}

void give_a_part(int64_t *args) {
    using Vec = Tile<TileType::Vec, float, N / 2, N / 2>;
    Acc acc;
    Vec vec;
    TASSIGN(vec, 0x400);
    multiply(args, acc);
    TEXTRACT<Vec, Acc, AccToVecMode::SingleModeVec1>(vec, acc, N / 2, N / 2);
    set_intra_block(PIPE_FIX, 0);
    set_intra_block(PIPE_FIX, 16);
}

void put_into(int64_t *args) {
    using Vec = Tile<TileType::Vec, float, N + 8, N>;
    Acc acc;
    Vec vec;
    TASSIGN(vec, 0x0); // eight rows above what is kept
    multiply(args, acc);
    TINSERT<Vec, Acc, AccToVecMode::SingleModeVec0>(vec, acc, 8, 0);
    set_intra_block(PIPE_FIX, 0);
    set_intra_block(PIPE_FIX, 16);
}

void give_scaled(int64_t *args) {
    using Scales = Tile<TileType::Scaling, uint64_t, 1, N>;
    using Vec = Tile<TileType::Vec, half, N, N>;
    Tile<TileType::Mat, uint64_t, 1, N> scales_mat;
    GlobalTensor<uint64_t, Shape<1, 1, 1, 1, N>, pto::Stride<N, N, N, N, 1>> global(data<uint64_t>(args[4]));
    Acc acc;
    Scales scales;
    Vec vec;
    TASSIGN(scales_mat, 0x4000);
    TASSIGN(scales, 0x0);
    TASSIGN(vec, 0x400);
    TLOAD(scales_mat, global);
    multiply(args, acc);
    TMOV(scales, scales_mat);
    TMOV_FP<Vec, Acc, Scales, ReluPreMode::NormalRelu>(vec, acc, scales);
    set_intra_block(PIPE_FIX, 0);
    set_intra_block(PIPE_FIX, 16);
}

void pass_on() {
    wait_intra_block(PIPE_MTE1, 1);
    Mat mat;
    Tile<TileType::Vec, half, N, N, BLayout::ColMajor, N, N, SLayout::RowMajor, 512> vec;
    TASSIGN(mat, 0x8000);
    TASSIGN(vec, 0x400);
    for (int lane = 0; lane < 2; ++lane)
        copy_cbuf_to_ubuf(vec.data(), mat.data(), lane, 1, N * N * sizeof(half) / 32, 0, 0);
    set_intra_block(PIPE_MTE1, 0);
    set_intra_block(PIPE_MTE1, 16);
}
#else
template <class T, int R, int C> void keep(int64_t *args) {
    wait_intra_block(PIPE_MTE3, 0);
    Tile<TileType::Vec, T, R, C> vec;
    TASSIGN(vec, 0x400);
    T *out = data<T>(args[2]) + get_subblockid() * N * N;
    GlobalTensor<T, Shape<1, 1, 1, R, C>, pto::Stride<N * N, N * N, N * N, C, 1>> global(out);
    TSTORE(global, vec);
}

void put() {
    Tile<TileType::Vec, half, N, N, BLayout::ColMajor, N, N, SLayout::RowMajor, 512> vec;
    Mat mat;
    TASSIGN(mat, 0x8000);
    TASSIGN(vec, 0x2000);
    TMOV(mat, vec);
    set_intra_block(PIPE_MTE3, 1);
}

void boxed(int64_t *args) {
    Whole a(data<half>(args[0]));
    Tile<TileType::Vec, half, N, N> plain;
    Tile<TileType::Vec, half, N, N, BLayout::ColMajor, N, N, SLayout::RowMajor, 512> vec;
    TASSIGN(plain, 0x0);
    TASSIGN(vec, 0x2000);
    TLOAD(plain, a);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TMOV(vec, plain);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
}
#endif

} // namespace

extern "C" __aicore__ void kernel_entry(int64_t *args) {
    const auto path = args[3];
#if defined(__DAV_CUBE__)
    if (path == 0) give<AccToVecMode::SingleModeVec0>(args);
    if (path == 1) give<AccToVecMode::SingleModeVec1>(args);
    if (path == 2) give<AccToVecMode::DualModeSplitM>(args);
    if (path == 3) give<AccToVecMode::DualModeSplitN>(args);
    if (path == 4) give_scaled(args);
    if (path == 5) pass_on();
    if (path == 6) give_a_part(args);
    if (path == 7) put_into(args);
#else
    if (path == 5 && get_subblockid() == 0) {
        boxed(args);
        put();
    }
    if (path < 2 || path == 7) keep<float, N, N>(args);
    if (path == 6) keep<float, N / 2, N / 2>(args);
    if (path == 2) keep<float, N / 2, N>(args);
    if (path == 3) keep<float, N, N / 2>(args);
    if (path == 4 || path == 5) keep<half, N, N>(args);
#endif
}
