"""The lanes of a clean timeline: dataflow order, labels, and sub-lanes for work in flight together."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from insight_trace.model import Pipe
from insight_trace.recording.pipes import ORDER, pipe_name
from insight_trace.recording.stream import grouped

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# On a cube core MTE2 fills L1 and not UB, so a label needs the kind of the core.
_ON_CUBE = {Pipe.MTE2: "GM→L1", Pipe.MTE3: "L1→GM"}
_FEW = 16  # lanes that are looked at one by one
_MEANING = {
    Pipe.MTE2: "GM→UB",
    Pipe.MTE1: "L1→L0",
    Pipe.FIXP: "L0C→out",
    Pipe.MTE3: "UB→GM",
    Pipe.SCALARLDST: "scalar load/store",
    Pipe.USERMARK: "marks",
    Pipe.CACHEMISS: "instruction cache",
    Pipe.FLOWCTRL: "control",
}


def lane_label(core: str, pipe: int, lane: int) -> str:
    """What stands left of a lane: pipe, what it does on this core, and which of its sub-lanes."""
    meaning = (_ON_CUBE.get(Pipe(pipe)) if "cube" in core else None) if pipe in ORDER else None
    meaning = meaning or (_MEANING.get(Pipe(pipe), "") if pipe in ORDER else "")
    label = f"{pipe_name(pipe)} {meaning}".rstrip()
    return f"{label} #{lane}" if lane else label


def sublanes(
    group: NDArray[np.int64], start: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The sub-lane of every row, so that no two rows of a group share a lane at one time.

    A row gets the lowest lane that is free when it starts. Also returned: the rows in the order
    (group, start, end) in which lanes were filled.
    """
    import numpy as np

    lane = np.zeros(len(start), np.int32)
    if len(start) < 2:
        return lane, np.arange(len(start))
    order = np.concatenate([rows for _, rows in grouped(group)])
    first, last, kin = start[order], end[order], group[order]
    # a pipe takes up its instructions in their order: often there is nothing to sort
    later = (first[1:] < first[:-1]) | ((first[1:] == first[:-1]) & (last[1:] < last[:-1]))
    if (later & (kin[1:] == kin[:-1])).any():
        order = np.lexsort((end, start, group))
        first, last, kin = start[order], end[order], group[order]
    # one axis for all: every group begins where the one before has ended
    reach = int(last.max()) - int(first.min()) + 1
    offset = np.cumsum(np.concatenate(([0], kin[1:] != kin[:-1]))) * reach
    first += offset
    last += offset
    # A cluster ends where everything before has finished: rows alone in theirs need no search.
    latest = np.maximum.accumulate(last)
    opens = np.ones(len(first), bool)
    opens[1:] = first[1:] >= latest[:-1]
    alone = opens.copy()
    alone[:-1] &= opens[1:]
    crowded = np.flatnonzero(~alone)
    lane[order[crowded]] = _fill(first[crowded].tolist(), last[crowded].tolist())
    return lane, order


def _fill(start: list[int], end: list[int]) -> list[int]:
    """First fit over rows sorted by start. Few are in flight together: a row looks at the ends of the lanes in turn."""
    lanes: list[int] = []
    put = lanes.append
    free: list[int] = [start[0]] * _FEW if start else []  # from when on each lane is free
    for row, (begin, finish) in enumerate(zip(start, end, strict=True)):
        for lane, until in enumerate(free):
            if until <= begin:
                free[lane] = finish
                put(lane)
                break
        else:
            return lanes + _fill_many(free, start[row:], end[row:])
    return lanes


def _fill_many(until: list[int], start: list[int], end: list[int]) -> list[int]:
    """The same with a heap of running rows, so that it stays n log n however many run."""
    lanes: list[int] = []
    running = sorted((finish, lane) for lane, finish in enumerate(until))
    free: list[int] = []
    used = len(until)
    for begin, finish in zip(start, end, strict=True):
        while running and running[0][0] <= begin:
            heapq.heappush(free, heapq.heappop(running)[1])
        if free:
            lane = heapq.heappop(free)
        else:
            lane = used
            used += 1
        heapq.heappush(running, (finish, lane))
        lanes.append(lane)
    return lanes
