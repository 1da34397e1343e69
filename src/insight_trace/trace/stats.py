"""The numbers that say what a kernel did with its time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct, field

from insight_trace.chips import Roofs, roofs_of
from insight_trace.model import Confidence, Instructions, Launch, MemoryUse, Trace
from insight_trace.recording.busy import Cores, CoreStats, PipeStats
from insight_trace.recording.flag_pairs import numbered_flags, partners
from insight_trace.recording.frames import line_text, python_frames, user_frames
from insight_trace.recording.intervals import added
from insight_trace.recording.kinds import Kind, finish, kinds
from insight_trace.recording.pipes import VECTOR_LANES, named_pipe, pipe_name, units
from insight_trace.trace.critical import CriticalPath, critical_path
from insight_trace.trace.memory_paths import CorePath, memory_paths
from insight_trace.trace.phases import Phase, phases
from insight_trace.trace.work import Arithmetic, Traffic, arithmetic, traffic

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

HOTTEST = 20


class Wait(Struct, frozen=True):
    """Time that a pipe spent on one flag at one line, with nothing running on it meanwhile."""

    core: str
    pipe: str
    waits_for: str  # the pipe that raises the flag
    event: str
    frame: str
    cycles: int
    count: int
    last: bool  # no work starts on the core after it: a kernel waits for its own end


class Hot(Struct, frozen=True):
    """An instruction or a source line, and what it cost."""

    what: str  # mnemonic, or the line's text
    pipe: str
    frame: str  # file:line
    cycles: int
    waiting: int
    count: int
    conflicts: int


class PathShare(Struct, frozen=True):
    """What the critical path is made of."""

    pipe: str
    doing: str  # work, wait or idle
    cycles: int


class Stats(Struct, frozen=True, eq=False):
    """Everything `insight-trace stats` knows about one trace."""

    soc_version: str
    mhz: float
    cycles: int
    micros: float
    instructions: int
    cores: tuple[CoreStats, ...]
    slowest: str  # the core that ends last
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
    python: Mapping[str, str] = field(default_factory=dict)  # kernel line -> line of the user's Python
    # what only a simulation of ours knows
    memory: MemoryUse | None = None
    launch: Launch | None = None
    confidence: Confidence | None = None
    paths: tuple[CorePath, ...] = ()  # by core and path
    phases: tuple[Phase, ...] = ()  # by mark of the kernel's author

    def pipe(self, core: str, pipe: str) -> PipeStats | None:
        return next((item for item in self.pipes if (item.core, item.pipe) == (core, pipe)), None)


def stats(trace: Trace) -> Stats:
    """All of it; linear in the number of instructions but for the sorting."""
    import numpy as np

    cores = Cores(trace)
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
        critical=path_shares(trace, path),
        path=path,
        roofs=roofs,
        conflict_cycles=int(conflicts.sum()),
        cache_misses=int((kind == Kind.MISS).sum()),
        python=python_frames(instructions.stacks),
        memory=trace.memory,
        launch=trace.launch,
        confidence=trace.confidence,
        paths=memory_paths(instructions, kind),
        phases=phases(trace, path),
    )


def _chip_by_lanes(trace: Trace) -> str:
    """An exported directory does not name its chip; the lanes of the 950 and its clock do."""
    import numpy as np

    if not np.isin(trace.instructions.pipe, VECTOR_LANES).any():
        return ""
    return "Ascend950PR_9599" if trace.mhz >= 1800 else "Ascend950"


def _waits(
    instructions: Instructions, kind: NDArray[np.uint8], exclusive: NDArray[np.int64]
) -> tuple[Wait, ...]:
    """Waits of one flag at one line together, longest first."""
    import numpy as np

    rows = np.flatnonzero(((kind == Kind.WAIT) | (kind == Kind.BARRIER)) & (exclusive > 0))
    frames = user_frames(instructions.stacks)
    set_of = partners(instructions, kind)
    last_start = np.full(max(1, len(instructions.cores)), np.iinfo(np.int64).min)
    work = kind == Kind.WORK
    np.maximum.at(last_start, instructions.core[work], instructions.start[work])
    last = finish(instructions)[rows] > last_start[instructions.core[rows]]
    flags, named = numbered_flags(instructions, rows)
    columns = (instructions.core[rows], instructions.pipe[rows], named, instructions.stack[rows], last)
    order = np.lexsort(columns)  # rows of a group stay in their order
    changes = np.zeros(len(rows), bool)
    changes[:1] = True
    for column in columns:
        changes[1:] |= column[order][1:] != column[order][:-1]
    begins = np.flatnonzero(changes)
    # the first of a group may have found its flag raised: one that waited for a set speaks for it
    place = np.arange(len(rows)) + np.where(set_of[rows] < 0, len(rows), 0)
    spoken = np.minimum.reduceat(place[order], begins) % max(1, len(rows)) if len(rows) else begins
    cycles_of = np.add.reduceat(exclusive[rows][order], begins) if len(rows) else begins
    counts = np.diff(np.append(begins, len(rows)))
    groups = sorted(
        zip(order[begins].tolist(), spoken.tolist(), cycles_of.tolist(), counts.tolist(), strict=True)
    )
    result = []
    for _, at, cycles, count in groups:  # in the order in which they first come
        row = int(rows[at])
        core, pipe, flag, stack, ends = (column[at].item() for column in columns)
        flag, partner = flags[flag], int(set_of[row])
        if kind[row] == Kind.BARRIER:
            source = "all before the barrier"
        elif partner >= 0:
            source = pipe_name(int(instructions.pipe[partner]))
            if instructions.core[partner] != core:
                source = f"{source} of {instructions.cores[instructions.core[partner]]}"
        else:
            source = named_pipe(flag.source) if flag.known else "?"
        result.append(
            Wait(
                core=instructions.cores[core],
                pipe=pipe_name(pipe),
                waits_for=source,
                event=flag.event if flag.known else "",
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
        # keys are small numbers: counted, not sorted
        count = np.bincount(key)
        first = np.zeros(len(count), np.int64)
        first[key[::-1]] = np.arange(len(key))[::-1]
        sums = [np.bincount(key, weights=column, minlength=len(count)) for column in (spent, *others)]
        present = np.flatnonzero(count)
        order = present[np.lexsort((first[present], -sums[1][present], -sums[0][present]))[:HOTTEST]]
        return [(int(rows[first[i]]), [int(s[i]) for s in sums], int(count[i])) for i in order]

    by_instruction = (line * len(instructions.names) + instructions.name[rows]) * 256 + instructions.pipe[
        rows
    ]
    if (
        int(by_instruction.max()) > 8 * len(rows) + 65536
    ):  # a foreign trace with as many lines as instructions
        by_instruction = np.unique(by_instruction, return_inverse=True)[1]
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
    spent = work.copy()
    spent[lanes[order]] = added(place[order], start[order], end[order])
    return spent


def path_shares(trace: Trace, path: CriticalPath) -> tuple[PathShare, ...]:
    """What the critical path is made of, the largest part first."""
    import numpy as np

    instructions, kind = trace.instructions, kinds(trace.instructions)

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
