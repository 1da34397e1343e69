"""The lanes of a clean timeline: dataflow order, labels, and sub-lanes for work in flight together."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from insight_trace.model import Pipe
from insight_trace.recording.pipes import ORDER, pipe_name

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# On a cube core MTE2 fills L1 and not UB, so a label needs the kind of the core.
_ON_CUBE = {Pipe.MTE2: "GM→L1", Pipe.MTE3: "L1→GM"}
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

    order = np.lexsort((end, start, group))
    lane = np.zeros(len(start), np.int32)
    if len(start) < 2:
        return lane, order
    first, last = start[order], end[order]
    _, dense = np.unique(group[order], return_inverse=True)
    reach = int(last.max()) - int(first.min()) + 1
    offset = dense * reach - int(first.min())
    # A cluster ends where everything before has finished: rows alone in theirs need no search.
    latest = np.maximum.accumulate(last + offset)
    opens = np.ones(len(first), bool)
    opens[1:] = (first + offset)[1:] >= latest[:-1]
    alone = opens.copy()
    alone[:-1] &= opens[1:]
    crowded = np.flatnonzero(~alone)
    lane[order[crowded]] = _fill(
        opens[crowded].tolist(), (first + offset)[crowded].tolist(), (last + offset)[crowded].tolist()
    )
    return lane, order


def _fill(opens: list[bool], start: list[int], end: list[int]) -> list[int]:
    """First fit over rows sorted by start; a heap of running rows keeps it n log n."""
    lanes: list[int] = []
    running: list[tuple[int, int]] = []
    free: list[int] = []
    used = 0
    for opening, begin, finish in zip(opens, start, end, strict=True):
        if opening:
            running, free, used = [], [], 0
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
