"""Between global memory and the core against NumPy: every layout, any strides, valid parts, adding, padding."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from insight_trace.outcome import Fault, Simulation
from tests.conftest import or_half
from tests.simulate.op_harness import Option, dtype, failure_of, glob, run_tile_op, scalar, tile

TYPES = ["float32", "float16", "bfloat16", "int32", "int16", "uint16", "int8", "uint8"]
SEEDS = st.integers(0, 2**32 - 1)
ND, DN, NZ = range(3)
PLAIN = (Option(0), Option(0))
KEPT = 5


def numbers(seed: int, kind: str, shape: tuple[int, ...]) -> np.ndarray:
    """Whole numbers that every type holds exactly."""
    return np.random.default_rng(seed).integers(0, 100, shape).astype(dtype(kind).numpy)


def blocks(kind: str, count: int) -> int:
    return count * 32 // dtype(kind).size


@st.composite
def vector_views(draw: st.DrawFn, kind: str):
    """A tile's lines and width, its valid part, and the outer extents and strides of a matching view."""
    width = blocks(kind, draw(st.integers(1, 9)))
    length = draw(st.integers(1, width))
    outer = tuple(draw(st.sampled_from([1, 1, 2, 3])) for _ in range(3))
    per_piece = draw(st.integers(1, 6))
    lines = int(np.prod(outer)) * per_piece
    room = lines + draw(st.integers(0, 4))
    pitch = length + draw(st.integers(0, 7))
    steps, step = [], pitch * per_piece
    for extent in reversed(outer):
        step += draw(st.integers(0, 5))
        steps.append(step)
        step *= extent
    return width, length, outer, per_piece, lines, room, pitch, tuple(reversed(steps)), step


def lines_of(offset, outer, steps, per_piece, pitch, length) -> np.ndarray:
    starts = [
        offset + i * steps[0] + j * steps[1] + k * steps[2] + line * pitch
        for i in range(outer[0])
        for j in range(outer[1])
        for k in range(outer[2])
        for line in range(per_piece)
    ]
    return np.array(starts)[:, None] + np.arange(length)


@pytest.mark.parametrize("layout", ["ND", "DN"])
@pytest.mark.parametrize("kind", TYPES)
@settings(max_examples=or_half(12))
@given(data=st.data(), seed=SEEDS)
def test_a_load_brings_the_view_and_leaves_the_rest_of_the_tile(kind, layout, data, seed):
    width, length, outer, per_piece, lines, room, pitch, steps, total = data.draw(vector_views(kind))
    offset = data.draw(st.integers(0, 9))
    buffer = numbers(seed, kind, (total + offset + pitch,))
    where = lines_of(offset, outer, steps, per_piece, pitch, length)
    want = np.full((room, width), KEPT).astype(buffer.dtype)
    want[:lines, :length] = buffer[where]
    before = np.full((room, width), KEPT).astype(buffer.dtype)
    if layout == "ND":
        view = glob(buffer, (*outer, per_piece, length), (*steps, pitch, 1), offset=offset, dtype_name=kind)
        into = tile(before, dtype_name=kind, valid=(lines, length))
        found = run_tile_op("TLOAD", into, view)
        np.testing.assert_array_equal(found.matrix(0), want)
    else:
        view = glob(
            buffer, (*outer, length, per_piece), (*steps, 1, pitch), layout=DN, offset=offset, dtype_name=kind
        )
        into = tile(before.T, dtype_name=kind, layout="DN", valid=(length, lines))
        found = run_tile_op("TLOAD", into, view)
        np.testing.assert_array_equal(found.matrix(0), want.T)
    assert found.instructions == ["MOV_OUT_TO_UB_ALIGN"] * int(np.prod(outer))


