"""Numbers as the device has them where a plain reading of an op would give others."""

from pathlib import Path

import numpy as np
import pytest

from insight_trace.model import CoreType, Kernel
from tests.simulate.dispatching import outputs, run
from tests.simulate.kernel_text import write_kernel
from tests.simulate.op_harness import TARGETS, Option, glob, run_tile_op, scalar, tile

ON_BOTH = pytest.mark.parametrize("target", TARGETS)


@ON_BOTH
@pytest.mark.parametrize("layout", ["ND", "DN"])
def test_lines_of_a_tensor_lie_where_the_dma_unit_puts_them(target: str, layout: str) -> None:
    """a2a3 adds the tensor's gap to the tile's length, for columns in the tile as well; a5 has the strides."""
    data = np.arange(16 * 32, dtype=np.float32)
    step = 16 if target == "a2a3" else 32
    in_tile = 16 if (target, layout) == ("a2a3", "DN") else 32
    there = glob(data, (16, 32), (32, 1)) if layout == "ND" else glob(data, (32, 16), (1, 32), layout=1)
    shape = (16, 32) if layout == "ND" else (32, 16)

    def lines(memory: np.ndarray, apart: int) -> np.ndarray:
        return np.stack([memory[line * apart : line * apart + 16] for line in range(16)])

    into = tile(np.zeros(shape, np.float32), 0x100, layout=layout, valid=(16, 16))
    loaded = run_tile_op("TLOAD", into, there, target=target).run.contents[0]
    assert loaded is not None
    np.testing.assert_array_equal(lines(loaded, in_tile), lines(data, step))
    assert np.count_nonzero(loaded) == 255

    numbers = np.arange(1000, 1512, dtype=np.float32).reshape(shape)
    full = tile(numbers, 0x100, layout=layout, valid=(16, 16))
    assert full.data is not None
    stored = run_tile_op("TSTORE", there, full, Option(0), Option(0), target=target).buffer(0).ravel()
    np.testing.assert_array_equal(lines(stored, step), lines(full.data, in_tile))
    assert np.count_nonzero(stored >= 1000) == 256


def test_a_note_says_where_lines_lie_that_are_not_where_the_stride_says(tmp_path: Path) -> None:
    body = """\
    using Half = Tile<TileType::Vec, float, 4, 32, BLayout::RowMajor, -1, -1>;
    Half tile(4, 16);
    TASSIGN(tile, 0);
    GlobalTensor<float, Shape<1, 1, 1, 4, 32>, Stride<1, 1, 1, 32, 1>> from(data_in(args, 0));
    TLOAD(tile, from);"""
    source = write_kernel(tmp_path, body)
    simulation = run([Kernel("pitch", source, CoreType.AIV)], [np.zeros(128, np.float32)], [0])
    assert simulation.failure is None
    (remark,) = (found for found in simulation.findings if "elements apart" in found.message)
    assert remark.lines
    assert "lines lie 16 elements apart in global memory, not 32" in remark.message


@pytest.mark.parametrize("op", ["TAXPY", "TMULADDDST", "TFUSEDMULADD"])
def test_a_product_of_halves_is_rounded_before_it_is_added(op: str) -> None:
    rng = np.random.default_rng(7)
    d, a, b = (rng.uniform(1, 2, (8, 64)).astype(np.float16) for _ in range(3))
    factor = np.float16(1.2345)
    operands = [tile(a, 0x1000, dtype_name="float16")]
    operands.append(scalar(factor, "float16") if op == "TAXPY" else tile(b, 0x2000, dtype_name="float16"))
    want = {"TAXPY": a * factor + d, "TMULADDDST": a * b + d, "TFUSEDMULADD": a * d + b}[op]
    for target in TARGETS:
        if (op, target) == ("TAXPY", "a5"):  # rounds once
            want = (a.astype(np.float32) * np.float32(factor) + d).astype(np.float16)
        found = run_tile_op(op, tile(d, dtype_name="float16"), *operands, target=target).matrix(0)
        np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("op", ["TSHL", "TSHR"])
def test_of_a_64_bit_shift_the_low_six_bits_count(op: str) -> None:
    values = np.arange(1, 33, dtype=np.int64).reshape(4, 8) << 8
    counts = np.tile(np.array([0, 1, 63, 64, 65, 130, 2, 3], np.int64), (4, 1))
    found = run_tile_op(
        op,
        tile(np.zeros_like(values), 0x1000, dtype_name="int64"),
        tile(values, dtype_name="int64"),
        tile(counts, 0x2000, dtype_name="int64"),
    ).matrix(0)
    want = values << (counts & 63) if op == "TSHL" else values >> (counts & 63)
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize(
    ("op", "better"), [("TPARTARGMAX", np.greater_equal), ("TPARTARGMIN", np.less_equal)]
)
@pytest.mark.parametrize("short", [(4, 16), (3, 16), (4, 9)])
def test_the_index_goes_with_the_value_and_the_first_stays_where_both_are_equal(
    op: str, better: np.ufunc, short: tuple[int, int]
) -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.integers(0, 4, (4, 16)).astype(np.float32) for _ in range(2))
    of_a, of_b = (rng.integers(0, 99, (4, 16)).astype(np.uint32) for _ in range(2))

    def part(values: np.ndarray, at: int, name: str, valid: tuple[int, int] = (4, 16)) -> object:
        return tile(values, at, dtype_name=name, valid=valid)

    found = run_tile_op(
        op,
        part(np.zeros_like(a), 0, "float32"),
        part(a, 0x1000, "float32"),
        part(b, 0x2000, "float32", short),
        part(np.zeros_like(of_a), 0x3000, "uint32"),
        part(of_a, 0x4000, "uint32"),
        part(of_b, 0x5000, "uint32", short),
    )
    r, c = np.indices(a.shape)
    first = better(a, b) | (r >= short[0]) | (c >= short[1])
    np.testing.assert_array_equal(found.matrix(0), np.where(first, a, b))
    np.testing.assert_array_equal(found.matrix(3), np.where(first, of_a, of_b))


