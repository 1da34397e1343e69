"""What each pipe of each core did with its time."""

from __future__ import annotations

from msgspec import Struct

from insight_trace.model import Instructions, Pipe, Trace
from insight_trace.recording.intervals import Spans, together, union
from insight_trace.recording.kinds import Kind, finish, kinds
from insight_trace.recording.pipes import ORDER, VECTOR_LANES, core_order, pipe_name, units
from insight_trace.recording.stream import grouped, numbered


class PipeStats(Struct, frozen=True):
    """One pipe of one core. busy + waiting + idle = the core's cycles.

    The 950's vector unit has a row of its own, VECTOR, which is busy while any of its lanes is; the lanes follow it.
    """

    core: str
    pipe: str
    instructions: int
    busy: int
    waiting: int  # on a flag or a barrier with nothing running
    idle: int


class CoreStats(Struct, frozen=True):
    """One core."""

    core: str
    begin: int
    end: int
    cycles: int
    instructions: int
    scalar_alone: int  # cycles in which only the scalar unit worked
    nothing: int  # cycles in which no pipe worked
    overlap: dict[str, int]  # "MTE2+VECTOR" -> cycles in which both worked


def prologues(instructions: Instructions) -> list[int]:
    """By core, cycles before any pipe but the scalar unit works: they are in no loop, and bound nothing."""
    import numpy as np

    never = np.iinfo(np.int64).max
    begin, work = (np.full(len(instructions.cores), never) for _ in range(2))
    works = kinds(instructions) == Kind.WORK
    for core, rows in grouped(instructions.core):
        begin[core] = instructions.start[rows].min()
        busy = rows[works[rows]]
        if len(busy):
            work[core] = instructions.start[busy].min()
    return [int(cycles) for cycles in np.where(work < never, work - begin, 0)]


def pipes(trace: Trace) -> tuple[PipeStats, ...]:
    """Busy, waiting and idle cycles of every pipe."""
    return Cores(trace).pipes


class Cores:
    """Per core and pipe: what ran when. The unions are the expensive part, so all figures share them."""

    def __init__(self, trace: Trace) -> None:
        import numpy as np

        instructions = trace.instructions
        self.kind = kinds(instructions)
        self.exclusive = np.zeros(len(instructions), np.int64)  # waiting with nothing else on the pipe
        self.end = finish(instructions)
        found: list[PipeStats] = []
        cores: list[CoreStats] = []
        self.rows = dict(grouped(instructions.core))  # by core
        for index in sorted(self.rows, key=lambda i: core_order(instructions.cores[i])):
            rows = self.rows[index]
            kinds_ = self.kind[rows]
            counted = (kinds_ != Kind.MISS) & (kinds_ != Kind.MARK)
            if not counted.all():
                rows, kinds_ = rows[counted], kinds_[counted]
            if not len(rows):
                continue
            # columns of one core: what is picked from them below stays in the processor's cache
            start, end = instructions.start[rows], self.end[rows]
            works_ = (kinds_ == Kind.WORK) | (kinds_ == Kind.SCALAR)
            holds_ = (kinds_ == Kind.WAIT) | (kinds_ == Kind.BARRIER)
            exclusive = np.zeros(len(rows), np.int64)
            begin, finish_ = int(start.min()), int(end.max())
            span = finish_ - begin
            busy: dict[int, Spans] = {}
            lane = instructions.pipe[rows]
            unit = units(lane)
            # counted, since np.unique would load masked arrays
            present = np.flatnonzero(np.bincount(np.concatenate((lane, unit)))).tolist()
            for pipe in sorted(present, key=lambda p: ORDER.get(p, 1000 + p)):
                mine = (unit if pipe == Pipe.VECTOR else lane) == pipe
                works, holds = np.flatnonzero(mine & works_), np.flatnonzero(mine & holds_)
                if not len(works) and not len(holds):
                    continue
                working = union(start[works], end[works])
                since, until = start[holds], end[holds]
                exclusive[holds] = until - since - working.inside(since, until)
                waiting = together(working, union(since, until)).length - working.length
                busy[pipe] = working
                found.append(
                    PipeStats(
                        instructions.cores[index],
                        pipe_name(pipe),
                        len(works),
                        working.length,
                        waiting,
                        span - working.length - waiting,
                    )
                )
            self.exclusive[rows] = exclusive
            cores.append(_core(instructions.cores[index], begin, finish_, len(rows), busy))
        begins, ends = [core.begin for core in cores], [core.end for core in cores]
        self.total = max(ends, default=0) - min(begins, default=0)
        self.pipes = tuple(found)
        self.cores = tuple(cores)


def _core(name: str, begin: int, end: int, count: int, busy: dict[int, Spans]) -> CoreStats:
    of_unit = {
        pipe: spans for pipe, spans in busy.items() if pipe not in VECTOR_LANES
    }  # VECTOR stands for them
    cycles = _together(list(of_unit.values()))
    bit = {pipe: 1 << place for place, pipe in enumerate(of_unit)}
    scalar = sum(bit[pipe] for pipe in of_unit if pipe in (Pipe.SCALAR, Pipe.SCALARLDST))
    drawn = [pipe for pipe in of_unit if pipe in ORDER and busy[pipe].length]
    overlap = {
        f"{pipe_name(first)}+{pipe_name(second)}": sum(
            spent for works, spent in cycles if works & bit[first] and works & bit[second]
        )
        for place, first in enumerate(drawn)
        for second in drawn[place + 1 :]
    }
    return CoreStats(
        core=name,
        begin=begin,
        end=end,
        cycles=end - begin,
        instructions=count,
        scalar_alone=sum(spent for works, spent in cycles if works & scalar and not works & ~scalar),
        nothing=end - begin - sum(spent for works, spent in cycles if works),
        overlap=overlap,
    )


def _together(sets: list[Spans]) -> list[tuple[int, int]]:
    """How long which of these sets held: a bit for each of them that does, and cycles. One sort serves all of them."""
    import numpy as np

    times = np.concatenate(
        [np.zeros(0, np.int64), *(each for spans in sets for each in (spans.begin, spans.end))]
    )
    changes = np.concatenate(
        [
            np.zeros(0, np.int64),
            *(
                np.full(len(spans.begin), sign << place)
                for place, spans in enumerate(sets)
                for sign in (1, -1)
            ),
        ]
    )
    order = np.argsort(times, kind="stable")
    works, spent = np.cumsum(changes[order])[:-1], np.diff(times[order])
    which, place = numbered(works)
    cycles = np.bincount(place, weights=spent, minlength=len(which))
    return list(zip(which.tolist(), cycles.astype(np.int64).tolist(), strict=True))
