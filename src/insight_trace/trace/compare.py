"""Two traces of one kernel: what became faster or slower, what was added, removed or moved.

Instructions are matched per core and pipe by their mnemonic, the k-th execution of one with the k-th of the
other. What has no partner was added or removed; what has one but changed places with its neighbours was
moved.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from insight_trace.model import Trace
from insight_trace.recording.busy import pipes
from insight_trace.recording.frames import short_frame, split_frame, user_frames
from insight_trace.recording.kinds import Kind, finish, kinds
from insight_trace.recording.pipes import pipe_name
from insight_trace.results import Result
from insight_trace.simulate.embedded.confidence import kernel_kind, model_spread
from insight_trace.trace.critical import critical_path
from insight_trace.trace.stats import path_shares

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_DOING = {"work": "work", "wait": "waiting", "idle": "standing idle"}
_PLACES = 100  # instructions of each kind that are named; all are counted


@dataclass(frozen=True, slots=True)
class TraceChange:
    """One thing in both traces: cycles and executions before and after."""

    what: str
    where: str  # core and pipe, or pipe
    before: int
    after: int
    count_before: int
    count_after: int

    @property
    def delta(self) -> int:
        return self.after - self.before


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """Rows that stand for the same instruction in both traces."""

    before: NDArray[np.int64]
    after: NDArray[np.int64]
    moved: NDArray[np.bool_]
    removed: NDArray[np.int64]  # rows of the first trace
    added: NDArray[np.int64]  # rows of the second


@dataclass(frozen=True, slots=True)
class Unmatched:
    """One instruction that has no partner, or stands elsewhere."""

    name: str
    core: str
    pipe: str
    frame: str
    start: int


@dataclass(frozen=True, slots=True)
class Fidelity:
    """How alike the durations of matched instructions are: a model against its reference."""

    instructions: int
    mean_error: float  # mean |after - before| / before over matched work
    correlation: float  # of durations, -1 .. 1; nan where one side never varies
    total_ratio: float  # after / before


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Result):
    """Everything `insight-trace compare` knows."""

    total: TraceChange
    pipes: tuple[TraceChange, ...]
    instructions: tuple[TraceChange, ...]  # by mnemonic, the largest difference first
    lines: tuple[TraceChange, ...]
    matches: Matches
    added: tuple[Unmatched, ...]  # the first of them, as of the next two
    removed: tuple[Unmatched, ...]
    moved: tuple[Unmatched, ...]
    fidelity: Fidelity
    notes: tuple[str, ...]
    reason: str = ""  # one sentence: what made it faster or slower
    sources: tuple[SourceDiff, ...] = ()

    def summary(self) -> str:
        before, after = self.total.before, self.total.after
        change = f" ({after / before - 1:+.1%})" if before else ""
        return f"{before:,} cycles, then {after:,}{change}" + (f": {self.reason}" if self.reason else "")

    def columns(self) -> Mapping[str, Any]:
        """One row per source line, the largest difference first."""
        names = [field.name for field in fields(TraceChange)]
        return {name: [getattr(change, name) for change in self.lines] for name in names}

    def data(self) -> dict[str, Any]:
        from insight_trace.trace.compare_text import comparison_data

        return comparison_data(self)

    def text(self) -> str:
        from insight_trace.trace.compare_text import comparison_text

        return comparison_text(self)


def compare(before: Trace, after: Trace) -> Comparison:
    """Cycle by cycle; the clocks of both are noted where they differ."""
    first, second = total_cycles(before), total_cycles(after)
    notes = []
    if before.mhz != after.mhz:
        notes.append(f"clocks differ, {before.mhz:g} and {after.mhz:g} MHz: cycles are compared, not time")
    cores = _same_cores(before, after)
    if any(a != b for a, b in cores.items()):
        notes.append(
            "cores are matched by kind and place: " + ", ".join(f"{a} with {b}" for a, b in cores.items())
        )
    matches = match(before, after, cores)
    if not len(matches.before) and len(before.instructions) and len(after.instructions):
        notes.append("no instruction of one is in the other: these are not two runs of one kernel")
    spread = model_spread(before.instructions.cores)
    if first and first != second and abs(second - first) < spread * first:
        notes.append(
            f"the difference is smaller than what totals of {kernel_kind(before.instructions.cores)} kernels are off "
            f"(up to {spread:.0%}, the 90 % interval): believe it where the instructions below explain it"
        )
    sources = source_diffs(before.sources, after.sources)
    return Comparison(
        total=TraceChange("total", "", first, second, len(before.instructions), len(after.instructions)),
        pipes=_pipes(before, after, cores),
        instructions=_grouped(before, after),
        lines=_grouped(before, after, sources),
        matches=matches,
        added=_places(after, matches.added),
        removed=_places(before, matches.removed),
        moved=_places(after, matches.after[matches.moved]),
        fidelity=_fidelity(before, after, matches, first, second),
        notes=tuple(notes),
        reason=_reason(before, after, second - first),
        sources=sources,
    )


def _reason(before: Trace, after: Trace, delta: int) -> str:
    """Which parts of the critical path became shorter, or longer, as the whole did."""
    if not delta:
        return ""
    one, two = (
        {(share.pipe, share.doing): share.cycles for share in path_shares(trace, critical_path(trace))}
        for trace in (before, after)
    )
    changes = {key: two.get(key, 0) - one.get(key, 0) for key in {**one, **two}}
    same = sorted((key for key in changes if changes[key] * delta > 0), key=lambda key: -abs(changes[key]))
    shown = [key for key in same[:3] if abs(changes[key]) >= 0.1 * abs(delta)]
    if not shown:
        return ""
    word = "less" if delta < 0 else "more"
    parts = [f"{abs(changes[key]):,} cycles {word} of {key[0]} {_DOING[key[1]]}" for key in shown]
    said = " and ".join((", ".join(parts[:-1]), parts[-1])) if len(parts) > 1 else parts[0]
    return (
        f"B is {'faster' if delta < 0 else 'slower'} by {abs(delta):,} cycles: its critical path has {said}"
    )


def total_cycles(trace: Trace) -> int:
    """Cycles from the first start to the last end."""
    import numpy as np

    rows = np.flatnonzero(~np.isin(kinds(trace.instructions), (Kind.MISS, Kind.MARK)))
    if not len(rows):
        return 0
    return int(finish(trace.instructions)[rows].max() - trace.instructions.start[rows].min())


def _same_cores(before: Trace, after: Trace) -> dict[str, str]:
    """Cores of the same name; where none are shared, the n-th of a kind with the n-th of that kind."""
    first, second = sorted(before.instructions.cores), sorted(after.instructions.cores)
    shared = {core: core for core in first if core in second}
    if shared:
        return shared

    def kind(core: str) -> str:
        return "cube" if "cube" in core else "vec" if "vec" in core else "core"

    pairs: dict[str, str] = {}
    for name in ("cube", "vec", "core"):
        pairs |= dict(
            zip([c for c in first if kind(c) == name], [c for c in second if kind(c) == name], strict=False)
        )
    return pairs


def _keys(trace: Trace, cores: dict[str, int], names: dict[str, int]) -> NDArray[np.int64]:
    """One number per row: core, pipe and mnemonic in terms that both traces share."""
    import numpy as np

    instructions = trace.instructions
    core = np.array([cores.get(name, -1) for name in instructions.cores] or [-1], np.int64)
    name = np.array([names[name] for name in instructions.names] or [0], np.int64)
    key = (core[instructions.core] * 256 + instructions.pipe) * 2**20 + name[instructions.name]
    hidden = np.isin(kinds(instructions), (Kind.MISS, Kind.MARK)) | (core[instructions.core] < 0)
    return np.where(hidden, -1, key)


def _program_order(trace: Trace, keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows that count, by key and then by the order in which they ran, and the ordinal of each in its key."""
    import numpy as np

    rows = np.flatnonzero(keys >= 0)
    order = np.lexsort((rows, trace.instructions.start[rows], keys[rows]))
    rows = rows[order]
    sorted_keys = keys[rows]
    opens = np.r_[True, sorted_keys[1:] != sorted_keys[:-1]] if len(rows) else np.zeros(0, bool)
    first = np.maximum.accumulate(np.where(opens, np.arange(len(rows)), 0)) if len(rows) else rows
    return rows, np.arange(len(rows)) - first


