"""The numbers that say what a kernel did with its time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from insight_trace.model import Instructions, Pipe, Trace
from insight_trace.trace.critical import CriticalPath, critical_path
from insight_trace.trace.flags import flag_key, partners
from insight_trace.trace.intervals import Spans, together, union
from insight_trace.trace.kinds import Kind, finish, kinds
from insight_trace.trace.lanes import ORDER, VECTOR_LANES, core_order, pipe_name, units
from insight_trace.trace.roofs import Roofs, roofs_of
from insight_trace.trace.source import line_text, user_frames
from insight_trace.trace.work import Arithmetic, Traffic, arithmetic, traffic

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

HOTTEST = 20


@dataclass(frozen=True, slots=True)
class PipeStats:
    """One pipe of one core. busy + waiting + idle = the core's cycles.

    The 950's vector unit has a row of its own, VECTOR, which is busy while any of its lanes is; the lanes follow it.
    """

    core: str
    pipe: str
    instructions: int
    busy: int
    waiting: int  # on a flag or a barrier with nothing running
    idle: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Time that a pipe spent on one flag at one line, with nothing running on it meanwhile."""

    core: str
    pipe: str
    waits_for: str  # the pipe that raises the flag
    event: str
    frame: str
    cycles: int
    count: int
    last: bool  # no work starts on the core after it: a kernel waits for its own end


@dataclass(frozen=True, slots=True)
class Hot:
    """An instruction or a source line, and what it cost."""

    what: str  # mnemonic, or the line's text
    pipe: str
    frame: str  # file:line
    cycles: int
    waiting: int
    count: int
    conflicts: int


@dataclass(frozen=True, slots=True)
class CoreStats:
    """One core."""

    core: str
    begin: int
    end: int
    cycles: int
    instructions: int
    scalar_alone: int  # cycles in which only the scalar unit worked
    nothing: int  # cycles in which no pipe worked
    overlap: dict[str, int]  # "MTE2+VECTOR" -> cycles in which both worked


@dataclass(frozen=True, slots=True)
class PathShare:
    """What the critical path is made of."""

    pipe: str
    doing: str  # work, wait or idle
    cycles: int


@dataclass(frozen=True, slots=True, eq=False)
class Stats:
    """Everything `insight-trace stats` knows about one trace."""

    soc_version: str
    mhz: float
    cycles: int
    micros: float
    instructions: int
    cores: tuple[CoreStats, ...]
    slowest: str  # the core that ends last: advice is about it
    pipes: tuple[PipeStats, ...]
    waits: tuple[Wait, ...]  # longest first
    hot_instructions: tuple[Hot, ...]
    hot_lines: tuple[Hot, ...]
    traffic: tuple[Traffic, ...]
    arithmetic: tuple[Arithmetic, ...]
    critical: tuple[PathShare, ...]
    path: CriticalPath
    roofs: Roofs
    conflict_cycles: int
    cache_misses: int

    def pipe(self, core: str, pipe: str) -> PipeStats | None:
        return next((item for item in self.pipes if (item.core, item.pipe) == (core, pipe)), None)


def pipes(trace: Trace) -> tuple[PipeStats, ...]:
    """Busy, waiting and idle cycles of every pipe."""
    return _Cores(trace).pipes


def stats(trace: Trace) -> Stats:
    """All of it; linear in the number of instructions but for the sorting."""
    import numpy as np

    cores = _Cores(trace)
    instructions, kind = trace.instructions, cores.kind
    path = critical_path(trace)
    roofs = roofs_of(trace.soc_version or _chip_by_lanes(trace))
    moved = traffic(instructions, kind, trace.mhz, roofs)
    total = cores.total
    slowest = max(cores.cores, key=lambda core: (core.end, core.cycles)).core if cores.cores else ""
    by_instruction, by_line = _hottest(trace, kind, cores.exclusive)
    conflicts = np.maximum(0, instructions.read_conflict).astype(np.int64)
    conflicts += np.maximum(0, instructions.write_conflict)
    return Stats(
        soc_version=trace.soc_version,
        mhz=trace.mhz,
        cycles=total,
        micros=total / trace.mhz,
        instructions=int((kind != Kind.MISS).sum()),
        cores=cores.cores,
        slowest=slowest,
        pipes=cores.pipes,
        waits=_waits(instructions, kind, cores.exclusive),
        hot_instructions=by_instruction,
        hot_lines=by_line,
        traffic=moved,
        arithmetic=arithmetic(instructions, kind, moved, roofs, trace.mhz, total),
        critical=_path_shares(instructions, kind, path),
        path=path,
        roofs=roofs,
        conflict_cycles=int(conflicts.sum()),
        cache_misses=int((kind == Kind.MISS).sum()),
    )


