"""MGATHER and MSCATTER between tiles and tables in global memory, against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from insight_trace.outcome import Fault
from tests.conftest import or_half
from tests.simulate.op_harness import Option, dtype, failure_of, glob, run_tile_op, tile

IDX = 0x10000
KEPT = 77
TYPES = ["float32", "float16", "bfloat16", "int32", "int16", "int8", "uint8"]
BY_ROW, BY_ELEMENT = Option(0), Option(1)
GATHER = {"clamp": 1, "wrap": 2, "zero": 3}
SCATTER = {"skip": 1, "clamp": 2, "wrap": 3}
NONE, ADD, LARGEST, SMALLEST = range(4)


def drawn(data, shape, kind: str) -> np.ndarray:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    return rng.integers(0, 50, shape).astype(dtype(kind).numpy)


def indices(data, shape, count: int, beyond: bool) -> np.ndarray:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    return rng.integers(0, count + (count if beyond else 0), shape).astype(np.int32)


def index_row(values: np.ndarray):
    padded = np.zeros((1, -(-values.size // 8) * 8), np.int32)
    padded[0, : values.size] = values
    return tile(padded, IDX, valid=(1, values.size))


def nz(matrix: np.ndarray):
    """A matrix as an NZ table: (column boxes, row boxes, 16, 32 bytes)."""
    c0 = 32 // matrix.dtype.itemsize
    rows, cols = matrix.shape
    boxes = matrix.reshape(rows // 16, 16, cols // c0, c0).transpose(2, 0, 1, 3)
    shape = (1, cols // c0, rows // 16, 16, c0)
    strides = (rows * cols, rows * c0, 16 * c0, c0, 1)
    return np.ascontiguousarray(boxes).ravel(), shape, strides


def from_nz(buffer: np.ndarray, rows: int, cols: int) -> np.ndarray:
    c0 = 32 // buffer.dtype.itemsize
    return buffer.reshape(cols // c0, rows // 16, 16, c0).transpose(1, 2, 0, 3).reshape(rows, cols)


@pytest.mark.parametrize("kind", TYPES)
@settings(max_examples=or_half(12))
@given(data=st.data())
def test_rows_are_gathered_by_index(kind, data):
    block = 32 // dtype(kind).size
    table_rows, cols = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 4)) * block
    rows, way = data.draw(st.integers(1, 10)), data.draw(st.sampled_from(["undefined", *GATHER]))
    table = drawn(data, (table_rows, cols), kind)
    index = indices(data, rows, table_rows, way != "undefined")
    valid_cols = data.draw(st.integers(1, cols))
    operands = (
        tile(np.full((rows, cols), KEPT), 0, dtype_name=kind, valid=(rows, valid_cols)),
        glob(table, (table_rows, cols), (cols, 1), dtype_name=kind),
        index_row(index),
        BY_ROW,
        Option(GATHER.get(way, 0)),
    )
    # threads of the 950 take rows of the table to be as long as the tile's
    packed = table.ravel()[: table_rows * valid_cols].reshape(table_rows, valid_cols)
    for target, source in (("a2a3", table[:, :valid_cols]), ("a5", packed)):
        found = run_tile_op("MGATHER", *operands, target=target).matrix(0)
        for r, i in enumerate(index):
            inside = {"clamp": min(i, table_rows - 1), "wrap": i % table_rows}.get(way, i)
            want = source[inside] if inside < table_rows else np.zeros(valid_cols, table.dtype)
            np.testing.assert_array_equal(found[r, :valid_cols], want)
        np.testing.assert_array_equal(found[:, valid_cols:].astype(int), KEPT)


@pytest.mark.parametrize("kind", TYPES)
@settings(max_examples=or_half(12))
@given(data=st.data())
def test_elements_are_gathered_by_index(kind, data):
    block = 32 // dtype(kind).size
    rows, cols = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 2)) * block
    way = data.draw(st.sampled_from(["undefined", *GATHER]))
    table = drawn(data, 40, kind)
    index = indices(data, (rows, -(-cols // 8) * 8), table.size, way != "undefined")
    result = run_tile_op(
        "MGATHER",
        tile(np.full((rows, cols), KEPT), 0, dtype_name=kind),
        glob(table, (1, table.size), (table.size, 1), dtype_name=kind),
        tile(index, IDX, valid=(rows, cols)),
        BY_ELEMENT,
        Option(GATHER.get(way, 0)),
    )
    inside = {"clamp": np.minimum(index, table.size - 1), "wrap": index % table.size}.get(way, index)[
        :, :cols
    ]
    padded = np.concatenate([table, np.zeros(table.size, table.dtype)])
    np.testing.assert_array_equal(result.matrix(0), padded[inside])


@pytest.mark.parametrize("kind", ["float32", "float16", "int8"])
@pytest.mark.parametrize("mode", [BY_ROW, BY_ELEMENT], ids=["rows", "elements"])
@settings(max_examples=or_half(10))
@given(data=st.data())
def test_tables_in_boxes_are_gathered_and_scattered_too(mode, kind, data):
    c0 = 32 // dtype(kind).size
    table_rows, cols = data.draw(st.integers(1, 2)) * 16, data.draw(st.integers(1, 2)) * c0
    table = drawn(data, (table_rows, cols), kind)
    flat, shape, strides = nz(table)
    rows = data.draw(st.integers(1, 16))
    by_row = mode is BY_ROW
    index = indices(
        data, rows if by_row else (16, -(-cols // 8) * 8), table_rows if by_row else table.size, False
    )
    index_tile = index_row(index) if by_row else tile(index, IDX, valid=(rows, cols))
    boxed = tile(np.full((16, cols), KEPT), 0, dtype_name=kind, layout="NZ", valid=(rows, cols))
    world = glob(flat, shape, strides, layout=2, dtype_name=kind)
    gathered = run_tile_op("MGATHER", boxed, world, index_tile, mode, Option(0)).matrix(0)[:rows]
    want = table[index] if by_row else table.ravel()[index[:rows, :cols]]
    np.testing.assert_array_equal(gathered, want)

    source = drawn(data, (16, cols), kind)
    if not by_row:  # every place once: their order does not matter
        index = np.zeros((16, -(-cols // 8) * 8), np.int32)
        index[:rows, :cols] = (np.arange(rows * cols) * 7 % (16 * cols)).reshape(rows, cols)
        index_tile = tile(index, IDX, valid=(rows, cols))
    boxed = tile(source, 0, dtype_name=kind, layout="NZ", valid=(rows, cols))
    result = run_tile_op("MSCATTER", world, boxed, index_tile, mode, Option(NONE), Option(0))
    want = table.copy()
    if by_row:
        for r, i in enumerate(index):
            want[i] = source[r]
    else:
        want.reshape(-1)[index[:rows, :cols]] = source[:rows]
    np.testing.assert_array_equal(from_nz(result.buffer(0), table_rows, cols), want)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("mode", [BY_ROW, BY_ELEMENT], ids=["rows", "elements"])
@settings(max_examples=or_half(12))
@given(data=st.data())
def test_a_tile_is_scattered_and_combined_in_order(mode, kind, data):
    block = 32 // dtype(kind).size
    rows, cols = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 2)) * block
    way = data.draw(st.sampled_from(["undefined", *SCATTER]))
    combine = data.draw(st.sampled_from([NONE, ADD] if kind != "uint8" else [NONE]))
    table_rows = data.draw(st.integers(1, 6))
    table, source = drawn(data, (table_rows, cols), kind), drawn(data, (rows, cols), kind)
    by_row = mode is BY_ROW
    count = table_rows if by_row else table.size
    index = indices(data, rows if by_row else (rows, -(-cols // 8) * 8), count, way != "undefined")
    result = run_tile_op(
        "MSCATTER",
        glob(table, (table_rows, cols), (cols, 1), dtype_name=kind),
        tile(source, 0, dtype_name=kind),
        index_row(index) if by_row else tile(index, IDX, valid=(rows, cols)),
        mode,
        Option(combine),
        Option(SCATTER.get(way, 0)),
    )
    want = table.copy() if by_row else table.copy().ravel()
    with np.errstate(over="ignore"):
        for r in range(rows):
            for c in [slice(None)] if by_row else range(cols):
                i = int(index[r] if by_row else index[r, c])
                i = {"clamp": min(i, count - 1), "wrap": i % count}.get(way, i)
                if i < count:
                    want[i] = (want[i] + source[r, c]).astype(want.dtype) if combine == ADD else source[r, c]
    np.testing.assert_array_equal(result.buffer(0), want.ravel())


@pytest.mark.parametrize(("combine", "function"), [(LARGEST, np.maximum), (SMALLEST, np.minimum)])
def test_extremes_are_combined_too(combine, function):
    table, source = np.array([5, 1, 9, 3], np.float32), np.array([[4, 2, 8, 7, 0, 0, 0, 0]], np.float32)
    result = run_tile_op(
        "MSCATTER",
        glob(table, (1, 4), (4, 1)),
        tile(source, 0, valid=(1, 4)),
        tile(np.arange(8, dtype=np.int32)[None, :], IDX, valid=(1, 4)),
        BY_ELEMENT,
        Option(combine),
        Option(0),
    )
    np.testing.assert_array_equal(result.buffer(0), function(table, source[0, :4]))


@pytest.mark.parametrize("by_element", [False, True])
def test_a_matrix_tile_is_gathered_with_indices_from_global_memory(by_element):
    table = np.arange(20 * 32, dtype=np.float16).reshape(20, 32)
    rng = np.random.default_rng(3)
    index = rng.integers(0, 20 if not by_element else table.size, (16, 32)).astype(np.int32)
    scratch = (glob(np.zeros(16 * 32, np.float16), (16, 32), (32, 1)),) if by_element else ()
    result = run_tile_op(
        "MGATHER",
        tile(np.zeros((16, 32), np.float16), 0, layout="NZ", space="l1"),
        glob(table, (20, 32), (32, 1)),
        glob(index, (16, 32), (32, 1)),
        *scratch,
        Option(int(by_element)),
        Option(0),
    )
    want = table.ravel()[index] if by_element else table[index.ravel()[:16]]
    np.testing.assert_array_equal(result.matrix(0), want)


def test_a_row_gather_is_one_transfer_per_row():
    table = np.zeros((8, 64), np.float32)
    names = run_tile_op(
        "MGATHER",
        tile(np.zeros((4, 64), np.float32), 0),
        glob(table, (8, 64), (64, 1)),
        index_row(np.arange(4)),
        BY_ROW,
        Option(0),
    ).instructions
    flag = ["SET_FLAG", "WAIT_FLAG"]
    assert names == [*flag * 2, *["LD_XD_XN_IMM", "MOV_OUT_TO_UB_ALIGN"] * 4, *flag * 5]


def test_an_index_far_outside_the_buffer_is_the_kernels_fault():
    failure = failure_of(
        "MGATHER",
        tile(np.zeros((1, 8), np.float32), 0),
        glob(np.zeros((2, 8), np.float32), (2, 8), (8, 1)),
        index_row(np.array([1 << 28])),
        BY_ROW,
        Option(0),
    )
    assert failure.fault is Fault.KERNEL
