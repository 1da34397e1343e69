"""Padding against NumPy: what lies beyond the valid part of the source becomes the result's pad value."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from insight_trace.outcome import Fault
from tests.conftest import or_half
from tests.simulate.op_harness import dtype, failure_of, run_tile_op, tile

TYPES = ["float32", "float16", "bfloat16", "int32", "int16", "uint16", "uint32", "int8", "uint8"]
DST = 0x10000
NULL, ZERO, HIGHEST, LOWEST = range(4)
CUSTOM = 1 << 32
KEPT = 77


def pad_value(kind: str, pad: int) -> np.ndarray:
    numpy = dtype(kind).numpy
    if pad >= CUSTOM:
        return np.array([pad & 0xFFFFFFFF], np.uint32).view(np.uint8)[: numpy.itemsize].view(numpy)[0]
    if pad == ZERO:
        return numpy.type(0)
    if dtype(kind).is_float:
        return numpy.type(np.inf if pad == HIGHEST else -np.inf)
    limits = np.iinfo(numpy)
    return numpy.type(limits.max if pad == HIGHEST else limits.min)


def padded(
    source: np.ndarray, valid: tuple[int, int], result: np.ndarray, result_rows: int, value, part: bool
):
    """What the result tile holds afterwards; `part`: the last block of a row is padded too."""
    block = 32 // source.dtype.itemsize
    begin = valid[1] if part else -(-valid[1] // block) * block
    want = result.copy()
    want[: valid[0], :begin] = source[: valid[0], :begin]
    want[: valid[0], begin:] = value
    want[valid[0] : max(valid[0], result_rows)] = value
    return want


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("op", ["TFILLPAD", "TFILLPAD_INPLACE", "TFILLPAD_EXPAND"])
@settings(max_examples=or_half(20))
@given(data=st.data())
def test_padding_fills_the_rest_of_the_tile(op, kind, data):
    size = dtype(kind).size
    block = 32 // size
    cols, rows = data.draw(st.integers(1, 12)) * block, data.draw(st.integers(1, 24))
    valid = data.draw(st.integers(0, rows)), data.draw(st.integers(1, cols))
    pad = data.draw(st.sampled_from([ZERO, HIGHEST, LOWEST, CUSTOM | 0x41]))
    source_pad = data.draw(st.sampled_from([NULL, ZERO, LOWEST]))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    source = rng.integers(0, 100, (rows, cols)).astype(dtype(kind).numpy)
    more_rows = more_cols = 0
    if op == "TFILLPAD_EXPAND":
        more_rows, more_cols = data.draw(st.integers(0, 4)), data.draw(st.integers(0, 3)) * block
    before = np.full((rows + more_rows, cols + more_cols), KEPT).astype(source.dtype)
    result_rows = data.draw(st.integers(max(1, valid[0]), rows + more_rows))
    in_place = op == "TFILLPAD_INPLACE"
    if in_place:
        before = source
    got = run_tile_op(
        op,
        tile(before, 0 if in_place else DST, valid=(result_rows, cols), pad=pad, dtype_name=kind),
        tile(source, 0, valid=valid, pad=source_pad, dtype_name=kind),
    ).matrix(0)
    want = padded(source, valid, before, result_rows, pad_value(kind, pad), pad != source_pad)
    np.testing.assert_array_equal(got.view(f"u{size}"), want.view(f"u{size}"))


@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16", "int8"])
@settings(max_examples=or_half(20))
@given(data=st.data())
def test_a_matrix_tile_gets_zero_boxes_around_its_valid_part(kind, data):
    block = 32 // dtype(kind).size
    rows, cols = data.draw(st.integers(1, 4)) * 16, data.draw(st.integers(1, 4)) * block
    valid = data.draw(st.integers(1, rows)), data.draw(st.integers(1, cols))
    before = np.arange(rows * cols).reshape(rows, cols) % 50 + 1
    matrix = tile(before, dtype_name=kind, layout="NZ", space="l1", valid=valid)
    got = run_tile_op("TFILLPAD", matrix, matrix).matrix(0).astype(int)
    want = before.copy()
    want[valid[0] :] = 0
    want[:, -(-valid[1] // block) * block :] = 0
    np.testing.assert_array_equal(got, want)


def test_padding_in_place_copies_nothing():
    matrix = np.zeros((16, 64), np.float32)
    dst, src = tile(matrix, 0, pad=LOWEST), tile(matrix, 0, valid=(16, 42))
    names = run_tile_op("TFILLPAD_INPLACE", dst, src).instructions
    masks = ["MOV_SPR_XN", "MOV_SPR_XN"]
    # the rest of the last block of every row, the first row's blocks, the same for the other rows
    right = [*masks, "MOVEV", "BAR", *masks, "MOVEV", "BAR", "VCOPY", *masks]
    assert names == right
    assert run_tile_op("TFILLPAD", dst, src).instructions == [*masks, "VCOPY", *right]
    below = run_tile_op("TFILLPAD_INPLACE", dst, tile(matrix, 0, valid=(12, 42))).instructions
    assert below == [*right[:-2], "MOV_SPR_XN", "MOVEV", *masks]


def test_bytes_in_a_part_block_are_stored_one_by_one():
    matrix = np.zeros((4, 64), np.int8)
    names = run_tile_op(
        "TFILLPAD_INPLACE", tile(matrix, 0, pad=LOWEST), tile(matrix, 0, valid=(4, 60))
    ).instructions
    assert names.count("ST_XD_XN_IMM") == 4 * 4


@pytest.mark.parametrize(
    ("dst_shape", "pad", "said"), [((8, 16), NULL, "no pad value"), ((8, 24), ZERO, "does not go with")]
)
def test_misuse_is_the_kernels_fault(dst_shape, pad, said):
    failure = failure_of(
        "TFILLPAD", tile(np.zeros(dst_shape, np.float32), DST, pad=pad), tile(np.zeros((8, 16), np.float32))
    )
    assert failure.fault is Fault.KERNEL
    assert said in failure.message


def test_the_rest_of_a_block_is_padded_in_256_of_1024_rows_as_the_library_counts_its_repeats():
    """What is left after the first 255 rows goes into a repeat field of eight bits: 769 are one."""
    source = np.ones((1024, 8), np.float32)
    got = run_tile_op(
        "TFILLPAD_INPLACE",
        tile(source, 0, valid=(1024, 8), pad=ZERO),
        tile(source, 0, valid=(1024, 5)),
        target="a2a3",
    ).matrix(0)
    assert (got[:256, 5:] == 0).all()
    assert (got[256:] == 1).all()
