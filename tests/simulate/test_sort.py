"""Sorting in groups of 32 and merging sorted lists of (value, index) pairs, against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from insight_trace.outcome import Fault
from tests.conftest import or_half
from tests.simulate.op_harness import Option, failure_of, run_tile_op, scalar, tile

DST, IDX, TMP = 0x8000, 0x18000, 0x20000
PAIR = {"float32": np.dtype([("value", "<f4"), ("index", "<u4")]),
        "float16": np.dtype([("value", "<f2"), ("gap", "<u2"), ("index", "<u4")])}  # fmt: skip


def few_values(data, shape, kind: str) -> np.ndarray:
    """So few that equal ones are there."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    return rng.integers(-20, 20, shape).astype(kind)


def sorted_pairs(values: np.ndarray, indices: np.ndarray) -> np.ndarray:
    pairs = np.zeros(values.size, PAIR[values.dtype.name])
    order = np.argsort(-values.astype(np.float64), kind="stable")
    pairs["value"], pairs["index"] = values[order], indices[order]
    return pairs


def as_pairs(row: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(row).view(PAIR[row.dtype.name])


def as_row(pairs: np.ndarray, kind: str) -> np.ndarray:
    return pairs.view(kind)[None, :]


@pytest.mark.parametrize("kind", ["float32", "float16"])
@pytest.mark.parametrize("with_scratch", [False, True])
@settings(max_examples=or_half(20))
@given(data=st.data())
def test_each_group_of_32_is_sorted_downwards_and_keeps_its_indices(with_scratch, kind, data):
    groups, rows = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 4))
    cols = groups * 32
    valid_cols = data.draw(st.integers(1, cols)) if with_scratch else cols
    shared_index = data.draw(st.booleans())
    source = few_values(data, (rows, cols), kind)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    index = rng.permutation(rows * cols).reshape(rows, cols).astype(np.uint32)
    if shared_index:
        index = index[:1]
    factor = 8 // source.itemsize
    result = run_tile_op(
        "TSORT32",
        tile(np.zeros((rows, cols * factor), kind), DST),
        tile(source, 0, valid=(rows, valid_cols)),
        tile(index, IDX),
        *([tile(np.zeros((1, cols), kind), TMP)] if with_scratch else []),
    )
    for r in range(rows):
        got = as_pairs(result.matrix(0)[r])
        for first in range(0, valid_cols, 32):
            end = min(first + 32, valid_cols)
            want = sorted_pairs(source[r, first:end], index[0 if shared_index else r, first:end])
            np.testing.assert_array_equal(got[first:end], want)
    assert result.instructions.count("VBS32") == rows


def test_without_scratch_a_short_group_is_left_alone():
    source = np.arange(64, dtype=np.float32)[None, :]
    result = run_tile_op(
        "TSORT32",
        tile(np.full((1, 128), -1, np.float32), DST),
        tile(source, 0, valid=(1, 40)),
        tile(np.arange(64, dtype=np.uint32)[None, :], IDX),
    )
    np.testing.assert_array_equal(result.matrix(0)[0, 64:], -1)
    assert result.instructions == ["VBS32", "BAR"]


@pytest.mark.parametrize("kind", ["float32", "float16"])
@settings(max_examples=or_half(20))
@given(data=st.data())
def test_four_neighbouring_blocks_become_one(kind, data):
    length, repeats = data.draw(st.sampled_from([32, 64, 128])), data.draw(st.integers(1, 3))
    factor = 8 // np.dtype(kind).itemsize
    lists = few_values(data, (repeats, 4, length), kind)
    blocks = [
        [sorted_pairs(lists[i, k], np.arange(length) + 1000 * k) for k in range(4)] for i in range(repeats)
    ]
    row = as_row(np.concatenate([b for four in blocks for b in four]), kind)
    result = run_tile_op(
        "TMRGSORT", tile(np.zeros_like(row), DST), tile(row, 0), scalar(length * factor, "UINT32")
    )
    want = np.concatenate(
        [
            sorted_pairs(*(np.concatenate([b[field] for b in four]) for field in ("value", "index")))
            for four in blocks
        ]
    )
    np.testing.assert_array_equal(as_pairs(result.matrix(0)[0]), want)
    assert result.instructions == ["VMS4v2"]


@pytest.mark.parametrize("kind", ["float32", "float16"])
@pytest.mark.parametrize("exhausted", [False, True])
@settings(max_examples=or_half(20))
@given(data=st.data())
def test_whole_lists_merge_and_the_result_keeps_the_largest(exhausted, kind, data):
    lengths = data.draw(st.lists(st.integers(1, 12).map(lambda n: n * 8), min_size=2, max_size=4))
    lists = [sorted_pairs(few_values(data, n, kind), np.arange(n) + 1000 * k) for k, n in enumerate(lengths)]
    total = sum(lengths)
    kept = data.draw(st.integers(1, total // 8)) * 8
    factor = 8 // np.dtype(kind).itemsize
    result = run_tile_op(
        "TMRGSORT",
        tile(np.zeros((1, kept * factor), kind), DST),
        tile(np.zeros((1, total * factor), kind), TMP),
        Option(0),
        Option(int(exhausted)),
        *(tile(as_row(pairs, kind), 0x1000 * k) for k, pairs in enumerate(lists)),
    )
    taken = [0] * len(lists)
    want = []
    while any(t < n for t, n in zip(taken, lengths, strict=True)):
        if exhausted and any(t == n for t, n in zip(taken, lengths, strict=True)):
            break
        heads = [
            pairs["value"][t] if t < len(pairs) else -np.inf for pairs, t in zip(lists, taken, strict=True)
        ]
        best = int(np.argmax(heads))
        want.append(lists[best][taken[best]])
        taken[best] += 1
    sure = min(kept, len(want))
    np.testing.assert_array_equal(as_pairs(result.matrix(0)[0])[:sure], np.array(want)[:sure])
    waits = ["SET_FLAG", "WAIT_FLAG", "MOV_XD_SPR"] if exhausted else []
    assert result.instructions == ["VMS4v2", *waits, "BAR", "MOV_UB_TO_UB"]


def test_blocks_that_do_not_divide_the_source_are_the_kernels_fault():
    row = np.zeros((1, 128), np.float32)
    failure = failure_of("TMRGSORT", tile(row, DST), tile(row, 0), scalar(64, "UINT32"))
    assert failure.fault is Fault.KERNEL