def match(before: Trace, after: Trace, cores: dict[str, str] | None = None) -> Matches:
    """Pairs of rows; n log n."""
    import numpy as np

    cores = _same_cores(before, after) if cores is None else cores
    first_cores = {a: index for index, a in enumerate(cores)}
    second_cores = {b: first_cores[a] for a, b in cores.items()}
    names = {
        name: index
        for index, name in enumerate(dict.fromkeys((*before.instructions.names, *after.instructions.names)))
    }
    keys_before, keys_after = _keys(before, first_cores, names), _keys(after, second_cores, names)
    rows_before, nth_before = _program_order(before, keys_before)
    rows_after, nth_after = _program_order(after, keys_after)
    reach = int(max(nth_before.max(initial=0), nth_after.max(initial=0))) + 1
    _, dense = np.unique(np.r_[keys_before[rows_before], keys_after[rows_after]], return_inverse=True)
    one = dense[: len(rows_before)] * reach + nth_before
    two = dense[len(rows_before) :] * reach + nth_after
    _, left, right = np.intersect1d(one, two, assume_unique=True, return_indices=True)
    matched_before, matched_after = rows_before[left], rows_after[right]
    return Matches(
        before=matched_before,
        after=matched_after,
        moved=_moved(before, after, matched_before, matched_after),
        removed=_left_over(before, matched_before),
        added=_left_over(after, matched_after),
    )


