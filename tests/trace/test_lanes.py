"""Sub-lanes: work in flight together is seen together."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from insight_trace.model import Pipe
from insight_trace.recording.pipes import core_order, pipe_name
from insight_trace.trace.sublanes import lane_label, sublanes

intervals = st.lists(st.tuples(st.integers(0, 2), st.integers(-20, 80), st.integers(0, 30)), max_size=60)


def _columns(rows):
    group, start, length = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    return group, start, start + length


@given(intervals.filter(bool))
def test_no_two_rows_share_a_lane_at_one_time(rows):
    group, start, end = _columns(rows)
    lane, order = sublanes(group, start, end)
    assert sorted(order.tolist()) == list(range(len(rows)))
    places: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for row in order.tolist():
        places.setdefault((int(group[row]), int(lane[row])), []).append((int(start[row]), int(end[row])))
    for spans in places.values():
        for (_, before), (after, _) in itertools.pairwise(spans):
            assert before <= after


@given(intervals.filter(bool))
def test_a_row_takes_the_lowest_lane_that_is_free(rows):
    group, start, end = _columns(rows)
    lane, order = sublanes(group, start, end)
    ends: dict[int, dict[int, int]] = {}
    for row in order.tolist():
        mine = ends.setdefault(int(group[row]), {})
        taken = {number for number, until in mine.items() if until > start[row]}
        lowest = next(number for number in range(len(rows) + 1) if number not in taken)
        assert lane[row] == lowest
        mine[lowest] = int(end[row])


def test_forty_rows_in_flight_take_the_lowest_free_lane_too():
    start = np.repeat(np.arange(0, 200, 5), 2)
    end = start + np.tile([200, 3], 40)
    lane, order = sublanes(np.zeros(80, np.int64), start, end)
    expected: list[int] = []
    until: list[int] = []
    for row in order.tolist():
        free = next((place for place, time in enumerate(until) if time <= start[row]), len(until))
        until[free : free + 1] = [int(end[row])]
        expected.append(free)
    assert lane[order].tolist() == expected
    assert max(expected) == 40


def test_no_rows_need_no_lane():
    empty = np.zeros(0, np.int64)
    lane, order = sublanes(empty, empty, empty)
    assert len(lane) == len(order) == 0


def test_a_label_says_what_the_pipe_moves_on_this_kind_of_core():
    assert lane_label("core0.veccore0", Pipe.MTE2, 0) == "MTE2 GM→UB"
    assert lane_label("core0.cubecore0", Pipe.MTE2, 0) == "MTE2 GM→L1"
    assert lane_label("core0.cubecore0", Pipe.MTE1, 2) == "MTE1 L1→L0 #2"
    assert lane_label("core0", 77, 0) == "PIPE 77"
    assert pipe_name(Pipe.FIXP) == "FIXPIPE"


def test_core_two_stands_before_core_ten():
    cores = ["core10.veccore0", "core2.veccore1", "core2.cubecore0", "core2.veccore0"]
    assert sorted(cores, key=core_order) == [
        "core2.cubecore0", "core2.veccore0", "core2.veccore1", "core10.veccore0",
    ]  # fmt: skip