@pytest.mark.parametrize("layout", ["ND", "DN"])
@pytest.mark.parametrize("adds", [False, True])
@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16", "int32", "int16", "int8"])
@settings(max_examples=or_half(8))
@given(data=st.data(), seed=SEEDS)
def test_a_store_writes_or_adds_the_valid_part_and_nothing_else(kind, adds, layout, data, seed):
    width, length, outer, per_piece, lines, room, pitch, steps, total = data.draw(vector_views(kind))
    offset = data.draw(st.integers(0, 9))
    buffer = numbers(seed, kind, (total + offset + pitch,))
    matrix = numbers(seed + 1, kind, (room, width))
    where = lines_of(offset, outer, steps, per_piece, pitch, length)
    want = buffer.copy()
    want[where] = (buffer[where] + matrix[:lines, :length]) if adds else matrix[:lines, :length]
    if layout == "ND":
        view = glob(buffer, (*outer, per_piece, length), (*steps, pitch, 1), offset=offset, dtype_name=kind)
        source = tile(matrix, dtype_name=kind, valid=(lines, length))
    else:
        view = glob(
            buffer, (*outer, length, per_piece), (*steps, 1, pitch), layout=DN, offset=offset, dtype_name=kind
        )
        source = tile(matrix.T, dtype_name=kind, layout="DN", valid=(length, lines))
    found = run_tile_op("TSTORE", view, source, Option(int(adds)), Option(0))
    np.testing.assert_array_equal(found.buffer(0), want)