@ON_BOTH
def test_patches_of_a_feature_map_are_rows_of_the_left_operand(target: str) -> None:
    height, width, channels, c0 = 5, 6, 32, 16
    pads, filter_h, filter_w, stride = (1, 1, 1, 0), 3, 2, 2  # left, right, top, bottom
    rng = np.random.default_rng(5)
    image = rng.integers(-8, 8, (channels // c0, height, width, c0)).astype(np.float16)
    padded = np.full(
        (channels // c0, height + pads[2] + pads[3], width + pads[0] + pads[1], c0), 7, np.float16
    )
    padded[:, pads[2] : pads[2] + height, pads[0] : pads[0] + width] = image
    out_h, out_w = (padded.shape[1] - filter_h) // stride + 1, (padded.shape[2] - filter_w) // stride + 1
    patches = np.stack([
        padded[:, y * stride : y * stride + filter_h, x * stride : x * stride + filter_w].reshape(-1)
        for y in range(out_h) for x in range(out_w)
    ])  # fmt: skip
    rows, cols, first = 16, 64, 32
    pad_bits = int(np.float16(7).view(np.uint16))
    words = (
        first << 16 | channels << 32,
        width | height << 16 | sum(pad << 32 + 8 * i for i, pad in enumerate(pads)),
        filter_w | filter_h << 16 | stride << 32 | stride << 40 | 1 << 48 | 1 << 56,
        pad_bits,
        1 | 1 << 16,  # once; one box from column to column
    )
    layout = "ZZ" if target == "a2a3" else "NZ"
    empty = np.zeros((rows, cols), np.float16)
    found = run_tile_op(
        "TIMG2COL",
        tile(empty, dtype_name="float16", layout=layout, space="l0a", valid=(out_h * out_w, cols)),
        tile(image.reshape(-1, c0), dtype_name="float16", space="l1"),
        *map(Option, words),
        target=target,
    ).matrix(0)
    np.testing.assert_array_equal(found[: out_h * out_w], patches[:, first : first + cols])


@ON_BOTH
def test_sixteen_bit_integers_leave_the_accumulator_shifted(target: str) -> None:
    sums = np.random.default_rng(1).integers(-(2**22), 2**22, (16, 16)).astype(np.int32)
    word = 4 << 32  # one more than these four bits
    found = run_tile_op(
        "TMOV",
        tile(np.zeros((16, 16), np.int16), dtype_name="int16", layout="NZ", space="l1"),
        tile(sums, dtype_name="int32", layout="NZ", fractal=1024, space="l0c"),
        Option(0),
        scalar(np.uint64(word), "uint64"),
        target=target,
    ).matrix(0)
    np.testing.assert_array_equal(found, np.clip(sums >> 5, -32768, 32767).astype(np.int16))


_CONVOLUTION = """\
    using Map = ConvTile<TileType::Vec, float, 192, Layout::NCHW, ConvTileShape<2, 24, 2, 2>>;
    using Blocks = ConvTile<TileType::Vec, float, 192, Layout::NC1HWC0, ConvTileShape<2, 3, 2, 2, 8>>;
    using Flat = Tile<TileType::Vec, float, 1, 192>;
    using Tensor = GlobalTensor<float, Shape<1, 1, 1, 1, 192>, Stride<192, 192, 192, 192, 1>>;
    Map map;
    Blocks blocks;
    Flat from, to, spare;
    TASSIGN(map, 0x0);
    TASSIGN(from, 0x0);
    TASSIGN(blocks, 0x1000);
    TASSIGN(to, 0x1000);
    TASSIGN(spare, 0x2000);
    Tensor source(data_in(args, 0)), result(data_in(args, 1));
    TLOAD(from, source);
    PtoSetWaitFlag<PIPE_MTE2, PIPE_V>();
    TTRANS(blocks, map, spare);
    PtoSetWaitFlag<PIPE_V, PIPE_MTE3>();
    TSTORE(result, to);"""


@ON_BOTH
def test_a_feature_map_is_put_into_blocks_of_channels(tmp_path: Path, target: str) -> None:
    source = write_kernel(tmp_path, _CONVOLUTION)
    image = np.arange(192, dtype=np.float32)
    kernel = Kernel("convolution", source, CoreType.AIV)
    found = outputs(run([kernel], [image, np.zeros_like(image)], [1], target=target))[1]
    want = image.reshape(2, 3, 8, 2, 2).transpose(0, 1, 3, 4, 2).reshape(-1)
    np.testing.assert_array_equal(found, want)


_GROUPS = """\
    using Maps = ConvTile<TileType::Vec, float, 192, Layout::GNC1HWC0, ConvTileShape<2, 3, 1, 1, 2, 8>>;
    using Filters = ConvTile<TileType::Vec, float, 512, Layout::FRACTAL_Z, ConvTileShape<4, 1, 16, 8>>;
    using Flat = Tile<TileType::Vec, float, 1, 512>;
    using Tensor = GlobalTensor<float, Shape<1, 1, 1, 1, 512>, Stride<512, 512, 512, 512, 1>>;
    Maps maps;
    Filters filters;
    Flat from, to, spare;
    TASSIGN(maps, 0x0);
    TASSIGN(from, 0x0);
    TASSIGN(filters, 0x1000);
    TASSIGN(to, 0x1000);
    TASSIGN(spare, 0x2000);
    Tensor source(data_in(args, 0)), result(data_in(args, 1));
    TLOAD(from, source);
    PtoSetWaitFlag<PIPE_MTE2, PIPE_V>();
    TTRANS(filters, maps, spare);
    PtoSetWaitFlag<PIPE_V, PIPE_MTE3>();
    TSTORE(result, to);"""


@ON_BOTH
def test_filters_of_groups_are_padded_with_zeros(tmp_path: Path, target: str) -> None:
    """[G, N, C1, H, W, C0] becomes [G x C1 x H x W, N in sixteens, C0]; groups lie 16 filters apart."""
    source = write_kernel(tmp_path, _GROUPS)
    values = np.arange(1, 513, dtype=np.float32)
    kernel = Kernel("groups", source, CoreType.AIV)
    found = outputs(run([kernel], [values, np.zeros_like(values)], [1], target=target))[1]
    want = values.reshape(2, 16, 2, 8).transpose(0, 2, 1, 3).copy()
    want[:, :, 3:] = 0
    np.testing.assert_array_equal(found, want.reshape(-1))


# an image's layout, the tile's layout and shape, extents as the tensor has them, and the order of axes in the tile
_IMAGES = {
    "NHWC-NC1HWC0": ("2, 3, 2, 4, 8", (1, 2, 2, 4, 20), (0, 1, 4, 2, 3, 5)),
    "NCHW-NC1HWC0": ("2, 3, 2, 4, 8", (1, 2, 20, 2, 4), (0, 1, 2, 4, 5, 3)),
    "NCDHW-NDC1HWC0": ("2, 2, 3, 2, 3, 8", (2, 20, 2, 2, 3), (0, 3, 1, 4, 5, 2)),
    "NCHW-FRACTAL_Z": ("24, 1, 16, 8", (1, 16, 20, 2, 4), (0, 2, 4, 5, 1, 3)),
    "NCDHW-FRACTAL_Z_3D": ("18, 1, 16, 8", (16, 20, 1, 2, 3), (1, 3, 4, 5, 0, 2)),
}


@pytest.mark.parametrize("name", _IMAGES)
def test_an_image_is_loaded_into_blocks_of_channels(tmp_path: Path, name: str) -> None:
    shape, extents, order = _IMAGES[name]
    layout, blocks = name.split("-")
    channels = {"NHWC": 4, "NCHW": 2, "NCDHW": 1}[layout]
    image = np.arange(1, 1 + np.prod(extents), dtype=np.float32).reshape(extents)
    padded = [(0, 4 if axis == channels else 0) for axis in range(5)]
    split = (*extents[:channels], 3, 8, *extents[channels + 1 :])
    want = np.pad(image, padded).reshape(split).transpose(order).reshape(-1)
    steps = [int(np.prod(extents[axis + 1 :])) for axis in range(5)]
    body = f"""
    using Image = GlobalTensor<float, Shape<{", ".join(map(str, extents))}>, Stride<{", ".join(map(str, steps))}>,
                               Layout::{layout}>;
    using Map = ConvTile<TileType::Mat, float, {want.nbytes}, Layout::{blocks}, ConvTileShape<{shape}>>;
    using Flat = Tile<TileType::Mat, float, 1, {want.size}>;
    using Line = GlobalTensor<float, Shape<1, 1, 1, 1, {want.size}>, Stride<1, 1, 1, {want.size}, 1>>;
    Map map;
    Flat flat;
    TASSIGN(map, 0x0);
    TASSIGN(flat, 0x0);
    Image source(data_in(args, 0));
    Line result(data_in(args, 1));
    TLOAD(map, source);
    PtoSetWaitFlag<PIPE_MTE2, PIPE_MTE3>();
    TSTORE(result, flat);"""
    kernel = Kernel("image", write_kernel(tmp_path, body.replace("Line", "Whole")), CoreType.AIC)
    found = outputs(run([kernel], [image, np.zeros_like(want)], [1], target="a5"))[1]
    np.testing.assert_array_equal(found, want)
