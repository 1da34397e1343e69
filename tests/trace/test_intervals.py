"""Unions of intervals against plain sets of cycles."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from insight_trace.recording.intervals import together, union

spans = st.lists(st.tuples(st.integers(-20, 40), st.integers(-3, 15)), max_size=25)


def _made(rows):
    start = np.array([row[0] for row in rows], np.int64)
    return union(start, start + np.array([row[1] for row in rows], np.int64))


def _cycles(rows):
    return {cycle for start, length in rows for cycle in range(start, start + length)}


@given(spans)
def test_the_length_of_a_union_counts_every_cycle_once(rows):
    assert _made(rows).length == len(_cycles(rows))


@given(spans, spans)
def test_overlap_and_union_of_two_sets(first, second):
    assert _made(first).overlap(_made(second)) == len(_cycles(first) & _cycles(second))
    assert together(_made(first), _made(second)).length == len(_cycles(first) | _cycles(second))


@given(spans, st.lists(st.integers(-30, 60), min_size=1, max_size=5))
def test_how_much_lies_before_a_point(rows, points):
    covered = _made(rows).covered(np.array(points, np.int64))
    assert covered.tolist() == [len({c for c in _cycles(rows) if c < point}) for point in points]
