"""The numbers that say what a kernel did with its time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from insight_trace.chips import Roofs, roofs_of
from insight_trace.model import Confidence, Instructions, Launch, MemoryUse, Trace
from insight_trace.recording.busy import Cores, CoreStats, PipeStats
from insight_trace.recording.flag_pairs import numbered_flags, partners
from insight_trace.recording.frames import line_text, python_frames, user_frames
from insight_trace.recording.intervals import added
from insight_trace.recording.kinds import Kind, kinds
from insight_trace.recording.pipes import VECTOR_LANES, named_pipe, pipe_name, units
from insight_trace.recording.stream import PIECE, first_places, numbered
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
    partner = partners(instructions, kind)
    path = critical_path(trace, cores, partner)
    roofs = roofs_of(trace.soc_version or _chip_by_lanes(trace))
    moved = traffic(instructions, kind, trace.mhz, roofs)
    total = cores.total
    slowest = max(cores.cores, key=lambda core: (core.end, core.cycles)).core if cores.cores else ""
    by_instruction, by_line = _hottest(trace, cores)
    conflicts = sum(
        int(np.maximum(0, column).sum(dtype=np.int64))
        for column in (instructions.read_conflict, instructions.write_conflict)
    )
    return Stats(
        soc_version=trace.soc_version,
        mhz=trace.mhz,
        cycles=total,
        micros=total / trace.mhz,
        instructions=int((kind != Kind.MISS).sum()),
        cores=cores.cores,
        slowest=slowest,
        pipes=cores.pipes,
        waits=_waits(instructions, cores, partner),
        hot_instructions=by_instruction,
        hot_lines=by_line,
        traffic=moved,
        arithmetic=arithmetic(instructions, kind, moved, roofs, trace.mhz, total),
        critical=path_shares(trace, path),
        path=path,
        roofs=roofs,
        conflict_cycles=conflicts,
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


def _waits(instructions: Instructions, cores: Cores, set_of: NDArray[np.int64]) -> tuple[Wait, ...]:
    """Waits of one flag at one line together, longest first."""
    import numpy as np

    kind, exclusive = cores.kind, cores.exclusive
    rows = np.flatnonzero(exclusive)
    frames = user_frames(instructions.stacks)
    last_start = np.full(max(1, len(instructions.cores)), np.iinfo(np.int64).min)
    for core, mine in cores.rows.items():
        work = mine[kind[mine] == Kind.WORK]
        if len(work):
            last_start[core] = instructions.start[work].max()
    last = cores.end[rows] > last_start[instructions.core[rows]]
    flags, named = numbered_flags(instructions, rows)
    columns: tuple[NDArray[Any], ...] = (
        instructions.core[rows], instructions.pipe[rows], named, instructions.stack[rows], last
    )  # fmt: skip
    key = np.zeros(len(rows), np.int64)
    for column, size in zip(
        columns, (len(instructions.cores), 256, len(flags), len(instructions.stacks), 2), strict=True
    ):
        key = numbered(key * max(1, size) + column)[1]
    count = int(key.max()) + 1 if len(key) else 0
    first = first_places(key, count)
    # the first of a group may have found its flag raised: one that waited for a set speaks for it
    raised = np.flatnonzero(set_of[rows] >= 0)
    places = np.append(raised, len(rows))[first_places(key[raised], count)]
    spoken = np.where(places < len(rows), places, first)
    cycles_of = np.bincount(key, weights=exclusive[rows], minlength=count).astype(np.int64)
    counts = np.bincount(key, minlength=count)
    groups = sorted(zip(first.tolist(), spoken.tolist(), cycles_of.tolist(), counts.tolist(), strict=True))
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


def _hottest(trace: Trace, cores: Cores) -> tuple[tuple[Hot, ...], tuple[Hot, ...]]:
    """The instructions and the lines that cost most, over all cores."""
    import numpy as np

    instructions, kind = trace.instructions, cores.kind
    if not len(instructions):
        return (), ()
    texts = user_frames(instructions.stacks) or [""]
    frames = list(dict.fromkeys(texts))
    place = {frame: index for index, frame in enumerate(frames)}
    line_of = np.array([place[text] for text in texts], np.int64)
    # what is counted together: lines, and instructions by line, name and pipe
    wide = len(frames) * len(instructions.names) * 256
    dense = wide > 8 * len(instructions) + 65536  # a foreign trace with as many lines as instructions
    every = _instruction_keys(instructions, line_of, slice(None)) if dense else None
    keys = numbered(every)[1] if every is not None else None
    by_instruction = _Sums(wide if keys is None else int(keys.max()) + 1)
    by_line = _Sums(len(frames))
    once = _once(instructions, line_of, cores)
    for begin in range(0, len(instructions), PIECE):
        here = slice(begin, begin + PIECE)
        counted = (kind[here] != Kind.MISS) & (kind[here] != Kind.MARK)
        works = counted & (kind[here] != Kind.WAIT) & (kind[here] != Kind.BARRIER) & (kind[here] != Kind.SET)
        work = np.where(works, cores.end[here] - instructions.start[here], 0)
        conflicts = np.maximum(0, instructions.read_conflict[here])
        conflicts = conflicts + np.maximum(0, instructions.write_conflict[here])
        others = (cores.exclusive[here], conflicts)
        key = _instruction_keys(instructions, line_of, here) if keys is None else keys[here]
        chosen = None if counted.all() else np.flatnonzero(counted)
        by_instruction.add(begin, key, (work, *others), chosen)
        by_line.add(
            begin, line_of[instructions.stack[here]], (work if once is None else once[here], *others), chosen
        )
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
        for row, sums, count in by_instruction.most()
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
        for row, sums, count in by_line.most()
        if texts[instructions.stack[row]]
    ]
    return tuple(hot_instructions), tuple(hot_lines)


def _instruction_keys(
    instructions: Instructions, line_of: NDArray[np.int64], here: slice
) -> NDArray[np.int64]:
    key: NDArray[np.int64] = line_of[instructions.stack[here]] * len(instructions.names)
    key += instructions.name[here]
    key *= 256
    key += instructions.pipe[here]
    return key


class _Sums:
    """Sums by key, added up piece by piece: cycles of work, of waiting and of conflicts."""

    def __init__(self, keys: int) -> None:
        import numpy as np

        self._count = np.zeros(keys, np.int64)
        self._first = np.zeros(keys, np.int64)
        self._sums = np.zeros((3, keys))

    def add(
        self,
        begin: int,
        key: NDArray[np.int64],
        columns: tuple[NDArray[Any], ...],
        chosen: NDArray[np.int64] | None,
    ) -> None:
        """`chosen`: places of the piece that count; None where all do. The piece begins at row `begin`."""
        import numpy as np

        rows = np.arange(begin, begin + len(key)) if chosen is None else chosen + begin
        if chosen is not None:
            key, columns = key[chosen], tuple(column[chosen] for column in columns)
        size = len(self._count)
        count = np.bincount(key, minlength=size)
        first = np.zeros(size, np.int64)
        first[key[::-1]] = rows[::-1]
        new = (self._count == 0) & (count > 0)
        self._first[new] = first[new]
        self._count += count
        for place, column in enumerate(columns):
            self._sums[place] += np.bincount(key, weights=column, minlength=size)

    def most(self) -> list[tuple[int, list[int], int]]:
        """The keys with most work, then waiting, then the earliest: their first row, sums and count."""
        import numpy as np

        present = np.flatnonzero(self._count)
        work, waiting = self._sums[0, present], self._sums[1, present]
        order = present[np.lexsort((self._first[present], -waiting, -work))[:HOTTEST]]
        return [(int(self._first[i]), [int(s[i]) for s in self._sums], int(self._count[i])) for i in order]


def _once(instructions: Instructions, line_of: NDArray[np.int64], cores: Cores) -> NDArray[np.int64] | None:
    """Work by row, but time in which a line runs on several lanes of the vector unit counted once; None without lanes."""
    import numpy as np

    kind = cores.kind
    works = np.isin(kind, (Kind.WORK, Kind.SCALAR, Kind.CONTROL))
    lanes = np.isin(instructions.pipe, VECTOR_LANES)
    if not lanes.any():
        return None
    mine = np.flatnonzero(lanes & (kind != Kind.MISS) & (kind != Kind.MARK))
    place = line_of[instructions.stack[mine]] * (int(instructions.core.max()) + 1) + instructions.core[mine]
    start, end = instructions.start[mine], cores.end[mine]
    order = np.lexsort((end, start, place))
    spent = np.where(works, cores.end - instructions.start, 0)
    spent[mine[order]] = added(place[order], start[order], end[order])
    return spent


def path_shares(trace: Trace, path: CriticalPath) -> tuple[PathShare, ...]:
    """What the critical path is made of, the largest part first."""
    import numpy as np

    instructions = trace.instructions
    if not len(path.row):
        return ()
    waits = np.isin(kinds(instructions, path.row), (Kind.SET, Kind.WAIT, Kind.BARRIER))
    doing = np.where(path.idle, 2, np.where(waits, 1, 0))
    key = units(instructions.pipe[path.row]).astype(np.int64) * 4 + doing
    present, inverse = np.unique(key, return_inverse=True)
    cycles = np.bincount(inverse, weights=path.end - path.begin)
    shares = [
        PathShare(pipe_name(k >> 2), ("work", "wait", "idle")[k & 3], int(c))
        for k, c in zip(present.tolist(), cycles, strict=True)
    ]
    return tuple(sorted(shares, key=lambda share: (-share.cycles, share.pipe, share.doing)))
