"""What each pipe of each core did with its time."""

from __future__ import annotations

from msgspec import Struct

from insight_trace.model import Instructions, Pipe, Trace
from insight_trace.recording.intervals import Spans, together, union
from insight_trace.recording.kinds import Kind, finish, kinds
from insight_trace.recording.pipes import ORDER, VECTOR_LANES, core_order, pipe_name, units
from insight_trace.recording.stream import grouped


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
    np.minimum.at(begin, instructions.core, instructions.start)
    np.minimum.at(work, instructions.core[works], instructions.start[works])
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
        end = finish(instructions)
        found: list[PipeStats] = []
        cores: list[CoreStats] = []
        counted = (self.kind != Kind.MISS) & (self.kind != Kind.MARK)
        of_core = dict(grouped(instructions.core))
        for index in sorted(of_core, key=lambda i: core_order(instructions.cores[i])):
            rows = of_core.pop(index)
            rows = rows[counted[rows]]
            if not len(rows):
                continue
            begin, finish_ = int(instructions.start[rows].min()), int(end[rows].max())
            span = finish_ - begin
            busy: dict[int, Spans] = {}
            lane = instructions.pipe[rows]
            unit = units(lane)
            # counted, since np.unique would load masked arrays
            present = np.flatnonzero(np.bincount(np.concatenate((lane, unit)))).tolist()
            for pipe in sorted(present, key=lambda p: ORDER.get(p, 1000 + p)):
                mine = rows[(unit if pipe == Pipe.VECTOR else lane) == pipe]
                kind = self.kind[mine]
                works = mine[(kind == Kind.WORK) | (kind == Kind.SCALAR)]
                holds = mine[(kind == Kind.WAIT) | (kind == Kind.BARRIER)]
                working = union(instructions.start[works], end[works])
                covered = working.inside(instructions.start[holds], end[holds])
                self.exclusive[holds] = end[holds] - instructions.start[holds] - covered
                either = together(working, union(instructions.start[holds], end[holds]))
                waiting = either.length - working.length
                if not len(works) and not len(holds):
                    continue
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
            cores.append(_core(instructions.cores[index], begin, finish_, len(rows), busy))
        begins, ends = [core.begin for core in cores], [core.end for core in cores]
        self.total = max(ends, default=0) - min(begins, default=0)
        self.pipes = tuple(found)
        self.cores = tuple(cores)


def _core(name: str, begin: int, end: int, count: int, busy: dict[int, Spans]) -> CoreStats:
    import numpy as np

    nobody = union(np.zeros(0, np.int64), np.zeros(0, np.int64))
    scalar, others = nobody, nobody
    for pipe, spans in busy.items():
        if pipe in (Pipe.SCALAR, Pipe.SCALARLDST):
            scalar = together(scalar, spans)
        elif pipe in VECTOR_LANES:
            continue  # VECTOR stands for them
        else:
            others = together(others, spans)
    drawn = [pipe for pipe in busy if pipe in ORDER and pipe not in VECTOR_LANES and busy[pipe].length]
    overlap = {
        f"{pipe_name(first)}+{pipe_name(second)}": busy[first].overlap(busy[second])
        for place, first in enumerate(drawn)
        for second in drawn[place + 1 :]
    }
    return CoreStats(
        core=name,
        begin=begin,
        end=end,
        cycles=end - begin,
        instructions=count,
        scalar_alone=scalar.length - scalar.overlap(others),
        nothing=end - begin - together(scalar, others).length,
        overlap=overlap,
    )
