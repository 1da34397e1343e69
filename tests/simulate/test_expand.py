"""Broadcasts of a column along the rows and of a row down the columns, against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from insight_trace.outcome import Fault
from insight_trace.simulate.embedded.op_script import TileSpec
from tests.conftest import or_half
from tests.simulate.op_harness import failure_of, run_tile_op, tile

TYPES = ["float32", "float16", "int32", "int16"]
DST, THIN = 0xC000, 0x18000
KEPT = 77


def wide(function):
    """16-bit floats compute in float and round once."""

    def computed(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if a.dtype == np.float16:
            return function(a.astype(np.float32), b.astype(np.float32)).astype(np.float16)
        with np.errstate(over="ignore"):
            return function(a, b)

    return computed


def exp_of_difference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    difference = wide(np.subtract)(a, b)
    return np.exp(difference.astype(np.float64)).astype(a.dtype)


NUMPY = {
    "ADD": wide(np.add),
    "SUB": wide(np.subtract),
    "MUL": wide(np.multiply),
    "DIV": wide(np.divide),
    "MAX": np.maximum,
    "MIN": np.minimum,
    "EXPDIF": exp_of_difference,
}
# along the rows, down the columns
OPS = {
    "ADD": ("TROWEXPANDADD", "TCOLEXPANDADD"),
    "SUB": ("TROWEXPANDSUB", "TCOLEXPANDSUB"),
    "MUL": ("TROWEXPANDMUL", "TCOLEXPANDMUL"),
    "DIV": ("TROWEXPANDDIV", "TCOLEXPANDDIV"),
    "MAX": ("TROWEXPANDMAX", "TCOLEXPANDMAX"),
    "MIN": ("TROWEXPANDMIN", "TCOLEXPANDMIN"),
    "EXPDIF": ("TROWEXPANDEXPDIF", "TCOLEXPANDEXPDIF"),
}
REAL_ONLY = {"DIV", "EXPDIF"}
CASES = [(op, kind) for op in NUMPY for kind in TYPES if op not in REAL_ONLY or kind.startswith("float")]


def values(rng: np.random.Generator, kind: str, shape: tuple[int, int]) -> np.ndarray:
    if kind.startswith("int"):
        return rng.integers(-(2**14), 2**14, shape).astype(kind)
    magnitude = rng.uniform(0.25, 4, shape)
    return (magnitude * rng.choice([-1, 1], shape)).astype(kind)


@st.composite
def shapes(draw: st.DrawFn, kind: str) -> tuple[int, int, int, int]:
    size = np.dtype(kind).itemsize
    cols = draw(st.integers(1, 48)) * (32 // size)
    rows = draw(st.integers(1, max(1, min(300, DST // (cols * size)))))
    # a valid width of one block would make both sources look like a column
    return rows, cols, draw(st.integers(1, rows)), draw(st.integers(1, cols))


def column_tile(column: np.ndarray, layout: str, valid_rows: int) -> TileSpec:
    block = 32 // column.dtype.itemsize
    if layout == "ND":  # 32 bytes a row
        return tile(np.repeat(column[:, None], block, axis=1), THIN, valid=(valid_rows, block))
    padded = np.zeros((-(-len(column) // block) * block, 1), column.dtype)
    padded[: len(column), 0] = column
    return tile(padded, THIN, layout="DN", valid=(valid_rows, 1))


@pytest.mark.parametrize(("op", "kind"), CASES)
@settings(max_examples=or_half(20))
@given(data=st.data())
def test_a_column_goes_along_every_row(op, kind, data):
    rows, cols, valid_rows, valid_cols = data.draw(shapes(kind))
    layout = data.draw(st.sampled_from(["DN", "ND"]))
    column_first = data.draw(st.booleans())
    own_scratch = layout == "DN" and data.draw(st.booleans())
    dynamic = data.draw(st.sampled_from([0, 3]))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    full, column = values(rng, kind, (rows, cols)), values(rng, kind, (rows, 1))[:, 0]
    thin = column_tile(column, layout, valid_rows)
    if (thin.valid_rows, thin.valid_cols) == (valid_rows, valid_cols) and thin.cols >= cols:
        column_first = False  # nothing tells the two apart: the first is the full one
    big = tile(full, 0, valid=(valid_rows, valid_cols), dynamic=dynamic)
    dst = tile(np.full((rows, cols), KEPT, kind), DST, valid=(valid_rows, valid_cols), dynamic=dynamic)
    sources = (thin, big) if column_first else (big, thin)
    scratch = (tile(np.zeros((256, 32 // full.dtype.itemsize), kind), 0x28000),) if own_scratch else ()
    result = run_tile_op(OPS[op][0], dst, *sources, *scratch)
    part, spread = (
        full[:valid_rows, :valid_cols],
        np.broadcast_to(column[:valid_rows, None], (valid_rows, valid_cols)),
    )
    want = NUMPY[op](spread, part) if column_first else NUMPY[op](part, spread)
    np.testing.assert_array_equal(result.matrix(0)[:valid_rows, :valid_cols], want)
    untouched = result.matrix(0).copy()
    untouched[:valid_rows, :valid_cols] = KEPT
    np.testing.assert_array_equal(untouched, KEPT)


@pytest.mark.parametrize(("op", "kind"), CASES)
@settings(max_examples=or_half(20))
@given(data=st.data())
def test_a_row_goes_down_every_column(op, kind, data):
    rows, cols, valid_rows, valid_cols = data.draw(shapes(kind))
    row_first = valid_rows > 1 and data.draw(st.booleans())
    dynamic = data.draw(st.sampled_from([0, 3]))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    full, line = values(rng, kind, (rows, cols)), values(rng, kind, (1, cols))
    big = tile(full, 0, valid=(valid_rows, valid_cols), dynamic=dynamic)
    thin = tile(line, THIN, valid=(1, valid_cols), dynamic=dynamic)
    dst = tile(np.full((rows, cols), KEPT, kind), DST, valid=(valid_rows, valid_cols), dynamic=dynamic)
    result = run_tile_op(OPS[op][1], dst, *((thin, big) if row_first else (big, thin)))
    part = full[:valid_rows, :valid_cols]
    spread = np.broadcast_to(line[:, :valid_cols], part.shape)
    want = NUMPY[op](spread, part) if row_first else NUMPY[op](part, spread)
    np.testing.assert_array_equal(result.matrix(0)[:valid_rows, :valid_cols], want)
    untouched = result.matrix(0).copy()
    untouched[:valid_rows, :valid_cols] = KEPT
    np.testing.assert_array_equal(untouched, KEPT)


@pytest.mark.parametrize("kind", [*TYPES, "int8", "uint8", "bfloat16"])
@settings(max_examples=or_half(20))
@given(data=st.data())
def test_plain_expansion_repeats_the_first_value_of_a_row_or_the_first_row(kind, data):
    size = 2 if kind == "bfloat16" else np.dtype(kind).itemsize
    block = 32 // size
    cols, rows = data.draw(st.integers(1, 12)) * block, data.draw(st.integers(1, 20))
    valid = data.draw(st.integers(1, rows)), data.draw(st.integers(1, cols))
    layout = data.draw(st.sampled_from(["DN", "ND"]))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    source = rng.integers(0, 100, (-(-rows // block) * block, 1) if layout == "DN" else (rows, block))
    dst = tile(np.full((rows, cols), KEPT), DST, dtype_name=kind, valid=valid)
    column = tile(source, dtype_name=kind, layout=layout, valid=(valid[0], 1))
    for target in ("a2a3", "a5"):
        along = run_tile_op("TROWEXPAND", dst, column, target=target)
        width = valid[1] + (valid[1] % 2 if size == 1 and target == "a2a3" else 0)  # bytes go two by two
        want = np.full((rows, cols), KEPT)
        want[: valid[0], :width] = source[: valid[0], :1]
        np.testing.assert_array_equal(along.matrix(0).astype(int), want)

    line = rng.integers(0, 100, (1, cols))
    for target in ("a2a3", "a5"):
        down = run_tile_op("TCOLEXPAND", dst, tile(line, dtype_name=kind, valid=(1, valid[1])), target=target)
        width = -(-valid[1] // block) * block if target == "a2a3" else valid[1]  # whole blocks are copied
        want = np.full((rows, cols), KEPT)
        want[: valid[0], :width] = line[:, :width]
        np.testing.assert_array_equal(down.matrix(0).astype(int), want)


def test_a_column_is_spread_into_blocks_then_used_once_per_repeat_of_columns():
    full = np.zeros((16, 150 // 8 * 8), np.float32)
    thin = column_tile(np.zeros(16, np.float32), "DN", 16)
    result = run_tile_op("TROWEXPANDMUL", tile(full, DST), tile(full, 0), thin)
    assert result.instructions == ["VBRCB", "BAR", "VMUL", "VMUL", "MOV_SPR_XN", "VMUL", "MOV_SPR_XN"]
    # two repeats of 64 columns and a rest of 16, each over 16 rows; the column at the library's scratch
    detail = list(result.simulation.instructions.detail)
    assert "repeat:2,stride:1/0/1/8/1/8" in detail[0]
    assert f"XD:{184 * 1024:#x}," in detail[0]
    assert "repeat:16,stride:1/1/0/18/18/1," in detail[2]


def test_a_column_of_whole_blocks_is_used_as_it_is():
    full = np.zeros((16, 64), np.float32)
    thin = column_tile(np.zeros(16, np.float32), "ND", 16)
    assert run_tile_op("TROWEXPANDSUB", tile(full, DST), tile(full, 0), thin).instructions == ["VSUB"]


def test_few_wide_rows_go_row_by_row_in_count_mode():
    full = np.zeros((2, 1024), np.float32)
    thin = column_tile(np.zeros(2, np.float32), "DN", 2)
    names = run_tile_op("TROWEXPANDDIV", tile(full, DST), tile(full, 0), thin).instructions
    masks = ["MOV_SPR_XN", "MOV_SPR_XN"]
    assert names == ["VBRCB", "BAR", *masks, "VDIV", "VDIV", *masks]


def test_a_row_of_fixed_width_is_one_instruction_and_of_run_time_width_one_per_row():
    full, line = np.zeros((5, 64), np.float32), np.zeros((1, 64), np.float32)
    fixed = run_tile_op("TCOLEXPANDADD", tile(full, DST), tile(full, 0), tile(line, THIN))
    assert fixed.instructions == ["VADD"]
    run_time = run_tile_op("TCOLEXPANDADD", tile(full, DST, dynamic=3), tile(full, 0), tile(line, THIN))
    masks = ["MOV_SPR_XN", "MOV_SPR_XN"]
    assert run_time.instructions == [*masks, *["VADD"] * 5, *masks]


def test_one_column_into_one_block_a_row_is_a_single_broadcast():
    column = np.arange(16, dtype=np.float32)[:, None]
    result = run_tile_op("TROWEXPAND", tile(np.zeros((16, 8), np.float32), DST), tile(column, layout="DN"))
    np.testing.assert_array_equal(result.matrix(0), np.repeat(column, 8, axis=1))
    assert result.instructions == ["VBRCB"]


def test_a_row_major_column_of_other_than_32_bytes_a_row_is_the_kernels_fault():
    full = np.ones((8, 64), np.float32)
    thin = tile(np.ones((8, 16), np.float32), THIN)
    failure = failure_of("TROWEXPANDADD", tile(full, DST), tile(full, 0), thin)
    assert failure.fault is Fault.KERNEL
    assert "32 bytes a row" in failure.message


def test_integers_are_divided_on_the_950_alone():
    rng = np.random.default_rng(5)
    full, row = rng.integers(-1000, 1000, (8, 64)).astype(np.int32), rng.integers(1, 30, (1, 64))
    row = (row * rng.choice([-1, 1], row.shape)).astype(np.int32)
    operands = tile(np.zeros_like(full), DST), tile(full, 0), tile(row, THIN)
    assert failure_of("TCOLEXPANDDIV", *operands, target="a2a3").fault is Fault.NOT_SUPPORTED
    result = run_tile_op("TCOLEXPANDDIV", *operands, target="a5")
    np.testing.assert_array_equal(result.matrix(0), np.trunc(full / row).astype(np.int32))
