// c = (a x scales) @ (b x scales) of 8-bit or 4-bit floats: 32 x 128 by 128 x 64, twice.
#include <cstdint>
#include <pto/npu/a5/utils.hpp>
#include <pto/pto-inst.hpp>

#include "tensor.h"

using namespace pto;

namespace {
constexpr int M = 32, K = 128, N = 64, G = K / 32;

template <class T> T *data(int64_t slot) {
    return reinterpret_cast<T *>(reinterpret_cast<ChipTensor *>(slot)->buffer.addr);
}

// Layouts of the scales in memory: in boxes, or in pairs along k.
template <class T, Layout LayoutA = Layout::MX_A_ZZ, Layout LayoutB = Layout::MX_B_NN> void product(int64_t *args) {
    using Scale = float8_e8m0_t;
    Tile<TileType::Mat, T, M, K, BLayout::ColMajor, M, K, SLayout::RowMajor, 512> a_mat;
    Tile<TileType::Mat, T, K, N, BLayout::ColMajor, K, N, SLayout::RowMajor, 512> b_mat;
    Tile<TileType::Mat, Scale, M, G, BLayout::RowMajor, M, G, SLayout::RowMajor, 32> as_mat;
    Tile<TileType::Mat, Scale, G, N, BLayout::ColMajor, G, N, SLayout::ColMajor, 32> bs_mat;
    TASSIGN(a_mat, 0x0);
    TASSIGN(b_mat, 0x8000);
    TASSIGN(as_mat, 0x10000);
    TASSIGN(bs_mat, 0x11000);
    TileLeft<T, M, K> a;
    TileRight<T, K, N> b;
    TileLeftScale<Scale, M, G> as;
    TileRightScale<Scale, G, N> bs;
    TileAcc<float, M, N> c;
    TASSIGN(a, 0x0);
    TASSIGN(b, 0x0);
    TASSIGN(c, 0x0);
    TASSIGN(as, GetScaleAddr(a.data()));
    TASSIGN(bs, GetScaleAddr(b.data()));
    GlobalTensor<T, Shape<1, 1, 1, M, K>, pto::Stride<M * K, M * K, M * K, K, 1>> a_global(data<T>(args[0]));
    GlobalTensor<T, Shape<1, 1, 1, K, N>, pto::Stride<K * N, K * N, K * N, N, 1>> b_global(data<T>(args[2]));
    GlobalTensor<Scale, TileShape2D<Scale, M, G, LayoutA>, BaseShape2D<Scale, M, G, LayoutA>,
                 LayoutA>
        as_global(data<Scale>(args[1]));
    GlobalTensor<Scale, TileShape2D<Scale, G, N, LayoutB>, BaseShape2D<Scale, G, N, LayoutB>,
                 LayoutB>
        bs_global(data<Scale>(args[3]));
    GlobalTensor<float, Shape<1, 1, 1, M, N>, pto::Stride<M * N, M * N, M * N, N, 1>> c_global(data<float>(args[4]));
    TLOAD(a_mat, a_global);
    TLOAD(b_mat, b_global);
    TLOAD(as_mat, as_global);
    TLOAD(bs_mat, bs_global);
    set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    TMOV(a, a_mat);
    TMOV(b, b_mat);
    TMOV(as, as_mat);
    TMOV(bs, bs_mat);
    set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    TMATMUL_MX(c, a, as, b, bs);
    TMATMUL_MX(c, c, a, as, b, bs);
    set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    TSTORE(c_global, c);
    pipe_barrier(PIPE_ALL);
}

// The same once, k in two halves; b and its scales lie column by column, and shapes of scales count no pairs.
template <class T> void in_halves(int64_t *args) {
    using Scale = float8_e8m0_t;
    using Open = Shape<1, 1, 1, -1, -1>;
    Tile<TileType::Mat, T, M, K, BLayout::ColMajor, M, K, SLayout::RowMajor, 512> a_mat;
    Tile<TileType::Mat, T, K, N, BLayout::RowMajor, K, N, SLayout::ColMajor, 512> b_mat;
    Tile<TileType::Mat, Scale, M, G, BLayout::RowMajor, M, G, SLayout::RowMajor, 32> as_mat;
    Tile<TileType::Mat, Scale, G, N, BLayout::ColMajor, G, N, SLayout::ColMajor, 32> bs_mat;
    TASSIGN(a_mat, 0x0);
    TASSIGN(b_mat, 0x8000);
    TASSIGN(as_mat, 0x10000);
    TASSIGN(bs_mat, 0x11000);
    TileLeft<T, M, K / 2> a;
    TileRight<T, K / 2, N> b;
    TileLeftScale<Scale, M, G / 2> as;
    TileRightScale<Scale, G / 2, N> bs;
    TileAcc<float, M, N> c;
    TASSIGN(a, 0x0);
    TASSIGN(b, 0x0);
    TASSIGN(c, 0x0);
    TASSIGN(as, GetScaleAddr(a.data()));
    TASSIGN(bs, GetScaleAddr(b.data()));
    GlobalTensor<T, Shape<1, 1, 1, M, K>, pto::Stride<M * K, M * K, M * K, K, 1>> a_global(data<T>(args[0]));
    GlobalTensor<T, Shape<1, 1, 1, K, N>, pto::Stride<K * N, K * N, K * N, 1, K>, Layout::DN> b_global(data<T>(args[2]));
    GlobalTensor<Scale, Open, BaseShape2D<Scale, M, G, Layout::MX_A_ND>, Layout::MX_A_ND> as_global(
        data<Scale>(args[1]), Open(M, G));
    GlobalTensor<Scale, Open, BaseShape2D<Scale, G, N, Layout::MX_B_DN>, Layout::MX_B_DN> bs_global(
        data<Scale>(args[3]), Open(G, N));
    GlobalTensor<float, Shape<1, 1, 1, M, N>, pto::Stride<M * N, M * N, M * N, N, 1>> c_global(data<float>(args[4]));
    TLOAD(a_mat, a_global);
    TLOAD(b_mat, b_global);
    TLOAD(as_mat, as_global);
    TLOAD(bs_mat, bs_global);
    set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    for (int half = 0; half < 2; ++half) {
        TEXTRACT(a, a_mat, 0, half * K / 2);
        TEXTRACT(b, b_mat, half * K / 2, 0);
        TEXTRACT(as, as_mat, 0, half * G / 2);
        TEXTRACT(bs, bs_mat, half * G / 2, 0);
        set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
        wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
        if (half == 0)
            TMATMUL_MX(c, a, as, b, bs);
        else
            TMATMUL_MX(c, c, a, as, b, bs);
        set_flag(PIPE_M, PIPE_MTE1, EVENT_ID0);
        wait_flag(PIPE_M, PIPE_MTE1, EVENT_ID0);
    }
    set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    TSTORE(c_global, c);
    pipe_barrier(PIPE_ALL);
}

// One row of a by b: alone, with the row of c as a bias, and added to that.
template <class T, int Block> void of_a_vector(int64_t *args) {
    using Scale = float8_e8m0_t;
    using Row = GlobalTensor<float, Shape<1, 1, 1, 1, N>, pto::Stride<N, N, N, N, 1>>;
    Tile<TileType::Mat, T, 1, Block, BLayout::RowMajor, 1, K> a_mat;
    Tile<TileType::Mat, T, K, N, BLayout::ColMajor, K, N, SLayout::RowMajor, 512> b_mat;
    Tile<TileType::Mat, Scale, 1, G, BLayout::RowMajor, 1, G, SLayout::RowMajor, 32> as_mat;
    Tile<TileType::Mat, Scale, G, N, BLayout::ColMajor, G, N, SLayout::ColMajor, 32> bs_mat;
    Tile<TileType::Mat, float, 1, N> bias_mat;
    TASSIGN(a_mat, 0x0);
    TASSIGN(b_mat, 0x8000);
    TASSIGN(as_mat, 0x10000);
    TASSIGN(bs_mat, 0x11000);
    TASSIGN(bias_mat, 0x12000);
    TileLeft<T, 1, Block, 1, K> a;
    TileRight<T, K, N> b;
    TileLeftScaleCompact<Scale, 1, G, 1, G> as;
    TileRightScale<Scale, G, N> bs;
    TileAcc<float, 16, N, 1, N> c;
    Tile<TileType::Bias, float, 1, N> bias;
    TASSIGN(a, 0x0);
    TASSIGN(b, 0x0);
    TASSIGN(c, 0x0);
    TASSIGN(bias, 0x0);
    TASSIGN(as, GetScaleAddr(a.data()));
    TASSIGN(bs, GetScaleAddr(b.data()));
    GlobalTensor<T, Shape<1, 1, 1, 1, K>, pto::Stride<K, K, K, K, 1>> a_global(data<T>(args[0]));
    GlobalTensor<T, Shape<1, 1, 1, K, N>, pto::Stride<K * N, K * N, K * N, N, 1>> b_global(data<T>(args[2]));
    GlobalTensor<Scale, Shape<1, 1, 1, 1, G>, pto::Stride<G, G, G, G, 1>> as_global(data<Scale>(args[1]));
    GlobalTensor<Scale, TileShape2D<Scale, G, N, Layout::MX_B_NN>, BaseShape2D<Scale, G, N, Layout::MX_B_NN>,
                 Layout::MX_B_NN>
        bs_global(data<Scale>(args[3]));
    Row bias_global(data<float>(args[4]));
    TLOAD(a_mat, a_global);
    TLOAD(b_mat, b_global);
    TLOAD(as_mat, as_global);
    TLOAD(bs_mat, bs_global);
    TLOAD(bias_mat, bias_global);
    set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    TEXTRACT(a, a_mat, 0, 0);
    TEXTRACT(b, b_mat, 0, 0);
    TMOV(bias, bias_mat);
    TMOV(as, as_mat);
    Event<Op::TMOV_M2L, Op::TMATMUL> moved = TMOV(bs, bs_mat);
    auto keep = [&](int row) {
        set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
        wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
        Row to(data<float>(args[4]) + row * N);
        TSTORE(to, c);
        pipe_barrier(PIPE_ALL);
    };
    TGEMV_MX(c, a, as, b, bs, moved);
    keep(1);
    TGEMV_MX(c, a, as, b, bs, bias);
    keep(2);
    TGEMV_MX<AccPhase::Unspecified>(c, c, a, as, b, bs);
    keep(3);
}
} // namespace

extern "C" void kernel_entry(int64_t *args) {
    if (args[5] == 0) product<float8_e4m3_t>(args);
    if (args[5] == 1) product<float8_e5m2_t>(args);
    if (args[5] == 2) product<float4_e2m1x2_t>(args);
    if (args[5] == 3) product<float4_e1m2x2_t>(args);
    if (args[5] == 4) product<float8_e4m3_t, Layout::MX_A_ND, Layout::MX_B_ND>(args);
    if (args[5] == 5) product<float8_e4m3_t, Layout::MX_A_DN, Layout::MX_B_DN>(args);
    if (args[5] == 6) in_halves<float4_e2m1x2_t>(args);
    if (args[5] == 7) in_halves<float8_e4m3_t>(args);
    if (args[5] == 8) of_a_vector<float8_e4m3_t, 512>(args);
    if (args[5] == 9) of_a_vector<float4_e2m1x2_t, 1024>(args);
}
