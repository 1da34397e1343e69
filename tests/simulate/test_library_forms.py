"""Tiles of unusual sizes, and calls of the tile library by the names and options that its users write."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from insight_trace.model import CoreType, Kernel
from tests.simulate.dispatching import outputs, run
from tests.simulate.kernel_text import write_kernel
from tests.simulate.narrow_formats import E4M3, HIF8, nearest
from tests.simulate.op_harness import Option, glob, run_tile_op, scalar, tile

RNG = np.random.default_rng(17)
ON_BOTH = pytest.mark.parametrize("target", ["a2a3", "a5"])


# --- single ops --------------------------------------------------------------------------------------


@ON_BOTH
def test_an_accumulator_goes_to_l1_in_whole_blocks(target: str) -> None:
    """A valid part that ends within a block leaves nothing in it as it was."""
    sums = RNG.integers(-99, 99, (16, 48)).astype(np.float32)
    found = run_tile_op(
        "TMOV",
        tile(np.full((16, 48), -7, np.float16), layout="NZ", space="l1", valid=(16, 20)),
        tile(sums, layout="NZ", fractal=1024, space="l0c", valid=(16, 20)),
        target=target,
    ).matrix(0)
    np.testing.assert_array_equal(found[:, :32], sums[:, :32].astype(np.float16))
    assert (found[:, 32:] == -7).all()


@pytest.mark.parametrize("kind", [E4M3, HIF8], ids=lambda kind: kind.name)
def test_an_accumulator_is_scaled_on_its_way_to_eight_bits(kind: Any) -> None:
    sums = RNG.uniform(-60, 60, (16, 32)).astype(np.float32)
    word = int(np.float32(0.5).view(np.uint32))
    view = glob(np.zeros((16, 32), np.uint8), (16, 32), (32, 1), dtype_name="uint8")
    found = run_tile_op(
        "TSTORE",
        type(view)(view.data, kind, view.shape, view.strides, view.layout, view.offset),
        tile(sums, layout="NZ", fractal=1024, space="l0c"),
        Option(0),
        Option(0),
        scalar(word, "uint64"),
        target="a5",
    ).buffer(0)
    codes = np.asarray(found).view(np.uint8).ravel()
    mode = "even" if kind is E4M3 else "away"
    for code, value in zip(codes, (sums * np.float32(0.5)).ravel(), strict=True):
        assert code in nearest(float(value), kind, mode), value


def test_halves_become_a_bias_of_floats_on_the_950() -> None:
    row = RNG.uniform(-9, 9, (1, 64)).astype(np.float16)
    found = run_tile_op(
        "TMOV", tile(np.zeros((1, 64), np.float32), space="bias"), tile(row, space="l1"), target="a5"
    )
    np.testing.assert_array_equal(found.matrix(0), row.astype(np.float32))


def test_rows_of_odd_width_are_interleaved() -> None:
    a, b = RNG.normal(size=(2, 2, 64)).astype(np.float32)
    valid = (2, 63)
    found = run_tile_op(
        "TINTERLEAVE",
        tile(np.zeros((2, 64), np.float32), 0x1000, valid=valid),
        tile(np.zeros((2, 64), np.float32), 0x2000, valid=valid),
        tile(b, 0x3000, valid=valid),
        tile(a, 0x4000, valid=valid),
        target="a5",
    )
    both = np.stack([a[:, :63], b[:, :63]], axis=2).reshape(2, 126)
    np.testing.assert_array_equal(found.matrix(1)[:, :63], both[:, :63])
    # the second half begins with the element in the middle, which ended the first one
    np.testing.assert_array_equal(found.matrix(0)[:, :63], both[:, 62:125])


@pytest.mark.parametrize("op", ["TPARTMAX", "TPARTMIN"])
@ON_BOTH
def test_a_source_without_columns_leaves_the_other_as_it_is(op: str, target: str) -> None:
    a, b = RNG.normal(size=(2, 4, 64)).astype(np.float32)
    found = run_tile_op(
        op,
        tile(np.zeros_like(a), 0x1000),
        tile(a, 0x2000),
        tile(b, 0x3000, valid=(4, 0)),
        target=target,
    )
    np.testing.assert_array_equal(found.matrix(0), a)


@ON_BOTH
def test_two_rows_of_thirteen_are_sorted(target: str) -> None:
    values = RNG.permutation(32).astype(np.float32).reshape(2, 16)
    index = np.arange(32, dtype=np.uint32).reshape(2, 16)
    found = run_tile_op(
        "TSORT32",
        tile(np.zeros((2, 32), np.float32), 0x4000, valid=(2, 26)),
        tile(values, valid=(2, 13)),
        tile(index, 0x2000),
        tile(np.zeros((1, 16), np.float32), 0x6000),
        target=target,
    ).matrix(0)
    order = np.argsort(-values[:, :13], axis=1)
    np.testing.assert_array_equal(found[:, 0:26:2], np.take_along_axis(values, order, 1))
    np.testing.assert_array_equal(
        np.ascontiguousarray(found[:, 1:26:2]).view(np.uint32), np.take_along_axis(index, order, 1)
    )


# --- forms -------------------------------------------------------------------------------------------

_CUBE = """\
#if defined(PTO_NPU_ARCH_A5) ? !defined(__DAV_C310_CUBE__) : !defined(__DAV_C220_CUBE__)
#error "a kernel with the chip's guard would be empty"
#endif
    constexpr int M = 32, K = 32, N = 32;
    using Whole = GlobalTensor<half, Shape<1, 1, 1, 32, 32>, pto::Stride<1024, 1024, 1024, 32, 1>>;
    using Result = GlobalTensor<float, Shape<1, 1, 1, 32, 32>, pto::Stride<1024, 1024, 1024, 32, 1>>;
    using Row = GlobalTensor<float, Shape<1, 1, 1, 1, 32>, pto::Stride<32, 32, 32, 32, 1>>;
    using Boxes = GlobalTensor<half, Shape<1, 2, 2, 16, 16>, pto::Stride<1024, 512, 256, 16, 1>, Layout::NZ>;
    using Words = GlobalTensor<uint64_t, Shape<1, 1, 1, 1, N>, pto::Stride<N, N, N, N, 1>>;
    using Mat = Tile<TileType::Mat, half, 32, 32, BLayout::ColMajor, 32, 32, SLayout::RowMajor, 512>;
    using Acc = TileAcc<float, 32, 32>;
    using Scales = Tile<TileType::Scaling, uint64_t, 1, N>;
    static_assert(PTO_CEIL(33, 32) == 64);
    auto *halves = reinterpret_cast<half *>(data_in(args, 2));
    Whole a(reinterpret_cast<half *>(data_in(args, 0))), b(reinterpret_cast<half *>(data_in(args, 1)));
    Result product(data_in(args, 3));
    Row one(data_in(args, 4));
    Words words(reinterpret_cast<uint64_t *>(data_in(args, 5)));
    Mat a_mat, b_mat, moved, inserted, extracted;
    Tile<TileType::Mat, uint64_t, 1, N> scales_mat;
    TileLeft<half, 32, 32> left;
    TileLeft<half, 32, 32, 1, 32> first;
    TileRight<half, 32, 32> right;
    Acc acc;
    TileAcc<float, 32, 32, 1, 32> row;
    Scales scales;
    TASSIGN<0x0>(a_mat); TASSIGN<0x1000>(b_mat); TASSIGN<0x2000>(scales_mat);
    TASSIGN<0x3000>(moved); TASSIGN<0x4000>(inserted); TASSIGN<0x5000>(extracted);
    TASSIGN<0x0>(left); TASSIGN<0x0>(first); TASSIGN<0x0>(right); TASSIGN<0x0>(acc); TASSIGN<0x4000>(row);
    TASSIGN<0x0>(scales);
    TLOAD(a_mat, a);
    TLOAD(b_mat, b);
    TLOAD(scales_mat, words);
    create_cbuf_matrix(reinterpret_cast<__cbuf__ half *>(0x4000), int64_t(1) | int64_t(64) << 16, half(0));
    PtoSetWaitFlag<PIPE_MTE2, PIPE_MTE1>();
    PtoSetWaitFlag<PIPE_MTE2, PIPE_FIX>();
    TMOV(left, a_mat);
    TMOV(right, b_mat);
    TMOV(scales, scales_mat);
    PtoSetWaitFlag<PIPE_MTE1, PIPE_M>();
    TMATMUL<AccPhase::Partial>(acc, left, right);
    TMATMUL_ACC<AccPhase::Final>(acc, left, right);
    TGEMV(row, first, right);
    PtoSetWaitFlag<PIPE_M, PIPE_FIX>();
    TSTORE<STPhase::Final>(product, acc);
    TSTORE(one, row);
    Whole scaled(halves);
    TSTORE_FP<Acc, Whole, Scales>(scaled, acc, scales);
    TMOV_FP<Mat, Acc, Scales, ReluPreMode::NormalRelu>(moved, acc, scales);
    TEXTRACT_FP<Mat, Acc, Scales>(extracted, acc, scales, 0, 0);
    TINSERT_FP<Mat, Acc, Scales>(inserted, acc, scales, 0, 0);
    PtoSetWaitFlag<PIPE_FIX, PIPE_MTE3>();
    Boxes to0(halves + 1024), to1(halves + 2048), to2(halves + 3072);
    TSTORE(to0, moved);
    TSTORE(to1, extracted);
    TSTORE(to2, inserted);"""


def _rows(boxes: NDArray[np.float16]) -> NDArray[np.float16]:
    return boxes.reshape(2, 32, 16).transpose(1, 0, 2).reshape(32, 32)


@ON_BOTH
def test_products_leave_the_accumulator_by_phase_and_by_scales(tmp_path: Path, target: str) -> None:
    a, b = RNG.integers(-3, 4, (2, 32, 32)).astype(np.float16)
    factors = (2.0 ** RNG.integers(-2, 2, 32)).astype(np.float32)
    words = factors.view(np.uint32).astype(np.uint64).view(np.int32)
    before = (
        '#include "pto/common/fixpipe.hpp"\n#include "pto/npu/a2a3/TMov.hpp"\nPTO_INLINE void unused() {}\n'
    )
    source = write_kernel(tmp_path, _CUBE, before=before)
    slots = [
        a,
        b,
        np.zeros((4, 32, 32), np.float16),
        np.zeros((32, 32), np.float32),
        np.zeros(32, np.float32),
        words,
    ]
    found = outputs(run([Kernel("forms", source, CoreType.AIC)], slots, [2, 3, 4], target=target))
    once = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_array_equal(found[3], 2 * once)
    np.testing.assert_array_equal(found[4], once[0])
    scaled = (2 * once * factors).astype(np.float16)
    np.testing.assert_array_equal(found[2][0], scaled)
    np.testing.assert_array_equal(_rows(found[2][1]), (np.maximum(2 * once, 0) * factors).astype(np.float16))
    np.testing.assert_array_equal(_rows(found[2][2]), scaled)
    np.testing.assert_array_equal(_rows(found[2][3]), scaled)


_COMPACT = """\
    using Whole = GlobalTensor<float, Shape<1, 1, 1, 32, 32>, pto::Stride<1024, 1024, 1024, 32, 1>>;
    using Part = GlobalTensor<float, Shape<1, 1, 1, 16, 16>, pto::Stride<512, 512, 512, 32, 1>>;
    using Mat = Tile<TileType::Mat, float, 32, 32, BLayout::ColMajor, 32, 32, SLayout::RowMajor, 512>;
    Whole a(data_in(args, 0)), b(data_in(args, 1));
    Part to(data_in(args, 2));
    Mat a_mat, b_mat;
    TileLeftCompact<float, 32, 32, 16, 16> left;
    TileRightCompact<float, 32, 32, 16, 16> right;
    TileAccCompact<float, 32, 32, 16, 16> acc;
    TASSIGN(a_mat, 0x0); TASSIGN(b_mat, 0x2000); TASSIGN(left, 0x0); TASSIGN(right, 0x0); TASSIGN(acc, 0x0);
    TLOAD(a_mat, a);
    TLOAD(b_mat, b);
    PtoSetWaitFlag<PIPE_MTE2, PIPE_MTE1>();
    TEXTRACT(left, a_mat, 16, 16);
    TEXTRACT(right, b_mat, 16, 16);
    PtoSetWaitFlag<PIPE_MTE1, PIPE_M>();
    TMATMUL(acc, left, right);
    PtoSetWaitFlag<PIPE_M, PIPE_FIX>();
    TSTORE(to, acc);"""


@ON_BOTH
def test_compact_tiles_of_floats_are_multiplied_by_their_valid_part(tmp_path: Path, target: str) -> None:
    a, b = RNG.integers(-5, 6, (2, 32, 32)).astype(np.float32)
    source = write_kernel(tmp_path, _COMPACT)
    slots = [a, b, np.zeros((16, 32), np.float32)]
    found = outputs(run([Kernel("compact", source, CoreType.AIC)], slots, [2], target=target))[2]
    np.testing.assert_array_equal(found[:, :16], a[16:, 16:] @ b[16:, 16:])


_PARTIAL = """\
    using Part = Tile<TileType::Vec, float, 1, 64, BLayout::RowMajor, 1, DYNAMIC>;
    Line from(data_in(args, 0)), to(data_in(args, 1));
    Part tile(64);
    TASSIGN(tile, 0);
    TLOAD(tile, from);
    PtoSetWaitFlag<PIPE_MTE2, PIPE_V>();
    tile.ColMaskInternal = 40;
    TADDS(tile, tile, 2.0f);
    tile.ColMaskInternal = 64;
    PtoSetWaitFlag<PIPE_V, PIPE_MTE3>();
    TSTORE(to, tile);"""


@ON_BOTH
def test_a_kernel_may_set_the_valid_part_by_the_name_that_the_library_keeps_it_under(
    tmp_path: Path, target: str
) -> None:
    row = RNG.integers(-9, 10, 64).astype(np.float32)
    source = write_kernel(tmp_path, _PARTIAL)
    found = outputs(
        run([Kernel("part", source, CoreType.AIV)], [row, np.zeros_like(row)], [1], target=target)
    )[1]
    np.testing.assert_array_equal(found, row + 2 * (np.arange(64) < 40))


_PADDED = """\
    using Short = GlobalTensor<float, Shape<1, 1, 1, 1, 61>, pto::Stride<64, 64, 64, 64, 1>>;
    using Padded = Tile<TileType::Vec, float, 1, 64, BLayout::RowMajor, 1, 61, SLayout::NoneBox, 512,
                        PadValueCustom(-3.5f)>;
    static_assert(getCustomPadBits(PadValueCustom(-3.5f)) == 0xc0600000u);
    Short from(data_in(args, 0));
    Line to(data_in(args, 1));
    Padded tile;
    Tile<TileType::Vec, float, 1, 64, BLayout::RowMajor, 1, 64, SLayout::NoneBox, 512, PadValueCustom(-3.5f)> whole;
    TASSIGN(tile, 0x0);
    TASSIGN(whole, 0x0);
    preload(nullptr, 1);
    TLOAD(tile, from);
    PtoSetWaitFlag<PIPE_MTE2, PIPE_V>();
    TFILLPAD_INPLACE(whole, tile);
    TSYNC<Op::TADD>();
    PtoSetWaitFlag<PIPE_V, PIPE_MTE3>();
    TSTORE(to, whole);"""


@ON_BOTH
def test_a_pad_value_of_ones_own_fills_a_row(tmp_path: Path, target: str) -> None:
    x = RNG.normal(size=64).astype(np.float32)
    kernel = Kernel("padded", write_kernel(tmp_path, _PADDED), CoreType.AIV)
    found = outputs(run([kernel], [x, np.zeros_like(x)], [1], target=target))[1]
    np.testing.assert_array_equal(found, np.concatenate([x[:61], np.full(3, -3.5, np.float32)]))


_MEET = """\
    const int block = static_cast<int>(get_block_idx(args)), blocks = static_cast<int>(get_block_num(args));
    LineTile tile;
    TASSIGN(tile, 0x0);
    Line mine(data_in(args, 0) + 64 * block), other(data_in(args, 0) + 64 * ((block + 1) % blocks)),
        to(data_in(args, 1) + 64 * block);
    TEXPANDS(tile, float(block + 1));
    PtoSetWaitFlag<PIPE_V, PIPE_MTE3>();
    TSTORE(mine, tile);
    SYNCALL<SyncCoreType::AIVOnly>();
    TLOAD(tile, other);
    PtoSetWaitFlag<PIPE_MTE2, PIPE_MTE3>();
    TSTORE(to, tile);"""


@ON_BOTH
def test_all_vector_cores_meet_before_any_goes_on(tmp_path: Path, target: str) -> None:
    blocks = 5
    source = write_kernel(tmp_path, _MEET)
    slots = [np.zeros((blocks, 64), np.float32)] * 2
    for perturb in (0, 9):
        done = run(
            [Kernel("meet", source, CoreType.AIV)], slots, [0, 1], blocks, target=target, perturb=perturb
        )
        want = np.roll(np.arange(1, blocks + 1), -1)[:, None]
        np.testing.assert_array_equal(outputs(done)[1], np.broadcast_to(want, (blocks, 64)))


def test_scales_lie_at_a_sixteenth_of_the_address_of_what_they_scale(tmp_path: Path) -> None:
    body = """\
    TileLeft<float8_e4m3_t, 16, 64> tile;
    TileLeftScaleCompact<float8_e8m0_t, 16, 2> scales, same;
    TASSIGN(tile, 0x400);
    TGET_SCALE_ADDR(scales, tile);
    TASSIGN(same, GetScaleAddr(tile.data()));
    data_in(args, 0)[0] = scales.address();
    data_in(args, 0)[1] = same.address();"""
    kernel = Kernel("scales", write_kernel(tmp_path, body), CoreType.AIC)
    found = outputs(run([kernel], [np.zeros(8, np.float32)], [0], target="a5"))[0]
    np.testing.assert_array_equal(found[:2], [0x40, 0x40])


def test_rows_are_copied_by_pointers_under_the_older_name(tmp_path: Path) -> None:
    body = """\
    using Wide = Tile<TileType::Vec, float, 4, 128, BLayout::RowMajor, 4, 64>;
    using Narrow = Tile<TileType::Vec, float, 4, 64>;
    using Rows = pto::Stride<512, 512, 512, 128, 1>;
    Tile<TileType::Vec, float, 4, 128> all;
    Wide part;
    Narrow packed;
    TASSIGN(all, 0x0);
    TASSIGN(part, 64 * sizeof(float));
    TASSIGN(packed, 0x4000);
    GlobalTensor<float, Shape<1, 1, 1, 4, 128>, Rows> from(data_in(args, 0));
    GlobalTensor<float, Shape<1, 1, 1, 4, 64>, pto::Stride<256, 256, 256, 64, 1>> to(data_in(args, 1));
    TLOAD(all, from);
    PtoSetWaitFlag<PIPE_MTE2, PIPE_V>();
    TCopy<Narrow, Wide, 8, Wide::RowStride, Narrow::RowStride>(packed.data(), part.data(), 4, 64);
    PtoSetWaitFlag<PIPE_V, PIPE_MTE3>();
    TSTORE(to, packed);"""
    kernel = Kernel("copy", write_kernel(tmp_path, body), CoreType.AIV)
    rows = RNG.uniform(-1, 1, (4, 128)).astype(np.float32)
    found = outputs(run([kernel], [rows, np.zeros((4, 64), np.float32)], [1]))[1]
    np.testing.assert_array_equal(found, rows[:, 64:])