def _chip_by_lanes(trace: Trace) -> str:
    """An exported directory does not name its chip; the lanes of the 950 and its clock do."""
    import numpy as np

    if not np.isin(trace.instructions.pipe, VECTOR_LANES).any():
        return ""
    return "Ascend950PR_9599" if trace.mhz >= 1800 else "Ascend950"


class _Cores:
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
        everything = np.flatnonzero(counted)
        self.total = (
            int(end[everything].max() - instructions.start[everything].min()) if len(everything) else 0
        )
        for index in sorted(range(len(instructions.cores)), key=lambda i: core_order(instructions.cores[i])):
            rows = np.flatnonzero((instructions.core == index) & counted)
            if not len(rows):
                continue
            begin, finish_ = int(instructions.start[rows].min()), int(end[rows].max())
            span = finish_ - begin
            busy: dict[int, Spans] = {}
            lane, unit = instructions.pipe[rows], units(instructions.pipe[rows])
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


def _waits(
    instructions: Instructions, kind: NDArray[np.uint8], exclusive: NDArray[np.int64]
) -> tuple[Wait, ...]:
    """Waits of one flag at one line together, longest first."""
    import numpy as np

    rows = np.flatnonzero(((kind == Kind.WAIT) | (kind == Kind.BARRIER)) & (exclusive > 0))
    frames = user_frames(instructions.stacks)
    set_of = partners(instructions, kind)
    sums: dict[tuple[int, int, str, int, bool], list[int]] = {}
    last_start = np.full(max(1, len(instructions.cores)), np.iinfo(np.int64).min)
    work = kind == Kind.WORK
    np.maximum.at(last_start, instructions.core[work], instructions.start[work])
    last = finish(instructions)[rows] > last_start[instructions.core[rows]]
    for core, pipe, row, stack, cycles, ends in zip(
        instructions.core[rows].tolist(),
        instructions.pipe[rows].tolist(),
        rows.tolist(),
        instructions.stack[rows].tolist(),
        exclusive[rows].tolist(),
        last.tolist(),
        strict=True,
    ):
        key = (core, pipe, instructions.detail[row], stack, ends)
        entry = sums.setdefault(key, [0, 0, row])
        entry[0] += cycles
        entry[1] += 1
    result = []
    for (core, pipe, detail, stack, ends), (cycles, count, row) in sums.items():
        key_ = flag_key(detail)
        known = len(key_) == 3
        partner = int(set_of[row])
        if kind[row] == Kind.BARRIER:
            source = "all before the barrier"
        elif partner >= 0:
            source = pipe_name(int(instructions.pipe[partner]))
            if instructions.core[partner] != core:
                source = f"{source} of {instructions.cores[instructions.core[partner]]}"
        else:
            source = key_[0] if known else "?"
        result.append(
            Wait(
                core=instructions.cores[core],
                pipe=pipe_name(pipe),
                waits_for=source,
                event=key_[2] if known else "",
                frame=frames[stack] if frames else "",
                cycles=cycles,
                count=count,
                last=ends,
            )
        )
    result.sort(key=lambda wait: (-wait.cycles, wait.core, wait.pipe, wait.event, wait.frame))
    return tuple(result)


