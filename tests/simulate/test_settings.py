"""What a call leaves in a register for the calls after it: the map, padding and repeats of TIMG2COL, scales of TPUSH."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from insight_trace.model import CoreType, Kernel
from insight_trace.outcome import Fault
from tests.simulate.dispatching import outputs, run
from tests.simulate.kernel_text import write_kernel
from tests.simulate.op_harness import TARGETS, Option, failure_of, tile

RNG = np.random.default_rng(23)
ON_BOTH = pytest.mark.parametrize("target", TARGETS)

# A 5 x 6 map of 32 channels and filters of 3 x 2 are 8 patches of 192 numbers; a product with 1 brings out 64 of them.
_PATCHES = """\
    using Map = ConvTile<TileType::Mat, half, 1920, Layout::NC1HWC0, ConvTileShape<1, 2, 5, 6, 16>>;
    using Image = GlobalTensor<half, Shape<1, 2, 5, 6, 16>, pto::Stride<960, 480, 96, 16, 1>, Layout::NC1HWC0>;
    using Left = TileLeft<half, 512, 128, 8, 64>; // larger than L0A: its valid part alone is there
    constexpr auto b_manual = SetFmatrixMode::FMATRIX_B_MANUAL;
    Map map, other;
    Tile<TileType::Mat, half, 64, 64, BLayout::ColMajor, 64, 64, SLayout::RowMajor, 512> ones;
    Left left;
    TileRight<half, 64, 64> right;
    TileAcc<float, 16, 64, 8, 64> acc;
    TASSIGN(map, 0x0); TASSIGN(other, 0x0); TASSIGN(ones, 0x4000); TASSIGN(left, 0x0); TASSIGN(right, 0x0);
    TASSIGN(acc, 0x0);
    auto describe = [](Map &one, int left_pad, int right_pad, int top, int bottom, float value) {
        const uint8_t pads[4] = {uint8_t(left_pad), uint8_t(right_pad), uint8_t(top), uint8_t(bottom)};
        one.SetFmapH(5); one.SetFmapW(6); one.SetFilterH(3); one.SetFilterW(2); one.SetStrideH(2);
        one.SetStrideW(2); one.SetChannelSize(32); one.SetDstStride(1);
        one.SetPadListArray(pads); one.SetPadValue(half(value));
    };
    describe(map, 1, 1, 1, 0, 7.0f);
    describe(other, 0, 2, 0, 1, -5.0f);
    GlobalTensor<half, Shape<1, 1, 1, 64, 64>, pto::Stride<4096, 4096, 4096, 64, 1>> ones_global(
        reinterpret_cast<half *>(data_in(args, 1)));
    TLOAD(ones, ones_global);
    Image image(reinterpret_cast<half *>(data_in(args, 0)));
    Event<Op::TLOAD, Op::TMOV_M2L> loaded;
    loaded = TLOAD(map, image);
    int step = 0;
    auto keep = [&]() {
        PtoSetWaitFlag<PIPE_MTE1, PIPE_M>();
        TMATMUL(acc, left, right);
        PtoSetWaitFlag<PIPE_M, PIPE_FIX>();
        GlobalTensor<float, Shape<1, 1, 1, 8, 64>, pto::Stride<512, 512, 512, 64, 1>> to(data_in(args, 2) + 512 * step++);
        TSTORE(to, acc);
        pipe_barrier(PIPE_ALL);
    };
    SETFMATRIX(map, loaded);
    SET_IMG2COL_PADDING(map);
    SET_IMG2COL_RPT(map);
    TMOV(right, ones);
    TIMG2COL(left, map, 0, 32);
    keep();
    SETFMATRIX<Map, b_manual>(other);
    SET_IMG2COL_PADDING<Map, b_manual>(other);
    SET_IMG2COL_RPT<Map, b_manual>(other);
    TIMG2COL<Left, Map, b_manual>(left, other, 0, 32);
    keep();
    SETFMATRIX<Map, SetFmatrixMode::FMATRIX_A_AUTO>(other); // says nothing
    SET_IMG2COL_RPT(map);
    TIMG2COL(left, map, 0, 64);
    keep();
    TIMG2COL<Left, Map, SetFmatrixMode::FMATRIX_A_AUTO>(left, other, 0, 128);
    keep();
    TIMG2COL(left, map, 0, 128);
    keep();"""


def _patches(
    image: NDArray[np.float16], pads: tuple[int, int, int, int], value: float
) -> NDArray[np.float16]:
    """[row, (block, tap, channel)] of filters of 3 x 2 that go two steps at a time."""
    left, right, top, bottom = pads
    around = ((0, 0), (top, bottom), (left, right), (0, 0))
    padded = np.pad(image, around, constant_values=value)
    places = [(y, x) for y in range(0, padded.shape[1] - 2, 2) for x in range(0, padded.shape[2] - 1, 2)]
    return np.stack([padded[:, y : y + 3, x : x + 2].reshape(-1) for y, x in places])


@ON_BOTH
def test_patches_are_taken_by_what_was_set_for_that_side(tmp_path: Path, target: str) -> None:
    image = RNG.integers(-9, 10, (2, 5, 6, 16)).astype(np.float16)
    source = write_kernel(tmp_path, _PATCHES)
    slots = [image, np.eye(64, dtype=np.float16), np.zeros((5, 8, 64), np.float32)]
    found = outputs(run([Kernel("patches", source, CoreType.AIC)], slots, [2], target=target))[2]
    first, second = (1, 1, 1, 0), (0, 2, 0, 1)
    # a2a3 has one padding for both sides, the 950 one for each
    then = -5 if target == "a2a3" else 7
    want = [
        _patches(image, first, 7)[:, 32:96],
        _patches(image, second, -5)[:, 32:96],
        _patches(image, first, then)[:, 64:128],
        _patches(image, second, -5)[:, 128:],
        _patches(image, second, -5)[:, 128:],  # what AUTO set stays
    ]
    for step, (one, expected) in enumerate(zip(found, want, strict=True)):
        np.testing.assert_array_equal(one, expected, err_msg=f"step {step}")


def _refused(target: str, repeats: int) -> tuple[Fault, str]:
    words = (32 << 32, 6 | 5 << 16, 1 | 1 << 16 | 1 << 32 | 1 << 40 | 1 << 48 | 1 << 56, 0, repeats)
    layout = "ZZ" if target == "a2a3" else "NZ"
    failure = failure_of(
        "TIMG2COL",
        tile(np.zeros((32, 32), np.float16), layout=layout, space="l0a", valid=(30, 32)),
        tile(np.zeros((60, 16), np.float16), space="l1"),
        *map(Option, words),
        target=target,
    )
    return failure.fault, failure.message


@ON_BOTH
def test_what_is_not_modelled_of_repeats_is_said(target: str) -> None:
    assert _refused(target, 3 | 2 << 16) == (Fault.NOT_SUPPORTED, "TIMG2COL with 3 repeats")


def test_on_the_950_columns_of_boxes_go_where_the_register_says() -> None:
    fault, message = _refused("a5", 1)
    assert fault is Fault.KERNEL
    assert message.startswith(
        "TIMG2COL puts columns of boxes 0 boxes apart, where the Left tile has 2 in a column"
    )
    away = _refused("a5", 1 | 2 << 16 | 1 << 32)
    assert away == (Fault.NOT_SUPPORTED, "TIMG2COL to a box of its own in the Left tile")


_SCALES = """\
    constexpr int N = 32;
    using Pipe = TPipe<0, Direction::DIR_C2V, N * N * sizeof(half), 2, 2, true>;
    Pipe pipe(data_in(args, 3), 0x0, 0x0);
