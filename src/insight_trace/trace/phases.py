"""Time by the ranges that a kernel's author marked: the critical path, by the range in which its instructions stand.

And how long the ranges themselves last, core by core.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from insight_trace.model import Trace
from insight_trace.recording.kinds import Kind, finish, kinds
from insight_trace.recording.user_marks import innermost, innermost_by_time, marked_ranges, timed_ranges

if TYPE_CHECKING:
    from insight_trace.trace.critical import CriticalPath

OUTSIDE = "outside"


class Phase(Struct, frozen=True):
    """One mark, all its ranges together, or what lies outside of all marks."""

    name: str  # Mark 0x1, …
    entered: int  # how often, on all cores
    instructions: int  # of it alone, inner marks not counted
    cycles: int  # of the critical path, inner marks not counted: phases add up to the total


class MarkTime(Struct, frozen=True):
    """One mark on one core, all its ranges together; inner marks count in outer ones here."""

    core: str
    name: str
    count: int
    cycles: int


def mark_times(trace: Trace) -> tuple[MarkTime, ...]:
    """By their first start; also of traces that say no more of a mark than when it lasted."""
    import numpy as np

    columns = trace.instructions
    marks = np.flatnonzero(kinds(columns) == Kind.MARK)
    if not len(marks):
        return ()
    length = (finish(columns) - columns.start)[marks]
    key = columns.core[marks].astype(np.int64) * 65536 + columns.name[marks]
    present, first, inverse, count = np.unique(
        key, return_index=True, return_inverse=True, return_counts=True
    )
    cycles = np.bincount(inverse, weights=length)
    return tuple(
        MarkTime(
            columns.cores[int(present[i]) >> 16],
            columns.names[int(present[i]) & 0xFFFF],
            int(count[i]),
            int(cycles[i]),
        )
        for i in np.argsort(columns.start[marks[first]], kind="stable").tolist()
    )


def phases(trace: Trace, path: CriticalPath) -> tuple[Phase, ...]:
    """By name, what lies outside last; nothing for a kernel without marks."""
    import numpy as np

    instructions = trace.instructions
    known = instructions.operands is not None
    ranges = marked_ranges(instructions) if known else timed_ranges(instructions)
    if not ranges:
        return ()
    names = sorted({each.name for each in ranges})
    place = np.array([names.index(each.name) for each in ranges] + [len(names)])
    within = innermost(instructions, ranges) if known else innermost_by_time(instructions, ranges)
    of_row = place[within]  # -1 is the last: outside
    counts = np.bincount(of_row, minlength=len(names) + 1)
    cycles = np.bincount(of_row[path.row], weights=path.end - path.begin, minlength=len(names) + 1)
    entered = [sum(each.name == name for each in ranges) for name in names]
    return tuple(
        Phase(name, count, int(counts[index]), int(cycles[index]))
        for index, (name, count) in enumerate(zip([*names, OUTSIDE], [*entered, 0], strict=True))
    )