def _hottest(
    trace: Trace, kind: NDArray[np.uint8], exclusive: NDArray[np.int64]
) -> tuple[tuple[Hot, ...], tuple[Hot, ...]]:
    """The instructions and the lines that cost most, over all cores."""
    import numpy as np

    instructions = trace.instructions
    rows = np.flatnonzero((kind != Kind.MISS) & (kind != Kind.MARK))
    if not len(rows):
        return (), ()
    texts = user_frames(instructions.stacks) or [""]
    frames = list(dict.fromkeys(texts))
    place = {frame: index for index, frame in enumerate(frames)}
    line = np.array([place[text] for text in texts], np.int64)[instructions.stack[rows]]
    waits = (kind[rows] == Kind.WAIT) | (kind[rows] == Kind.BARRIER)
    work = np.where(
        waits | (kind[rows] == Kind.SET), 0, finish(instructions)[rows] - instructions.start[rows]
    )
    conflicts = np.maximum(0, instructions.read_conflict[rows]) + np.maximum(
        0, instructions.write_conflict[rows]
    )
    others = (exclusive[rows], conflicts)

    def grouped(key: NDArray[np.int64], spent: NDArray[np.int64]) -> list[tuple[int, list[int], int]]:
        _, first, inverse, count = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
        columns = (spent, *others)
        sums = [np.bincount(inverse, weights=column, minlength=len(first)) for column in columns]
        order = np.lexsort((first, -sums[1], -sums[0]))[:HOTTEST]
        return [(int(rows[first[i]]), [int(s[i]) for s in sums], int(count[i])) for i in order]

    by_instruction = (line * 65536 + instructions.name[rows]) * 256 + instructions.pipe[rows]
    hot_instructions = [
        Hot(
            instructions.names[instructions.name[row]],
            pipe_name(int(instructions.pipe[row])),
            texts[instructions.stack[row]],
            sums[0],
            sums[1],
            count,
            sums[2],
        )
        for row, sums, count in grouped(by_instruction, work)
    ]
    hot_lines = [
        Hot(
            line_text(trace.sources, texts[instructions.stack[row]]),
            "",
            texts[instructions.stack[row]],
            sums[0],
            sums[1],
            count,
            sums[2],
        )
        for row, sums, count in grouped(line, _once(instructions, rows, line, work))
        if texts[instructions.stack[row]]
    ]
    return tuple(hot_instructions), tuple(hot_lines)


def _once(
    instructions: Instructions, rows: NDArray[np.int64], line: NDArray[np.int64], work: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The same work, but time in which a line runs on several lanes of the vector unit counted once."""
    import numpy as np

    lanes = np.flatnonzero(np.isin(instructions.pipe[rows], VECTOR_LANES))
    if not len(lanes):
        return work
    mine = rows[lanes]
    place = line[lanes] * (int(instructions.core.max()) + 1) + instructions.core[mine]
    start, end = instructions.start[mine], finish(instructions)[mine]
    order = np.lexsort((end, start, place))
    # one axis for all: every line and core begins behind the end of the one before
    _, dense = np.unique(place[order], return_inverse=True)
    shift = dense * (int(end.max()) - int(start.min()) + 1)
    begin, until = start[order] + shift, end[order] + shift
    latest = np.maximum.accumulate(until)
    seen = np.r_[begin[0], latest[:-1]]
    spent = work.copy()
    spent[lanes[order]] = np.maximum(0, until - np.maximum(begin, seen))
    return spent


def _path_shares(
    instructions: Instructions, kind: NDArray[np.uint8], path: CriticalPath
) -> tuple[PathShare, ...]:
    import numpy as np

    if not len(path.row):
        return ()
    waits = np.isin(kind[path.row], (Kind.SET, Kind.WAIT, Kind.BARRIER))
    doing = np.where(path.idle, 2, np.where(waits, 1, 0))
    key = units(instructions.pipe[path.row]).astype(np.int64) * 4 + doing
    present, inverse = np.unique(key, return_inverse=True)
    cycles = np.bincount(inverse, weights=path.end - path.begin)
    shares = [
        PathShare(pipe_name(k >> 2), ("work", "wait", "idle")[k & 3], int(c))
        for k, c in zip(present.tolist(), cycles, strict=True)
    ]
    return tuple(sorted(shares, key=lambda share: (-share.cycles, share.pipe, share.doing)))
