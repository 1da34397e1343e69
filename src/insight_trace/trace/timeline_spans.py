"""The lanes above the pipes: the critical path, and tile ops with what each of them needs of others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from insight_trace.insight.added_events import Spans
from insight_trace.insight.lanes import CACHE_MISS, CRITICAL_PATH, SCALAR_MEMORY, TILE_OPS, pipe_colour
from insight_trace.model import Instructions, Operands, Pipe, Trace
from insight_trace.recording.frames import user_frames
from insight_trace.recording.operands import (
    MEMORIES,
    NONE,
    READS,
    WRITES,
    all_operands,
    instruction_of_operands,
)
from insight_trace.recording.stream import distinct
from insight_trace.trace.critical import CriticalPath

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_SPANS = 100_000  # of a lane; a trace that has more is not read at this height


def timeline_spans(trace: Trace, path: CriticalPath) -> tuple[Spans, ...]:
    """Of a recording; other traces do not say what issued an instruction."""
    if trace.instructions.operands is None:
        return ()
    return tuple(each for each in (_critical(trace, path), tile_ops(trace)) if each is not None)


def _critical(trace: Trace, path: CriticalPath) -> Spans | None:
    import numpy as np

    columns = trace.instructions
    shown = np.flatnonzero(path.end > path.begin)[:MOST_SPANS]
    if not len(shown):
        return None
    frames = user_frames(columns.stacks) or [""]
    rows = path.row[shown]
    names, args = [], []
    for row, idle in zip(rows.tolist(), path.idle[shown].tolist(), strict=True):
        pipe = Pipe(int(columns.pipe[row])).name
        name = columns.names[columns.name[row]]
        names.append(f"{pipe} idle" if idle else f"{pipe} {name}")
        args.append({"code": frames[int(columns.stack[row])], "pipe": pipe})
    core = columns.core[rows].astype(np.int64)
    return Spans(CRITICAL_PATH, "rail_response", core, path.begin[shown], path.end[shown], names, args)


def cache_misses(trace: Trace) -> Spans | None:
    """Scalar loads and stores that had to fetch their line of global memory: those that hit take no row."""
    import numpy as np

    columns, operands = trace.instructions, trace.instructions.operands
    if operands is None:
        return None
    named = np.array([name.startswith(SCALAR_MEMORY) for name in columns.names], bool)[columns.name]
    rows = np.flatnonzero(named & (operands.count > 0))
    footprint = operands.rows["footprint"][operands.first[rows]]
    rows = rows[operands.footprints["memory"][footprint] == MEMORIES.index("GM")][:MOST_SPANS]
    if not len(rows):
        return None
    frames = user_frames(columns.stacks) or [""]
    begin = columns.start[rows]
    args = [
        {"code": frames[stack], "missed": "data cache of the scalar unit", "took_cycles": took}
        for stack, took in zip(
            columns.stack[rows].tolist(), (columns.end[rows] - begin).tolist(), strict=True
        )
    ]
    names = [f"0x{address:x}" for address in operands.value[rows].tolist()]
    core = columns.core[rows].astype(np.int64)
    return Spans(CACHE_MISS, pipe_colour(CACHE_MISS), core, begin, begin + 1, names, args)


def tile_ops(trace: Trace) -> Spans | None:
    """A span for every tile op, from its first instruction's start to its last one's end."""
    import numpy as np

    columns, operands = trace.instructions, trace.instructions.operands
    if operands is None:
        return None
    rows = np.flatnonzero(operands.call != NONE)
    if not len(rows):
        return None
    calls, which = np.unique(operands.call[rows], return_inverse=True)
    calls = calls[:MOST_SPANS]
    kept = which < len(calls)
    rows, which = rows[kept], which[kept]
    begin = np.full(len(calls), np.iinfo(np.int64).max)
    end = np.zeros(len(calls), np.int64)
    np.minimum.at(begin, which, columns.start[rows])
    np.maximum.at(end, which, columns.end[rows])
    first = np.zeros(len(calls), np.int64)
    first[which[::-1]] = rows[::-1]
    count = np.bincount(which, minlength=len(calls))
    frames = user_frames(columns.stacks) or [""]
    names = [operands.ops[op] for op in operands.calls["op"][calls].tolist()]
    args: list[dict[str, Any]] = [
        {"code": frames[int(stack)], "instructions": number}
        for stack, number in zip(columns.stack[first].tolist(), count.tolist(), strict=True)
    ]
    core = columns.core[first].astype(np.int64)
    arrows = _needs(columns, operands, rows, which)
    return Spans(TILE_OPS, "thread_state_running", core, begin, end, names, args, "tile", arrows)


def _needs(
    columns: Instructions, operands: Operands, rows: NDArray[np.int64], which: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Pairs of spans: the last op that wrote a tile, and each that reads it after that."""
    import numpy as np

    span = np.full(len(columns), -1, np.int64)
    span[rows] = which
    places = all_operands(operands)
    owner = span[instruction_of_operands(operands)]
    tile = operands.rows["tile"][places].astype(np.int64)
    role = operands.footprints["role"][operands.rows["footprint"][places]]
    known = (owner >= 0) & (tile != NONE)
    core = columns.core[instruction_of_operands(operands)].astype(np.int64)
    # spans are in the order in which ops were issued; what an op reads, it reads before it writes
    tiles, cores = len(operands.tiles) + 1, len(columns.cores)
    key = ((owner * 4 + role) * cores + core) * tiles + tile
    written: dict[tuple[int, int], int] = {}
    found: set[tuple[int, int]] = set()
    for each in distinct(key[known]).tolist():
        rest, what = divmod(each, tiles)
        rest, on = divmod(rest, cores)
        op, how = divmod(rest, 4)
        if how & READS and (on, what) in written and written[on, what] != op:
            found.add((written[on, what], op))
        if how & WRITES:
            written[on, what] = op
    return np.array(sorted(found), np.int64).reshape(-1, 2)
