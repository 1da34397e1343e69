"""Partial tiles, tiles made from nothing, quantised numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import or_half
from tests.simulate.elementwise_cases import (
    SCRATCH,
    SEEDS,
    Shape,
    check,
    drawn,
    in_float,
    names,
    place,
    shapes,
    values,
    vector_instructions,
)
from tests.simulate.op_harness import TARGETS, Option, glob, run_tile_op, scalar, tile

PARTIAL = {"TPARTADD": np.add, "TPARTMUL": np.multiply, "TPARTMAX": np.maximum, "TPARTMIN": np.minimum}


@pytest.mark.parametrize("op", PARTIAL)
@settings(max_examples=or_half(25))
@given(data=st.data())
def test_where_one_source_ends_the_other_is_copied(op, data):
    kind = data.draw(st.sampled_from(["float32", "float16", "int32", "int16"]))
    shape, _, (before, a, b) = drawn(data, kind, 3, ("ND",))
    rows, cols = shape.valid
    less = data.draw(
        st.tuples(st.integers(0, rows), st.just(cols)) | st.tuples(st.integers(1, rows), st.integers(1, cols))
    )
    small = Shape(shape.rows, shape.cols, less, "ND", 3)
    swapped = data.draw(st.booleans())
    sources = [place(a, 1, kind, shape), place(b, 2, kind, small)]
    operands = place(before, 0, kind, shape), *(sources[::-1] if swapped else sources)

    def wanted(target):
        found = a.copy()
        found[small.part] = in_float(PARTIAL[op], target)(a, b)[small.part]
        return found[shape.part]

    check(run_tile_op(op, *operands, target="a5"), shape, before, wanted("a5"))
    # a2a3 copies whole blocks, and lines with what lies behind their valid part
    found = run_tile_op(op, *operands, target="a2a3").matrix(0)[shape.part]
    np.testing.assert_array_equal(found, wanted("a2a3"))


def test_partial_tiles_copy_and_compute():
    def run(less):
        a = np.zeros((8, 128), np.float32)
        return vector_instructions(
            run_tile_op("TPARTADD", tile(a), tile(a, 0x1000), tile(a, 0x2000, valid=less))
        )

    assert run((8, 128)) == [("VADD", 8), ("VADD", 8)]
    assert run((5, 128)) == [("VADD", 5), ("VADD", 5), ("MOV_UB_TO_UB", 1)]
    assert run((8, 100)) == [("MOV_UB_TO_UB", 1), ("BAR", 0), ("VADD", 8), ("VADD", 8)]
    assert run((0, 128)) == [("MOV_UB_TO_UB", 1)]


@pytest.mark.parametrize("scratch", [False, True])
@settings(max_examples=or_half(25))
@given(data=st.data())
def test_counting_fills_the_first_row(scratch, data):
    counting = ["int32", "uint32", "int16", "uint16"] + ([] if scratch else ["float32", "float16"])
    kind = data.draw(st.sampled_from(counting))
    shape, rng, (before,) = drawn(data, kind, 1, ("ND",))
    start, down = int(rng.integers(0, 1000)), data.draw(st.booleans())
    tmp = [tile(np.zeros((4, 128), np.float32), SCRATCH)] if scratch else []
    operands = place(before, 0, kind, shape), scalar(start, kind), Option(int(down)), *tmp
    cols = shape.valid[1]
    for target in TARGETS:
        result = run_tile_op("TCI", *operands, target=target)
        # the library for a2a3 counts up and then negates all of it
        negates = scratch and down and target == "a2a3"
        numbers = -(start + np.arange(cols)) if negates else start + np.arange(cols) * (-1 if down else 1)
        wanted = before.copy()
        wanted[0, :cols] = numbers.astype(before.dtype)
        # as a product of the whole tile, of 16-bit numbers
        rows = 1 if negates and before.dtype.itemsize == 2 else before.shape[0]
        np.testing.assert_array_equal(result.matrix(0)[:rows], wanted[:rows])
        if not scratch:
            assert result.instructions == ["ST_XD_XN_IMM"] * cols


def test_counting_on_the_vector_unit_is_a_chain():
    tmp = tile(np.zeros((4, 128), np.float32), SCRATCH)
    result = run_tile_op("TCI", tile(np.zeros((1, 160), np.int32)), scalar(5, "int32"), Option(0), tmp)
    without = [n for n in names(result) if n != "BAR"]
    assert without == [*["MOVEV"] * 8, "VCGADD", "VMULS", "VBRCB", "VADD", "VCONV", *["VADDS"] * 3]


@settings(max_examples=or_half(25))
@given(st.data())
def test_triangles_of_ones(data):
    kind = data.draw(st.sampled_from(["float32", "float16", "int32", "uint16"]))
    shape, _, (before,) = drawn(data, kind, 1, ("ND",))
    diagonal, upper = data.draw(st.integers(-20, 20)), data.draw(st.booleans())
    result = run_tile_op("TTRI", place(before, 0, kind, shape), scalar(diagonal, "int32"), Option(int(upper)))
    r, c = np.indices(shape.valid)
    wanted = (c >= r + diagonal) if upper else (c <= r + diagonal)
    check(result, shape, before, wanted.astype(before.dtype))


@settings(max_examples=or_half(25))
@given(st.data())
def test_quantised_rows_become_floats(data):
    kind = data.draw(st.sampled_from(["int8", "int16"]))
    shape = data.draw(shapes(kind, ("ND",)))
    rng = np.random.default_rng(data.draw(SEEDS))
    a = values(rng, kind, (shape.rows, shape.cols))
    before = np.zeros(a.shape, np.float32)
    scale, offset = rng.normal(size=(2, shape.rows, 8)).astype(np.float32)
    result = run_tile_op(
        "TDEQUANT", place(before, 0, "float32", shape), place(a, 1, kind, shape),
        tile(scale, SCRATCH), tile(offset, SCRATCH + 0x1000),
    )  # fmt: skip
    wanted = (a.astype(np.float32) - offset[:, :1]) * scale[:, :1]
    check(result, shape, before, wanted[shape.part])


@pytest.mark.parametrize("unsigned", [False, True])
@settings(max_examples=or_half(20))
@given(data=st.data())
def test_floats_are_quantised_row_by_row(unsigned, data):
    shape = data.draw(shapes("int8", ("ND",)))
    rng = np.random.default_rng(data.draw(SEEDS))
    a = values(rng, "float32", (shape.rows, shape.cols), special=False)
    scale, offset = rng.normal(size=(2, shape.rows, 1)).astype(np.float32)
    kind = "uint8" if unsigned else "int8"
    before = np.zeros(a.shape, kind)
    column = [place_column(m, SCRATCH + i * 0x1000, shape) for i, m in enumerate((scale, offset))]
    scratch = place(a, 2, "float32", shape)
    result = run_tile_op(
        "TQUANT", place(before, 0, kind, shape), place(a, 1, "float32", shape), column[0],
        Option(3 if unsigned else 2), scratch, *([column[1]] if unsigned else []),
    )  # fmt: skip
    with np.errstate(over="ignore"):
        scaled = a * scale + (offset if unsigned else np.float32(0))
        halves = np.rint(scaled).astype(np.float16).astype(np.float32)
    info = np.iinfo(kind)
    check(result, shape, before, np.clip(halves, info.min, info.max).astype(kind)[shape.part])


def place_column(matrix, address, shape):
    """One number per row, one after the other."""
    rows = -(-shape.rows // 8) * 8
    full = np.zeros((rows, 1), np.float32)
    full[: shape.rows] = matrix
    return tile(full, address, layout="DN", valid=(shape.valid[0], 1))


# what a kernel prints


def printed(*operands):
    result = run_tile_op("TPRINT", *operands)
    assert result.instructions == ["BAR"]
    return result.simulation.printed


def test_a_tile_is_printed_with_its_valid_part_framed():
    a = np.arange(16, dtype=np.float32).reshape(2, 8) / 8
    text = printed(tile(a, valid=(1, 2)), Option(1))
    assert text.splitlines() == [
        "tile F32 ND in Vec, 2 x 8, valid 1 x 2",
        "    0.00     0.12|    0.25     0.38     0.50     0.62     0.75     0.88",
        "-" * 71,
        "    1.00     1.12|    1.25     1.38     1.50     1.62     1.75     1.88",
    ]


def test_a_view_of_global_memory_is_printed_by_its_strides():
    view = glob(np.arange(8, dtype=np.int32), (2, 3), (4, 1))
    text = printed(view, Option(0))
    assert text.splitlines()[2:] == ["       0        1        2", "       4        5        6"]