#if defined(__DAV_CUBE__)
    using Rows = GlobalTensor<int8_t, Shape<1, 1, 1, N, N>, pto::Stride<N * N, N * N, N * N, N, 1>>;
    using Mat = Tile<TileType::Mat, int8_t, N, N, BLayout::ColMajor, N, N, SLayout::RowMajor, 512>;
    using Acc = TileAcc<int32_t, N, N>;
    Mat a_mat, b_mat;
    Tile<TileType::Mat, uint64_t, 1, N> scales_mat;
    TileLeft<int8_t, N, N> left;
    TileRight<int8_t, N, N> right;
    Tile<TileType::Scaling, uint64_t, 1, N> scales;
    Acc acc;
    TASSIGN(a_mat, 0x0); TASSIGN(b_mat, 0x1000); TASSIGN(scales_mat, 0x2000);
    TASSIGN(left, 0x0); TASSIGN(right, 0x0); TASSIGN(acc, 0x0); TASSIGN(scales, 0x0);
    Rows a(reinterpret_cast<int8_t *>(data_in(args, 0))), b(reinterpret_cast<int8_t *>(data_in(args, 1)));
    GlobalTensor<uint64_t, Shape<1, 1, 1, 1, N>, pto::Stride<N, N, N, N, 1>> words(
        reinterpret_cast<uint64_t *>(data_in(args, 2)));
    TLOAD(a_mat, a);
    TLOAD(b_mat, b);
    TLOAD(scales_mat, words);
    PtoSetWaitFlag<PIPE_MTE2, PIPE_MTE1>();
    PtoSetWaitFlag<PIPE_MTE2, PIPE_FIX>();
    TMOV(left, a_mat);
    TMOV(right, b_mat);
    TMOV(scales, scales_mat);
    PtoSetWaitFlag<PIPE_MTE1, PIPE_M>();
    Event<Op::TMATMUL, Op::TSTORE_ACC> multiplied;
    multiplied = TMATMUL(acc, left, right);
    SET_QUANT_SCALAR<half>(0.5f, multiplied);
    TPUSH<Pipe, Acc, FixpipeParams<LayoutMode_t::NZ2ND, DEQF16>>(pipe, acc);
    SET_QUANT_VECTOR(scales);
    TPUSH<Pipe, Acc, FixpipeParams<LayoutMode_t::NZ2ND, VDEQF16, ReluPreMode::NormalRelu>>(pipe, acc);
    SET_QUANT_SCALAR<int8_t>(2.0f);
    TPUSH<Pipe, Acc, FixpipeParams<LayoutMode_t::NZ2ND, REQ8>>(pipe, acc);
    pipe_barrier(PIPE_ALL);
