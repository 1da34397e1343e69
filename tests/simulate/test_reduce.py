"""Reductions along rows against NumPy, over types, shapes and valid sizes; and what they issue."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from insight_trace.outcome import Fault
from tests.conftest import or_half
from tests.simulate.op_harness import Result, failure_of, run_tile_op, tile

TYPES = ["float32", "float16", "int32", "int16"]
DST, TMP = 0x18000, 0x20000
NUMPY = {"TROWMAX": np.max, "TROWMIN": np.min, "TROWSUM": np.sum, "TROWPROD": np.prod}


def values(rng: np.random.Generator, kind: str, shape: tuple[int, int], op: str) -> np.ndarray:
    if kind.startswith("int"):
        return rng.integers(-100, 100, shape).astype(kind)
    if op.endswith("PROD"):
        return rng.uniform(0.9, 1.1, shape).astype(kind)
    return rng.normal(size=shape).astype(kind)


def expected(op: str, valid: np.ndarray, axis: int) -> np.ndarray:
    if valid.dtype.kind == "i":
        with np.errstate(over="ignore"):
            return (
                NUMPY[op](valid, axis=axis, dtype=valid.dtype)
                if op[4:] in ("SUM", "PROD")
                else NUMPY[op](valid, axis=axis)
            )
    return NUMPY[op](valid.astype(np.float64), axis=axis)


def assert_reduced(op: str, got: np.ndarray, valid: np.ndarray, axis: int) -> None:
    want = expected(op, valid, axis)
    if op[4:] in ("MAX", "MIN") or valid.dtype.kind == "i":
        np.testing.assert_array_equal(got, want.astype(valid.dtype))
        return
    steps = valid.shape[axis]
    unit = {"float32": 2**-24, "float16": 2**-11}[valid.dtype.name]
    scale = np.abs(valid.astype(np.float64)).sum(axis) if op.endswith("SUM") else np.abs(want)
    np.testing.assert_allclose(
        got.astype(np.float64), want, rtol=0, atol=(steps * unit * scale).max() + 1e-30
    )


def reduce_rows(
    op: str, source: np.ndarray, valid: tuple[int, int], layout: str = "DN", **more: int
) -> Result:
    rows = source.shape[0]
    block = 32 // source.dtype.itemsize
    column_rows = -(-rows // block) * block
    column = np.full((column_rows, 1) if layout == "DN" else (rows, block), 77, source.dtype)
    return run_tile_op(
        op,
        tile(column, DST, layout=layout, valid=(valid[0], 1)),
        tile(source, 0, valid=valid, **more),
        tile(np.zeros(source.shape, source.dtype), TMP),
    )


@st.composite
def shapes(draw: st.DrawFn, kind: str, most_bytes: int = 0x8000) -> tuple[int, int, int, int]:
    block = 32 // np.dtype(kind).itemsize
    cols = draw(st.integers(1, 40)) * block
    rows = draw(st.integers(1, max(1, min(40, most_bytes // (cols * np.dtype(kind).itemsize)))))
    return rows, cols, draw(st.integers(1, rows)), draw(st.integers(1, cols))


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("op", sorted(NUMPY))
@settings(max_examples=or_half(20))
@given(data=st.data())
def test_a_row_reduction_is_what_numpy_says(op, kind, data):
    rows, cols, valid_rows, valid_cols = data.draw(shapes(kind))
    layout = data.draw(st.sampled_from(["DN", "ND"]))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    source = values(rng, kind, (rows, cols), op)
    result = reduce_rows(op, source, (valid_rows, valid_cols), layout)
    got = result.matrix(0)
    assert_reduced(op, got[:valid_rows, 0], source[:valid_rows, :valid_cols], 1)
    np.testing.assert_array_equal(got[valid_rows:], 77)
    np.testing.assert_array_equal(got[:, 1:], 77)
    np.testing.assert_array_equal(result.matrix(1), source)


@pytest.mark.parametrize("op", ["TROWMAX", "TROWMIN", "TROWSUM"])
@pytest.mark.parametrize("shape", [(64, 128), (32, 256), (16, 512), (8, 1024)])
def test_the_shapes_that_fold_by_block_give_the_same_values(op, shape):
    source = np.random.default_rng(7).normal(size=shape).astype(np.float32)
    by_block = reduce_rows(op, source, shape)
    by_repeat = reduce_rows(op, source, shape, dynamic=3)
    group = {"TROWMAX": "VCGMAX", "TROWMIN": "VCGMIN", "TROWSUM": "VCGADD"}[op]
    assert group in by_block.instructions
    assert group not in by_repeat.instructions
    for result in (by_block, by_repeat):
        assert_reduced(op, result.matrix(0)[:, 0], source, 1)


@pytest.mark.parametrize("op", ["TROWMAX", "TROWMIN", "TROWSUM"])
def test_nan_in_a_row_is_nan_in_its_result(op):
    source = np.ones((4, 200), np.float32)
    source[2, 130] = np.nan
    got = reduce_rows(op, source, (4, 199)).matrix(0)[:4, 0]
    assert np.isnan(got).tolist() == [False, False, True, False]


def test_a_narrow_row_is_one_masked_instruction():
    source = np.zeros((16, 64), np.float32)
    assert reduce_rows("TROWMAX", source, (16, 40)).instructions == [
        "MOV_SPR_XN", "VCMAX", "BAR", "MOV_SPR_XN",
    ]  # fmt: skip


def test_a_wide_row_folds_then_reduces():
    source = np.zeros((16, 256), np.float32)
    count = ["MOV_SPR_XN", "MOV_SPR_XN", "{}", "MOV_SPR_XN", "MOV_SPR_XN", "BAR"]

    def counted(*names: str) -> list[str]:
        return [step.format(name) for name in names for step in count]

    assert reduce_rows("TROWMAX", source, (16, 256)).instructions == counted("VMAX", "VMAX", "VMAX", "VCMAX")
    # pairs first, then the pairs' sums
    assert reduce_rows("TROWSUM", source, (16, 256)).instructions == counted("VADD", "VADD", "VADD", "VCADD")
    ragged = reduce_rows("TROWSUM", source, (16, 140)).instructions
    assert ragged == [*counted("VADD"), "MOV_SPR_XN", "VADD", "MOV_SPR_XN", "BAR", *counted("VCADD")]
    just_over = reduce_rows("TROWMAX", source, (16, 70)).instructions
    assert just_over == ["MOV_UB_TO_UB", "BAR", "MOV_SPR_XN", "VMAX", "MOV_SPR_XN", "BAR", *counted("VCMAX")]


def test_integers_finish_on_the_scalar_unit():
    names = reduce_rows("TROWSUM", np.ones((3, 24), np.int32), (3, 20)).instructions
    assert names.count("VADD") == 3 * 3
    assert names.count("LD_XD_XN_IMM") == 3 * 8
    assert names.count("ST_XD_XN_IMM") == 3
    assert names.count("WAIT_FLAG") == 3 * 2


def test_types_the_hardware_cannot_reduce_are_not_supported():
    source = np.zeros((4, 32), np.int8)
    failure = failure_of(
        "TROWSUM", tile(np.zeros((32, 1), np.int8), DST, layout="DN"), tile(source), tile(source, TMP)
    )
    assert failure.fault is Fault.NOT_SUPPORTED
    assert "TROWSUM of I8" in failure.message


def test_more_rows_than_the_result_has_is_the_kernels_fault():
    source = np.zeros((16, 8), np.float32)
    failure = failure_of(
        "TROWMAX", tile(np.zeros((8, 1), np.float32), DST, layout="DN"), tile(source), tile(source, TMP)
    )
    assert failure.fault is Fault.KERNEL


def test_a_sum_of_halves_is_rounded_and_held_at_every_level_of_the_tree():
    source = np.zeros((2, 128), np.float16)
    source[0, :4] = [60000, 60000, -30000, 100]
    source[1, :4] = [2048, 1, 1, 1]
    operands = (
        tile(np.zeros((16, 1), np.float16), DST, layout="DN", valid=(2, 1)),
        tile(source, 0),
        tile(np.zeros_like(source), TMP),
    )
    # 65504 - 29904, to the nearest half; 2048 + 1 is 2048 before 1 + 1 comes
    assert run_tile_op("TROWSUM", *operands, target="a2a3").matrix(0)[:2, 0].tolist() == [35584, 2050]
    assert run_tile_op("TROWSUM", *operands, target="a5").matrix(0)[:2, 0].tolist() == [np.inf, 2050]


def test_nan_wins_in_a_maximum_and_its_index_is_the_one_found():
    source = np.arange(64, dtype=np.float32).reshape(1, 64)
    source[0, 17] = np.nan
    column = tile(np.zeros((8, 1), np.float32), DST, layout="DN", valid=(1, 1))
    scratch = tile(np.zeros_like(source), TMP)
    assert np.isnan(run_tile_op("TROWMAX", column, tile(source, 0), scratch).matrix(0)[0, 0])
    index = tile(np.zeros((8, 1), np.uint32), DST, layout="DN", valid=(1, 1))
    assert run_tile_op("TROWARGMAX", index, tile(source, 0), scratch, target="a2a3").matrix(0)[0, 0] == 17


def test_the_scratch_tile_holds_what_the_instructions_leave_there():
    source = np.arange(2 * 128, dtype=np.float32).reshape(2, 128)
    result = run_tile_op(
        "TROWSUM",
        tile(np.zeros((8, 1), np.float32), DST, layout="DN", valid=(2, 1)),
        tile(source, 0),
        tile(np.zeros_like(source), TMP),
        target="a2a3",
    )
    np.testing.assert_array_equal(result.matrix(2)[:, :64], source[:, :64] + source[:, 64:])
