"""Reductions down the columns, positions of extremes and sums of neighbours, against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import or_half
from tests.simulate.op_harness import Option, run_tile_op, scalar, tile
from tests.simulate.test_reduce import DST, TMP, assert_reduced, shapes, values

TYPES = ["float32", "float16", "int32", "int16"]
NUMPY = {"TCOLMAX": "TROWMAX", "TCOLMIN": "TROWMIN", "TCOLSUM": "TROWSUM", "TCOLPROD": "TROWPROD"}
IDX = 0x1C000
KEPT = 77


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("op", sorted(NUMPY))
@settings(max_examples=or_half(20))
@given(data=st.data())
def test_a_column_reduction_is_what_numpy_says(op, kind, data):
    rows, cols, valid_rows, valid_cols = data.draw(shapes(kind))
    in_pairs = data.draw(st.sampled_from([None, False, True])) if op == "TCOLSUM" else None
    source = values(
        np.random.default_rng(data.draw(st.integers(0, 2**32 - 1))), kind, (rows, cols), NUMPY[op]
    )
    more = ()
    if in_pairs is not None:
        more = (tile(np.zeros((rows, cols), kind), TMP), scalar(in_pairs, "BOOL"))
    operands = [
        tile(np.full((1, cols), KEPT, kind), DST, valid=(1, valid_cols)),
        tile(source, 0, valid=(valid_rows, valid_cols)),
        *more,
    ]
    block = 32 // np.dtype(kind).itemsize
    # a2a3 copies whole blocks of a row
    for target, end in (("a2a3", -(-valid_cols // block) * block), ("a5", valid_cols)):
        result = run_tile_op(op, *operands, target=target)
        got = result.matrix(0)[0]
        assert_reduced(NUMPY[op], got[:valid_cols], source[:valid_rows, :valid_cols], 0)
        np.testing.assert_array_equal(got[end:], KEPT)
        np.testing.assert_array_equal(result.matrix(1), source)


@pytest.mark.parametrize("kind", ["float32", "float16"])
@pytest.mark.parametrize("op", ["TROWARGMAX", "TROWARGMIN"])
@settings(max_examples=or_half(20))
@given(data=st.data())
def test_the_position_of_a_rows_extreme_is_the_first_of_equals(op, kind, data):
    rows, cols, valid_rows, valid_cols = data.draw(shapes(kind))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    source = rng.integers(-5, 6, (rows, cols)).astype(kind)  # few values, so that equals are there
    index_layout, value_layout = (
        data.draw(st.sampled_from(["DN", "ND"])),
        data.draw(st.sampled_from(["DN", "ND"])),
    )
    with_value = data.draw(st.booleans())

    def column(kind_of: str, address: int, layout: str):
        block = 32 // np.dtype(kind_of).itemsize
        shape = (-(-rows // block) * block, 1) if layout == "DN" else (rows, block)
        return tile(np.full(shape, KEPT, kind_of), address, layout=layout, valid=(valid_rows, 1))

    outputs = (column("uint32", IDX, index_layout),)
    if with_value:
        outputs = (column(kind, DST, value_layout), *outputs)
    result = run_tile_op(
        op,
        *outputs,
        tile(source, 0, valid=(valid_rows, valid_cols)),
        tile(np.zeros((rows, cols), kind), TMP),
    )
    valid = source[:valid_rows, :valid_cols]
    positions = valid.argmax(1) if op.endswith("MAX") else valid.argmin(1)
    np.testing.assert_array_equal(result.matrix(int(with_value))[:valid_rows, 0], positions)
    if with_value:
        extremes = valid.max(1) if op.endswith("MAX") else valid.min(1)
        np.testing.assert_array_equal(result.matrix(0)[:valid_rows, 0], extremes)


@pytest.mark.parametrize("kind", ["float32", "float16", "uint32", "uint16"])
@pytest.mark.parametrize("op", ["TCOLARGMAX", "TCOLARGMIN"])
@settings(max_examples=or_half(20))
@given(data=st.data())
def test_the_position_of_a_columns_extreme_is_the_first_of_equals(op, kind, data):
    rows, cols, valid_rows, valid_cols = data.draw(shapes(kind))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    source = rng.integers(0, 6, (rows, cols)).astype(kind)
    with_value = data.draw(st.booleans())
    wide = "int16" if with_value and np.dtype(kind).itemsize == 2 else "int32"
    outputs = (tile(np.full((1, cols), KEPT, wide), IDX, valid=(1, valid_cols)),)
    if with_value:
        outputs = (tile(np.full((1, cols), KEPT, kind), DST, valid=(1, valid_cols)), *outputs)
    result = run_tile_op(
        op,
        *outputs,
        tile(source, 0, valid=(valid_rows, valid_cols)),
        tile(np.zeros((3, cols), kind), TMP),
    )
    valid = source[:valid_rows, :valid_cols]
    positions = valid.argmax(0) if op.endswith("MAX") else valid.argmin(0)
    np.testing.assert_array_equal(result.matrix(int(with_value))[0, :valid_cols], positions)
    if with_value:
        extremes = valid.max(0) if op.endswith("MAX") else valid.min(0)
        np.testing.assert_array_equal(result.matrix(0)[0, :valid_cols], extremes)


@pytest.mark.parametrize("kind", ["float32", "float16"])
@settings(max_examples=or_half(20))
@given(data=st.data())
def test_neighbours_add_up_in_pairs(kind, data):
    rows, cols, valid_rows, valid_cols = data.draw(shapes(kind))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    source = rng.normal(size=(rows, cols)).astype(kind)
    valid = (valid_rows, valid_cols)
    dynamic = data.draw(st.sampled_from([0, 3]))
    result = run_tile_op(
        "TPAIRREDUCESUM",
        tile(np.full((rows, cols), KEPT, kind), DST, valid=valid, dynamic=dynamic),
        tile(source, 0, valid=valid, dynamic=dynamic),
    )
    pairs = valid_cols // 2
    part = source[:valid_rows, : 2 * pairs].astype(np.float32)
    np.testing.assert_array_equal(
        result.matrix(0)[:valid_rows, :pairs], (part[:, 0::2] + part[:, 1::2]).astype(kind)
    )


def test_columns_fold_row_by_row():
    source = np.zeros((4, 64), np.float32)
    names = run_tile_op("TCOLMAX", tile(source[:1], DST), tile(source, 0)).instructions
    masks = ["MOV_SPR_XN", "MOV_SPR_XN"]
    assert names == ["MOV_UB_TO_UB", "BAR", *masks, *["VMAX", "BAR"] * 3, *masks, "BAR"]
    summed = run_tile_op("TCOLSUM", tile(source[:1], DST), tile(source, 0)).instructions
    assert summed == ["MOV_UB_TO_UB", "BAR", *masks, *["VADD", "BAR"] * 3, *masks]
    in_pairs = run_tile_op(
        "TCOLSUM", tile(source[:1], DST), tile(source, 0), tile(source, TMP), scalar(1, "BOOL")
    ).instructions
    assert in_pairs == [
        *masks, "VADD", "VADD", "BAR", *masks, *masks, "VADD", "BAR", *masks, "BAR", "MOV_UB_TO_UB", "BAR",
    ]  # fmt: skip


def test_an_option_operand_also_switches_the_pairwise_sum():
    source = np.ones((4, 8), np.float32)
    result = run_tile_op("TCOLSUM", tile(source[:1], DST), tile(source, 0), tile(source, TMP), Option(1))
    np.testing.assert_array_equal(result.matrix(0), 4)