#else
    using Square = Shape<1, 1, 1, N, N>;
    using Steps = pto::Stride<N * N, N * N, N * N, N, 1>;
    auto take = [&](auto tile, __gm__ auto *to) {
        using T = decltype(tile);
        using Element = typename T::DType;
        TPOP<Pipe, T, TileSplitAxis::TILE_NO_SPLIT>(pipe, tile);
        PtoSetWaitFlag<PIPE_MTE2, PIPE_MTE3>();
        GlobalTensor<Element, Square, Steps> out(to);
        TSTORE(out, tile);
        pipe_barrier(PIPE_ALL);
        TFREE<Pipe, TileSplitAxis::TILE_NO_SPLIT>(pipe);
    };
    auto *halves = reinterpret_cast<half *>(data_in(args, 4));
    take(Tile<TileType::Vec, half, N, N>(), halves);
    take(Tile<TileType::Vec, half, N, N>(), halves + N * N);
    take(Tile<TileType::Vec, int8_t, N, N>(), reinterpret_cast<int8_t *>(data_in(args, 5)));
#endif"""


@ON_BOTH
def test_what_is_pushed_is_scaled_as_was_set_before(tmp_path: Path, target: str) -> None:
    a, b = RNG.integers(-4, 5, (2, 32, 32)).astype(np.int8)
    factors = (2.0 ** RNG.integers(-2, 2, 32)).astype(np.float32)
    words = factors.view(np.uint32).astype(np.uint64).view(np.int32)
    source = write_kernel(tmp_path, _SCALES, before="#include <pto/common/fixpipe.hpp>\n")
    members = [Kernel("scales", source, kind) for kind in (CoreType.AIC, CoreType.AIV)]
    ring, halves = np.zeros(2048, np.float16), np.zeros((2, 32, 32), np.float16)
    slots = [a, b, words, ring, halves, np.zeros((32, 32), np.int8)]
    found = outputs(run(members, slots, [3, 4, 5], target=target))
    sums = a.astype(np.int32) @ b.astype(np.int32)
    np.testing.assert_array_equal(found[4][0], (sums * 0.5).astype(np.float16))
    np.testing.assert_array_equal(found[4][1], (np.maximum(sums, 0) * factors).astype(np.float16))
    np.testing.assert_array_equal(found[5], np.clip(sums * 2, -128, 127).astype(np.int8))


_FOUR_BITS = """\
    Tile<TileType::Vec, bfloat16_t, 1, 64> values, maxima, scalings;
    Tile<TileType::Vec, float4_e1m2x2_t, 1, 64> codes;
    Tile<TileType::Vec, float8_e8m0_t, 1, 32, BLayout::RowMajor, 1, 2> exponents;
    TASSIGN(values, 0x0); TASSIGN(codes, 0x1000); TASSIGN(exponents, 0x2000); TASSIGN(maxima, 0x3000);
    TASSIGN(scalings, 0x4000);
    TQUANT<1, MxQuantAlg::Hif4>(codes, values, &exponents, &maxima, &scalings);"""


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (_FOUR_BITS, "TQUANT to HiFloat4"),
        ("    Tile<TileType::Mat, hifloat4x2_t, 16, 64> tile;", "hifloat4x2_t is not supported"),
        ("    LineTile tile;\n    TPACK(tile, tile);", "TPACK is not supported"),
    ],
)
def test_hifloat4_and_what_the_library_has_given_up_are_refused_by_name(
    tmp_path: Path, body: str, said: str
) -> None:
    """Neither family has HiFloat4; TPACK was in the library for a while."""
    kernel = Kernel("hifloat4", write_kernel(tmp_path, body), CoreType.AIV)
    failure = run([kernel], [np.zeros(64, np.float32)], [0], target="a5").failure
    assert failure is not None
    assert (failure.fault, failure.message) == (Fault.NOT_SUPPORTED, said)
