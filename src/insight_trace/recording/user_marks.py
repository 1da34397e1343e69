"""Marks that a kernel's author set: ranges (TRACE_START to TRACE_STOP) and moments (MarkStamp), by row of a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from insight_trace.model import Instructions, Pipe

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# A NOP of the scalar unit whose value says what it marks (device.hpp): the top four bits, then a number.
NOP = "NOP"
_STAMP, _START, _STOP = 0x4, 0x8, 0xC
STOP = "TRACE_STOP"
_UNSTOPPED = "TRACE_START"


class Range(Struct, frozen=True):
    """From the row of its start to that of its stop, on one core; `name` as the vendor's simulator shows it."""

    name: str
    start: int
    stop: int


def marked_ranges(instructions: Instructions) -> list[Range]:
    """Ranges by their start. Ranges of one number nest; a start without a stop, or the reverse, is no range."""
    import numpy as np

    operands = instructions.operands
    if operands is None:
        return []
    codes = [index for index, name in enumerate(instructions.names) if name in (NOP, STOP) or _ranged(name)]
    rows = np.flatnonzero(np.isin(instructions.name, codes) & (operands.value >> np.uint64(28) >= _STAMP))
    opened: dict[tuple[int, int], list[int]] = {}
    found = []
    for row, core, value in zip(
        rows.tolist(), instructions.core[rows].tolist(), operands.value[rows].tolist(), strict=True
    ):
        kind, number = value >> 28, value & 0xFFFFFFF
        if kind == _START:
            opened.setdefault((core, number), []).append(row)
        elif kind == _STOP and opened.get((core, number)):
            found.append(Range(f"Mark 0x{number:x}", opened[core, number].pop(), row))
    return sorted(found, key=lambda each: each.start)


def _ranged(name: str) -> bool:
    return name.startswith("Mark 0x") or name == _UNSTOPPED


def with_marks(instructions: Instructions) -> Instructions:
    """The stream with its marks on their lane: a range lasts from the first start to the last end of what is in it."""
    import numpy as np

    operands = instructions.operands
    if operands is None or NOP not in instructions.names:
        return instructions
    nop = instructions.names.index(NOP)
    rows = np.flatnonzero((instructions.name == nop) & (operands.value >> np.uint64(28) >= _STAMP))
    if not len(rows):
        return instructions
    names, stacks = list(instructions.names), list(instructions.stacks)
    columns: dict[str, Any] = {
        key: np.array(getattr(instructions, key)) for key in ("pipe", "name", "stack", "start", "end")
    }
    times = np.array(operands.times)

    def named(row: int, name: str) -> None:
        if name not in names:
            names.append(name)
        columns["name"][row] = names.index(name)

    for row in rows.tolist():
        value = int(operands.value[row])
        if value >> 28 == _STAMP:
            named(row, f"MarkStamp{value & 0xFFFF}")
            columns["pipe"][row] = Pipe.USERMARK
        else:
            named(row, STOP if value >> 28 == _STOP else _UNSTOPPED)
    for each in marked_ranges(instructions):
        inside = each.start + 1 + np.flatnonzero(_work(instructions, each))
        named(each.start, each.name)
        columns["pipe"][each.start] = Pipe.USERMARK
        ends = (instructions.stack[each.start], instructions.stack[each.stop])
        stack = "\n\n".join(stacks[index] for index in ends)
        if stack not in stacks:
            stacks.append(stack)
        columns["stack"][each.start] = stacks.index(stack)
        if len(inside):
            times[each.start, 1], times[each.start, 2] = times[inside, 1].min(), times[inside, 2].max()
        else:
            times[each.start, 2] = times[each.stop, 2]
        columns["start"][each.start] = (times[each.start, 1] + 500) // 1000
        columns["end"][each.start] = (times[each.start, 2] + 500) // 1000
    return replace(
        instructions,
        names=tuple(names),
        stacks=tuple(stacks),
        operands=replace(operands, times=times),
        **columns,
    )


def _work(instructions: Instructions, within: Range) -> NDArray[np.bool_]:
    """Rows between the ends of a range that its core ran, other marks not counted."""
    import numpy as np

    between = slice(within.start + 1, within.stop)
    names = np.array([name in (NOP, STOP) or _ranged(name) for name in instructions.names], bool)
    chosen: NDArray[np.bool_] = (instructions.core[between] == instructions.core[within.start]) & ~names[
        instructions.name[between]
    ]
    return chosen


def innermost(instructions: Instructions, ranges: list[Range]) -> NDArray[np.int32]:
    """For every row the place in `ranges` of the innermost one that it lies in, by program order; -1 for none."""
    import numpy as np

    found = np.full(len(instructions), -1, np.int32)
    for place, each in enumerate(ranges):  # by their start, so that inner ones come later
        between = slice(each.start, each.stop + 1)
        found[between][instructions.core[between] == instructions.core[each.start]] = place
    return found


def timed_ranges(instructions: Instructions) -> list[Range]:
    """Ranges of a timeline that others wrote, outer ones first: it has a mark's time, and not what stands in it."""
    import numpy as np

    codes = [index for index, name in enumerate(instructions.names) if name.startswith("Mark 0x")]
    rows = np.flatnonzero((instructions.pipe == Pipe.USERMARK) & np.isin(instructions.name, codes))
    rows = rows[np.lexsort((-instructions.end[rows], instructions.start[rows]))]
    names = instructions.names
    return [Range(names[instructions.name[row]], row, row) for row in rows.tolist()]


def innermost_by_time(instructions: Instructions, ranges: list[Range]) -> NDArray[np.int32]:
    """The same as `innermost` for these: a row lies in a range of its core in which it starts."""
    import numpy as np

    found = np.full(len(instructions), -1, np.int32)
    order = np.lexsort((instructions.start, instructions.core))
    first = np.searchsorted(instructions.core[order], np.arange(len(instructions.cores) + 1))
    start = instructions.start[order]
    for place, each in enumerate(ranges):
        core = int(instructions.core[each.start])
        mine = start[first[core] : first[core + 1]]
        times = instructions.start[each.start], instructions.end[each.start]
        begin, end = (first[core] + np.searchsorted(mine, time) for time in times)
        found[order[begin:end]] = place
    return found
