"""Rows in the page's order: core by core, lane by lane, by start; a core is read when somebody looks at it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from insight_trace.model import Trace
from insight_trace.recording.kinds import Kind, finish, kinds
from insight_trace.recording.pipes import core_order, pipe_name
from insight_trace.recording.stream import grouped
from insight_trace.trace.clean import Clean

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Segment:
    """A lane's rows: work, or the waits, misses and control beside it."""

    core: int
    pipe: str
    part: int
    label: str
    wait: bool
    first: int
    past: int
    start: int  # of its first row


@dataclass(frozen=True, slots=True, eq=False)
class PageRows:
    """Which rows of the trace stand where."""

    rows: NDArray[np.int64]  # of the trace
    place: NDArray[np.signedinteger]  # of a row of the trace, its row in the page; -1: not drawn
    segments: tuple[Segment, ...]
    cores: tuple[tuple[int, int, int], ...]  # core, first row, row behind the last

    def nearest(self, trace: Trace, row: int) -> int:
        """The page's row of a trace's row; of one that is not drawn (a set flag) what ran there last before it."""
        import numpy as np

        if not 0 <= row < len(self.place):
            return -1
        if self.place[row] >= 0:
            return int(self.place[row])
        columns = trace.instructions
        same = (columns.core == columns.core[row]) & (columns.pipe == columns.pipe[row]) & (self.place >= 0)
        candidates = np.flatnonzero(same)
        if not len(candidates):
            candidates = np.flatnonzero((columns.core == columns.core[row]) & (self.place >= 0))
        if not len(candidates):
            return -1
        before = candidates[candidates <= row]
        return int(self.place[before[-1] if len(before) else candidates[0]])


def page_rows(trace: Trace, cleaned: Clean) -> PageRows:
    """Waits and barriers are drawn under the work of their pipe; misses and control on lanes of their own."""
    import numpy as np

    columns = trace.instructions
    by_name = sorted(range(len(columns.cores)), key=lambda core: core_order(columns.cores[core]))
    order_of = {core: place for place, core in enumerate(by_name)}
    found: list[tuple[tuple[int, bool, int], tuple[int, str, int, str, bool], NDArray[np.int64]]] = []
    bounds = np.searchsorted(cleaned.lane, np.arange(len(cleaned.lanes) + 1))
    for number, lane in enumerate(cleaned.lanes):
        mine = cleaned.rows[bounds[number] : bounds[number + 1]]
        facts = (lane.core, pipe_name(lane.pipe), lane.part, lane.label, False)
        found.append(((order_of[lane.core], False, number), facts, mine))
    for key, mine, waits in _others(trace):
        pipe = pipe_name(key & 255)
        facts = (key >> 8, pipe, 0, pipe, waits)
        found.append(((order_of[key >> 8], True, key & 255), facts, mine))
    found.sort(key=lambda one: one[0])
    segments: list[Segment] = []
    cores: list[tuple[int, int, int]] = []
    past = 0
    for _, facts, mine in found:
        first, past = past, past + len(mine)
        segments.append(Segment(*facts, first, past, int(columns.start[mine[0]])))
        if cores and cores[-1][0] == facts[0]:
            cores[-1] = (facts[0], cores[-1][1], past)
        else:
            cores.append((facts[0], first, past))
    rows = np.concatenate([np.zeros(0, np.int64), *(mine for _, _, mine in found)])
    numbers: type[np.signedinteger] = np.int32 if len(columns) < 2**31 else np.int64
    place: NDArray[np.signedinteger] = np.full(len(columns), -1, numbers)
    place[rows] = np.arange(len(rows), dtype=place.dtype)
    return PageRows(rows, place, tuple(segments), tuple(cores))


def _others(trace: Trace) -> list[tuple[int, NDArray[np.int64], bool]]:
    """By core and pipe, what `clean` leaves out but sets: rows by start, and whether they are waits."""
    import numpy as np

    columns = trace.instructions
    kind = kinds(columns)
    beside = np.zeros(max(Kind) + 1, bool)
    beside[[Kind.WAIT, Kind.BARRIER, Kind.MISS, Kind.CONTROL]] = True
    rest = np.flatnonzero(beside[kind])
    found = []
    for key, places in grouped(columns.core[rest].astype(np.int64) * 256 + columns.pipe[rest]):
        mine = rest[places]
        mine = mine[np.argsort(columns.start[mine], kind="stable")]
        found.append((key, mine, bool(kind[mine[0]] in (Kind.WAIT, Kind.BARRIER))))
    return found


def load_strips(trace: Trace, rows: PageRows, buckets: int) -> tuple[list[dict[str, Any]], NDArray[np.uint8]]:
    """How busy each pipe of each core is over the whole run, in equal parts of its time, 0..255.

    What a person sees of many cores at once comes from here, so that no core needs to be read for it.
    """
    import numpy as np

    from insight_trace.recording.intervals import union

    columns = trace.instructions
    end = finish(columns)
    low = int(columns.start.min()) if len(columns) else 0
    high = max(int(end.max()), low + 1) if len(columns) else 1
    edges = np.linspace(low, high, buckets + 1)
    whole = np.floor(edges).astype(np.int64)
    found: list[dict[str, Any]] = []
    strips: list[NDArray[np.uint8]] = []
    work = [segment for segment in rows.segments if not segment.wait]
    for core, pipe in dict.fromkeys((segment.core, segment.pipe) for segment in work):
        lanes = [rows.rows[s.first : s.past] for s in work if (s.core, s.pipe) == (core, pipe)]
        mine = np.concatenate(lanes)
        spans = union(columns.start[mine], end[mine])
        # between two cycles the set grows evenly, so that short runs have even bars
        covered = spans.covered(whole) + (edges - whole) * spans.inside(whole, whole + 1)
        share = np.diff(covered) / np.diff(edges)
        # the least work is still seen
        level = np.where(share > 0, np.clip(np.rint(share * 255), 12, 255), 0)
        found.append({"core": core, "pipe": pipe, "busy": spans.length})
        strips.append(level.astype(np.uint8))
    return found, np.concatenate(strips) if strips else np.zeros(0, np.uint8)