@pytest.mark.parametrize("kind", TYPES)
@settings(max_examples=or_half(12))
@given(data=st.data(), seed=SEEDS)
def test_a_load_pads_each_row_to_a_whole_block(kind, data, seed):
    block = blocks(kind, 1)
    rows, cols = data.draw(st.integers(1, 12)), block * data.draw(st.integers(1, 6))
    valid = data.draw(st.integers(1, cols))
    pad = data.draw(st.sampled_from([1, 2, 3, 1 << 32 | 0x41]))
    buffer = numbers(seed, kind, (rows, valid))
    want = np.full((rows, cols), KEPT).astype(buffer.dtype)
    want[:, :valid] = buffer
    end = -(-valid // block) * block
    raw = np.array([pad & 0xFFFFFFFF], np.uint32).view(np.uint8)[: dtype(kind).size]
    if pad > 3:
        value = raw.view(buffer.dtype)[0]
    elif pad == 1:
        value = 0
    elif dtype(kind).is_float:
        value = np.inf if pad == 2 else -np.inf
    else:
        value = np.iinfo(buffer.dtype).max if pad == 2 else np.iinfo(buffer.dtype).min
    want[:, valid:end] = value
    into = tile(np.full((rows, cols), KEPT), dtype_name=kind, valid=(rows, valid), pad=pad)
    view = glob(buffer, (rows, valid), (valid, 1), dtype_name=kind)
    np.testing.assert_array_equal(run_tile_op("TLOAD", into, view).matrix(0), want)


@pytest.mark.parametrize(("view_layout", "layout"), [(ND, "NZ"), (DN, "ZN")])
@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16", "int8"])
@settings(max_examples=or_half(12))
@given(data=st.data(), seed=SEEDS)
def test_a_load_into_l1_makes_fractals(kind, view_layout, layout, data, seed):
    c0 = 32 // dtype(kind).size
    lines = 16 * data.draw(st.integers(1, 4))
    width = c0 * data.draw(st.integers(1, 6))
    valid = data.draw(st.integers(1, lines)), data.draw(st.integers(1, width))
    pitch = valid[1] + data.draw(st.integers(0, 9))
    buffer = numbers(seed, kind, (valid[0], pitch))
    before = np.full((lines, width), KEPT).astype(buffer.dtype)
    want = before.copy()
    want[: valid[0], : valid[1]] = buffer[:, : valid[1]]
    want[: valid[0], valid[1] : -(-valid[1] // c0) * c0] = 0  # the unit fills up the last box
    if view_layout == ND:
        view = glob(buffer, valid, (pitch, 1), dtype_name=kind)
        into = tile(before, dtype_name=kind, layout=layout, space="l1", valid=valid)
    else:
        view = glob(buffer, valid[::-1], (1, pitch), layout=DN, dtype_name=kind)
        into = tile(before.T, dtype_name=kind, layout=layout, space="l1", valid=valid[::-1])
    found = run_tile_op("TLOAD", into, view)
    np.testing.assert_array_equal(found.matrix(0), want if view_layout == ND else want.T)
    assert found.instructions == ["MOV_OUT_TO_L1_MULTI_ND2NZ"]


@pytest.mark.parametrize("kind", ["float32", "float16", "int8"])
@settings(max_examples=or_half(12))
@given(data=st.data(), seed=SEEDS)
def test_fractals_in_global_memory_go_to_l1_and_back_as_they_are(kind, data, seed):
    c0 = 32 // dtype(kind).size
    across, down = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 4))
    boxes = numbers(seed, kind, (across, down, 16, c0))
    matrix = boxes.transpose(1, 2, 0, 3).reshape(down * 16, across * c0)
    strides = (boxes.size, down * 16 * c0, 16 * c0, c0, 1)
    view = glob(boxes, (1, across, down, 16, c0), strides, layout=NZ, dtype_name=kind)
    into = tile(np.zeros_like(matrix), dtype_name=kind, layout="NZ", space="l1")
    found = run_tile_op("TLOAD", into, view)
    np.testing.assert_array_equal(found.matrix(0), matrix)
    empty = glob(np.zeros_like(boxes), (1, across, down, 16, c0), strides, layout=NZ, dtype_name=kind)
    back = run_tile_op("TSTORE", empty, tile(matrix, dtype_name=kind, layout="NZ", space="l1"), *PLAIN)
    np.testing.assert_array_equal(back.buffer(0), boxes.ravel())


def scaled(values: np.ndarray, kind: str, relu: bool, scale: float | None) -> np.ndarray:
    """What leaves the accumulator: relu, scale in float, one rounding, integers held within their range."""
    out = np.maximum(values, 0) if relu else values
    if scale is not None:
        out = out.astype(np.float32) * np.float32(scale)
    numpy_type = dtype(kind).numpy
    if np.issubdtype(numpy_type, np.integer) and numpy_type != values.dtype:
        limits = np.iinfo(numpy_type)
        return np.clip(np.rint(out.astype(np.float32)), limits.min, limits.max).astype(numpy_type)
    return out.astype(np.float32).astype(numpy_type) if dtype(kind).is_float else out.astype(numpy_type)


@pytest.mark.parametrize(
    ("acc", "kind", "scales"),
    [
        ("float32", "float32", False),
        ("float32", "float16", False),
        ("float32", "bfloat16", False),
        ("float32", "int8", True),
        ("int32", "int32", False),
        ("int32", "float16", True),
        ("int32", "int8", True),
    ],
)
@pytest.mark.parametrize("layout", [ND, NZ])
@settings(max_examples=or_half(10))
@given(data=st.data(), seed=SEEDS, relu=st.booleans())
def test_the_accumulator_is_converted_on_its_way_out(acc, kind, scales, layout, data, seed, relu):
    rows, cols = 16 * data.draw(st.integers(1, 4)), 16 * data.draw(st.integers(1, 4))
    scale = data.draw(st.sampled_from([0.5, 0.25, 3.0])) if scales else None
    rng = np.random.default_rng(seed)
    values = (rng.normal(size=(rows, cols)) * 300).astype(acc)
    signed = int(kind == "int8") << 46
    extra = () if scale is None else (scalar(signed | int(np.float32(scale).view(np.uint32)), "uint64"),)
    c0 = 16 if dtype(kind).size > 1 else 32
    if layout == ND:
        valid = data.draw(st.integers(1, rows)), data.draw(st.integers(1, cols))
        pitch = valid[1] + data.draw(st.integers(0, 9))
        view = glob(np.zeros((valid[0], pitch), dtype(kind).numpy), valid, (pitch, 1), dtype_name=kind)
    else:
        cols = -(-cols // c0) * c0
        values = np.resize(values, (rows, cols))
        valid = rows, cols
        shape = (1, cols // c0, rows // 16, 16, c0)
        strides = (rows * cols, rows * c0, 16 * c0, c0, 1)
        view = glob(np.zeros(rows * cols, dtype(kind).numpy), shape, strides, layout=NZ, dtype_name=kind)
    source = tile(values, dtype_name=acc, layout="NZ", fractal=1024, space="l0c", valid=valid)
    found = run_tile_op("TSTORE", view, source, Option(0), Option(int(relu)), *extra)
    want = scaled(values[: valid[0], : valid[1]], kind, relu, scale)
    if layout == ND:
        np.testing.assert_array_equal(found.buffer(0).reshape(valid[0], -1)[:, : valid[1]], want)
        assert not found.buffer(0).reshape(valid[0], -1)[:, valid[1] :].any()
    else:
        boxes = found.buffer(0).reshape(cols // c0, rows, c0)
        np.testing.assert_array_equal(boxes.transpose(1, 0, 2).reshape(rows, cols), want)
    assert found.instructions[-1] == "FIX_L0C_TO_OUT"


@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16"])
@given(seed=SEEDS)
def test_an_accumulator_can_be_added_to_what_is_there(kind, seed):
    buffer, values = numbers(seed, kind, (32, 48)), numbers(seed + 1, "float32", (32, 48))
    source = tile(values, layout="NZ", fractal=1024, space="l0c")
    found = run_tile_op(
        "TSTORE", glob(buffer, (32, 48), (48, 1), dtype_name=kind), source, Option(1), Option(0)
    )
    want = (buffer.astype(np.float32) + values).astype(buffer.dtype)
    np.testing.assert_array_equal(found.buffer(0).reshape(32, 48), want)


def _message(*operands, name: str = "TLOAD") -> str:
    failure = failure_of(name, *operands)
    assert failure.fault in (Fault.KERNEL, Fault.NOT_SUPPORTED)
    return failure.message


def test_what_no_transfer_can_do_is_named():
    buffer = np.zeros(4096, np.float32)
    small = tile(np.zeros((4, 64), np.float32))
    assert "different element sizes" in _message(
        small, glob(np.zeros(64, np.float16), (1, 64), (64, 1), dtype_name="float16")
    )
    boxed = tile(np.zeros((16, 64), np.float32), layout="NZ", space="l1")
    said = _message(boxed, glob(buffer, (17, 64), (64, 1)))
    assert said == "the tensor has 17 rows or more, the tile only 16"
    assert "operand 1 ends 256 bytes earlier" in _message(small, glob(buffer, (4, 64), (4096, 1)))
    assert "Vec or Mat" in _message(
        tile(np.zeros((16, 16), np.float32), layout="ZZ", space="l0a"), glob(buffer, (16, 16), (16, 1))
    )
    assert "negative extent" in _message(small, glob(buffer, (-1, 64), (64, 1)))
    assert "TLOAD of a DN tensor into a row-major vector tile" in _message(
        small, glob(buffer, (4, 64), (1, 4), layout=DN)
    )


@pytest.mark.parametrize("kind", ["float32", "float16", "int8"])
@settings(max_examples=or_half(8))
@given(data=st.data(), seed=SEEDS)
def test_a_plain_l1_tile_is_loaded_and_stored_row_by_row(kind, data, seed):
    rows, cols = data.draw(st.integers(1, 20)), blocks(kind, data.draw(st.integers(1, 8)))
    matrix = numbers(seed, kind, (rows, cols))
    view = glob(matrix, (rows, cols), (cols, 1), dtype_name=kind)
    into = tile(np.zeros_like(matrix), dtype_name=kind, space="l1")
    loaded = run_tile_op("TLOAD", into, view)
    np.testing.assert_array_equal(loaded.matrix(0), matrix)
    # on a2a3 one row goes the way of boxes
    assert loaded.instructions == ["MOV_OUT_TO_L1_MULTI_ND2NZ" if rows == 1 else "MOV_OUT_TO_L1"]
    empty = glob(np.zeros_like(matrix), (rows, cols), (cols, 1), dtype_name=kind)
    stored = run_tile_op("TSTORE", empty, tile(matrix, dtype_name=kind, space="l1"), *PLAIN)
    np.testing.assert_array_equal(stored.buffer(0).reshape(rows, cols), matrix)
    assert stored.instructions == ["MOV_L1_TO_OUT"]


@pytest.mark.parametrize("pitch", [32, 33, 40, 64, 160, 1024])
def test_rows_that_lie_apart_in_global_memory_fetch_every_sector_they_touch_and_take_no_less(pitch):
    def loaded(apart: int) -> list[Simulation]:
        buffer = np.arange(64 * apart, dtype=np.float32)
        view = glob(buffer, (1, 1, 1, 64, 32), (64 * apart, 64 * apart, 64 * apart, apart, 1))
        run = run_tile_op("TLOAD", tile(np.zeros((64, 32), np.float32)), view, l2="cold")
        return [run.simulation, run.a5.simulation]

    sector = 128
    touched = {at // sector for row in range(64) for at in range(row * pitch * 4, row * pitch * 4 + 128)}
    near, far = loaded(32), loaded(pitch)
    assert [run.memory.fetched for run in far] == [sector * len(touched)] * 2
    # the 950's rows cost more than the sectors that a few of them touch beyond their own
    assert (far[0].cycles > near[0].cycles) is (len(touched) > 64)
    assert far[1].cycles >= near[1].cycles