def _left_over(trace: Trace, matched: NDArray[np.int64]) -> NDArray[np.int64]:
    import numpy as np

    alone = np.ones(len(trace.instructions), bool)
    alone[matched] = False
    return np.flatnonzero(alone & ~np.isin(kinds(trace.instructions), (Kind.MISS, Kind.MARK)))


def _moved(
    before: Trace, after: Trace, first: NDArray[np.int64], second: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Which pairs stand elsewhere in their pipe's sequence: all but a longest common order."""
    import numpy as np

    moved = np.zeros(len(first), bool)
    one, two = before.instructions, after.instructions
    lane = one.core[first].astype(np.int64) * 256 + one.pipe[first]
    order = np.lexsort((first, one.start[first], lane))
    place = np.empty(len(second), np.int64)
    place[np.lexsort((second, two.start[second]))] = np.arange(len(second))
    for members in np.split(order, np.flatnonzero(np.diff(lane[order])) + 1):
        places = place[members]
        if (np.diff(places) < 0).any():
            stays = np.zeros(len(members), bool)
            stays[_longest_rising(places.tolist())] = True
            moved[members] = ~stays
    return moved


def _longest_rising(values: list[int]) -> list[int]:
    """Indices of a longest rising subsequence (patience sorting, n log n)."""
    tails: list[int] = []
    at: list[int] = []
    previous = [-1] * len(values)
    for index, value in enumerate(values):
        slot = bisect.bisect_left(tails, value)
        if slot:
            previous[index] = at[slot - 1]
        if slot == len(tails):
            tails.append(value)
            at.append(index)
        else:
            tails[slot], at[slot] = value, index
    chain = []
    index = at[-1] if at else -1
    while index >= 0:
        chain.append(index)
        index = previous[index]
    return chain[::-1]


def _places(trace: Trace, rows: NDArray[np.int64]) -> tuple[Unmatched, ...]:
    import numpy as np

    instructions = trace.instructions
    frames = user_frames(instructions.stacks) or [""]
    first = rows[np.lexsort((rows, instructions.start[rows]))][:_PLACES]
    return tuple(
        Unmatched(
            instructions.names[instructions.name[row]],
            instructions.cores[instructions.core[row]],
            pipe_name(int(instructions.pipe[row])),
            frames[instructions.stack[row]],
            int(instructions.start[row]),
        )
        for row in first.tolist()
    )


def _pipes(before: Trace, after: Trace, cores: dict[str, str]) -> tuple[TraceChange, ...]:
    first = {(item.core, item.pipe): item for item in pipes(before)}
    second = {(item.core, item.pipe): item for item in pipes(after)}
    back = {b: a for a, b in cores.items()}
    keys = list(dict.fromkeys([*first, *((back.get(core, core), pipe) for core, pipe in second)]))
    changes = []
    for core, pipe in keys:
        one, two = first.get((core, pipe)), second.get((cores.get(core, core), pipe))
        changes.append(
            TraceChange(
                pipe,
                core,
                one.busy if one else 0,
                two.busy if two else 0,
                one.instructions if one else 0,
                two.instructions if two else 0,
            )
        )
    return tuple(changes)


def _grouped(
    before: Trace, after: Trace, diffs: Iterable[SourceDiff] | None = None
) -> tuple[TraceChange, ...]:
    """By line where the sources are aligned, else by instruction."""
    by_line = diffs is not None
    one, two = _sums(before, by_line), _sums(after, by_line)
    if diffs is not None:
        same = _aligned_lines(diffs)
        two = _together((same.get(label, label), sums) for label, sums in two.items())
    changes = [
        TraceChange(
            key[0],
            key[1],
            *(side.get(key, (0, 0))[0] for side in (one, two)),
            *(side.get(key, (0, 0))[1] for side in (one, two)),
        )
        for key in dict.fromkeys([*one, *two])
    ]
    return tuple(sorted(changes, key=lambda change: (-abs(change.delta), change.what, change.where)))


def _together(
    rows: Iterable[tuple[tuple[str, str], tuple[int, int]]],
) -> dict[tuple[str, str], tuple[int, int]]:
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for key, sums in rows:
        old = found.get(key, (0, 0))
        found[key] = (old[0] + sums[0], old[1] + sums[1])
    return found


@dataclass(frozen=True, slots=True)
class SourceDiff:
    """One file of both traces, aligned line by line."""

    before: str  # its path in each trace
    after: str
    blocks: tuple[tuple[str, int, int, int, int], ...]  # as difflib names them: what, lines of A, lines of B


def source_diffs(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> tuple[SourceDiff, ...]:
    """Files of the same name in both; the two builds need not lie in the same directory."""
    import difflib

    named = {short_frame(path): path for path in before}
    found = []
    for path, text in after.items():
        other = named.get(short_frame(path))
        if other is None:
            continue
        old, new = (source.decode("utf-8", "replace").splitlines() for source in (before[other], text))
        blocks: list[Any] = (
            [("equal", 0, len(old), 0, len(new))]
            if old == new
            else difflib.SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes()
        )
        found.append(SourceDiff(other, path, tuple(blocks)))
    return tuple(found)


def _aligned_lines(diffs: Iterable[SourceDiff]) -> dict[tuple[str, str], tuple[str, str]]:
    """For lines of B the same line of A; a line of B alone has a + before its number."""
    found: dict[tuple[str, str], tuple[str, str]] = {}
    for diff in diffs:
        name = short_frame(diff.after)
        for tag, a0, a1, b0, b1 in diff.blocks:
            for offset in range(b1 - b0):
                alike = tag == "equal" or (tag == "replace" and offset < a1 - a0)
                line = f"{a0 + offset + 1}" if alike else f"+{b0 + offset + 1}"
                found[f"{name}:{b0 + offset + 1}", ""] = (f"{name}:{line}", "")
    return found


def _sums(trace: Trace, by_line: bool) -> dict[tuple[str, str], tuple[int, int]]:
    """Cycles and executions by (mnemonic, pipe), or by (file:line, "")."""
    import numpy as np

    instructions = trace.instructions
    rows = np.flatnonzero(~np.isin(kinds(instructions), (Kind.MISS, Kind.MARK)))
    cycles = finish(instructions)[rows] - instructions.start[rows]
    if by_line:
        frames = user_frames(instructions.stacks) or [""]
        key = instructions.stack[rows].astype(np.int64)
    else:
        key = instructions.pipe[rows].astype(np.int64) * 65536 + instructions.name[rows]
    present, inverse = np.unique(key, return_inverse=True)
    spent = np.bincount(inverse, weights=cycles, minlength=len(present))
    count = np.bincount(inverse, minlength=len(present))
    sums: dict[tuple[str, str], tuple[int, int]] = {}
    for number, cost, times in zip(present.tolist(), spent.tolist(), count.tolist(), strict=True):
        if by_line:
            # the two builds need not lie in the same directory
            path, line = split_frame(frames[number])
            label = (f"{path.replace(chr(92), '/').rsplit('/', 1)[-1]}:{line}", "")
            if not line:
                continue
        else:
            label = (instructions.names[number & 0xFFFF], pipe_name(number >> 16))
        old = sums.get(label, (0, 0))
        sums[label] = (old[0] + round(cost), old[1] + int(times))
    return sums


def _fidelity(before: Trace, after: Trace, matches: Matches, first: int, second: int) -> Fidelity:
    import numpy as np

    one, two = before.instructions, after.instructions
    work = np.isin(kinds(one)[matches.before], (Kind.WORK, Kind.SCALAR))
    reference = (finish(one) - one.start)[matches.before[work]].astype(np.float64)
    model = (finish(two) - two.start)[matches.after[work]].astype(np.float64)
    measured = reference > 0
    error = (
        float(np.mean(np.abs(model - reference)[measured] / reference[measured])) if measured.any() else 0.0
    )
    varied = len(reference) > 1 and reference.std() > 0 and model.std() > 0
    correlation = float(np.corrcoef(reference, model)[0, 1]) if varied else float("nan")
    return Fidelity(len(reference), error, correlation, second / first if first else float("nan"))
