"""Ranked advice: one sentence each, with the cycles that following it could save at most.

Every bound is a measured number of this trace: time that a pipe stood still, cycles that conflicts added,
cycles beyond what the chip's roof needs. Bounds of different sentences overlap, so they do not add up.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from insight_trace.model import Pipe, Trace
from insight_trace.recording.busy import CoreStats
from insight_trace.recording.frames import short_frame, user_frames
from insight_trace.recording.kinds import Kind, finish, kinds
from insight_trace.recording.pipes import VECTOR_ARITHMETIC, pipe_name
from insight_trace.trace.bottleneck import Advice, Focus, causes, focus_of, kind_of, path_work
from insight_trace.trace.stats import Stats, Wait

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Advice", "advise"]

# A pipe that works this share of the time is what the kernel is bound by (the rule of the vendor's roofline).
BOUND = 0.8
# A pipe whose work makes this share of the critical path has to be named.
LONG = 0.5
# Unless there is something to do about a share like this.
PROMISING = 0.25
# Sentences about less than this share of the total only distract.
WORTH_SAYING = 0.02

# Bytes from which a transfer reaches the bandwidth of its path (CANN 8.5 best practices).
GOOD_TRANSFER = 16384

_FREES_A_BUFFER = {
    ("MTE2", "VECTOR"),
    ("MTE2", "MTE3"),
    ("MTE2", "MTE1"),
    ("MTE1", "CUBE"),
    ("VECTOR", "MTE3"),
    ("CUBE", "FIXPIPE"),
}

# Which pipe of a core moves bytes over a path to or from global memory.
_TRANSFERS = {
    "cube": {"GM_TO_L1": Pipe.MTE2, "L0C_TO_GM": Pipe.FIXP},
    "vector": {"GM_TO_UB": Pipe.MTE2, "UB_TO_GM": Pipe.MTE3},
}
_PIPES = frozenset(pipe_name(pipe) for pipe in Pipe)


def advise(trace: Trace, figures: Stats) -> tuple[Advice, ...]:
    """Sentences about what holds the run up: first what bounds it, then the most promising.

    They are about the core on which the critical path spends most of its time, and say which cores of its kind share
    what they say.
    """
    focus = focus_of(trace, figures)
    if focus is None:
        return ()
    core = focus.core
    rows = _rows_of(trace, core.core)
    everywhere = path_work(trace, figures)
    path = {pipe: cycles for (name, pipe), cycles in everywhere.items() if name == core.core}
    waits = _waits(figures, focus, path, everywhere)
    found = [
        *waits,
        *([] if any(advice.topic == "wait" for advice in waits) else _overlap(figures, core)),
        *_banks(trace, path, rows),
        *_lanes(trace, path, rows),
        *_transfers(trace, figures, path, core.core, rows),
        *_scalar(core),
    ]
    worth = [advice for advice in found if advice.saves >= WORTH_SAYING * core.cycles]
    worth.sort(key=lambda advice: (-advice.saves, advice.topic, advice.text))
    between = [
        Advice(each.topic, each.text, each.saves, each.frame) for each in causes(trace, figures, focus)
    ]
    bound, why = _bound(figures, focus, worth)
    rest = [*between, *bound, *(advice for advice in worth if advice is not why)]
    return (*_longest(figures, focus, path, rest), *rest)


def _rows_of(trace: Trace, core: str) -> NDArray[np.int64]:
    import numpy as np

    instructions = trace.instructions
    return np.flatnonzero(instructions.core == instructions.cores.index(core))


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %"


def _at(frame: str) -> str:
    return f" at {short_frame(frame)}" if frame else ""


def _room(figures: Stats, core: CoreStats) -> int:
    """No overlap makes a core faster than its busiest pipe."""
    busiest = max((pipe.busy for pipe in figures.pipes if pipe.core == core.core), default=0)
    return core.cycles - busiest


def _waits(
    figures: Stats, focus: Focus, path: dict[str, int], everywhere: dict[tuple[str, str], int]
) -> list[Advice]:
    """Waits of one pipe for another at one line, all events of it together."""
    core = focus.core
    together: dict[tuple[str, str, str], list[Wait]] = defaultdict(list)
    elsewhere: dict[tuple[str, str, str], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for wait in figures.waits:
        if wait.last:
            continue
        if wait.core == core.core:
            together[wait.pipe, wait.waits_for, wait.frame].append(wait)
        elsewhere[wait.pipe, _unit(wait.waits_for), wait.frame][wait.core] += wait.cycles
    like = {each.core for each in focus.like}
    found = []
    for (pipe, source, frame), waits in together.items():
        cycles = sum(wait.cycles for wait in waits)
        events = sorted({wait.event for wait in waits if wait.event})
        on = f" on event {', '.join(events)}" if events else ""
        saves = min(cycles, _room(figures, core))
        # what is waited for has to be what takes the time
        _, _, other = source.partition(" of ")
        if other:
            saves = min(saves, sum(spent for (name, _), spent in everywhere.items() if name == other))
        elif source in _PIPES:
            saves = min(saves, path.get(source, 0))
        others = elsewhere[pipe, _unit(source), frame]
        shared = focus.sharing(sum(2 * others[each] >= cycles for each in others if each in like))
        where = f"{_at(frame)}{shared}"
        head = f"{pipe}{focus.owner} waits {_percent(cycles, core.cycles)} for {source}{on}{where}"
        if source.startswith("all before"):
            text = (
                f"{pipe}{focus.owner} stands {_percent(cycles, core.cycles)} at a barrier{where}: flags between the "
                f"pipes that share data would free up to {saves:,} cycles"
            )
            found.append(Advice("barrier", text, saves, frame))
            continue
        remedy = _remedy(pipe, source)
        if remedy:
            found.append(Advice("wait", f"{head}: {remedy} {saves:,} cycles", saves, frame))
    return found


def _unit(source: str) -> str:
    """The pipe that is waited for, whichever core it is of."""
    return source.partition(" of ")[0]


def _remedy(pipe: str, source: str) -> str:
    """What to do about a wait; "" where waiting is the pipe's part, as a store waits for its result."""
    if " of " in source:
        return "the other core is late, so look there first; it holds this one up by up to"
    if pipe == "SCALAR":
        return "nothing is issued meanwhile; letting the pipe that needs the data wait would free up to"
    if source == "SCALAR":
        return "the scalar unit is late; address arithmetic before the loop would free up to"
    if (pipe, source) in _FREES_A_BUFFER:
        return "a second buffer would hide up to"
    if pipe in ("VECTOR", "CUBE", "MTE1"):
        return "loading the next tile earlier would hide up to"
    return ""


def _overlap(figures: Stats, core: CoreStats) -> list[Advice]:
    """Load and compute that could run side by side and do not."""
    found = []
    for load, compute in (("MTE2", "VECTOR"), ("MTE2", "CUBE"), ("MTE1", "CUBE"), ("VECTOR", "MTE3")):
        first, second = figures.pipe(core.core, load), figures.pipe(core.core, compute)
        if first is None or second is None or min(first.busy, second.busy) == 0:
            continue
        shorter = min(first.busy, second.busy)
        both = core.overlap.get(f"{load}+{compute}", 0)
        if both < 0.2 * shorter and min(first.instructions, second.instructions) > 1:
            saves = min(shorter - both, _room(figures, core))
            text = (
                f"{load} and {compute} run together only {_percent(both, shorter)} of the time that they "
                f"could: working on two tiles in turn would save up to {saves:,} cycles"
            )
            found.append(Advice("overlap", text, saves, ""))
    return found


def _worst_line(trace: Trace, rows: NDArray[np.int64], cost: NDArray[np.int64]) -> tuple[str, int]:
    """The line with the largest share of a cost, and that share."""
    import numpy as np

    stacks = trace.instructions.stacks
    if not len(stacks):
        return "", int(cost.sum())
    frames = user_frames(stacks)
    sums: dict[str, int] = defaultdict(int)
    by_stack = np.bincount(trace.instructions.stack[rows], weights=cost, minlength=len(stacks))
    for frame, cycles in zip(frames, by_stack.tolist(), strict=True):
        sums[frame] += round(cycles)
    worst = max(sums, key=lambda frame: (sums[frame], frame))
    return worst, sums[worst]


def _of_them(part: int, whole: int) -> str:
    return "all of them" if part == whole else f"{part:,} of them"


def _banks(trace: Trace, path: dict[str, int], rows: NDArray[np.int64]) -> list[Advice]:
    import numpy as np

    instructions = trace.instructions
    read = np.maximum(0, instructions.read_conflict[rows]).astype(np.int64)
    write = np.maximum(0, instructions.write_conflict[rows]).astype(np.int64)
    cycles = int((read + write).sum())
    if not cycles:
        return []
    frame, there = _worst_line(trace, rows, read + write)
    side = "read" if read.sum() >= write.sum() else "write"
    text = (
        f"UB bank conflicts cost {cycles:,} cycles, {_of_them(there, cycles)}{_at(frame)} (mostly {side}): "
        f"moving one operand by 256 bytes puts the two in different bank groups"
    )
    return [Advice("bank", text, min(cycles, path.get("VECTOR", 0)), frame)]


def _lanes(trace: Trace, path: dict[str, int], rows: NDArray[np.int64]) -> list[Advice]:
    import numpy as np

    instructions = trace.instructions
    computes = np.isin(instructions.pipe[rows], VECTOR_ARITHMETIC)
    vector = rows[computes & (instructions.utilisation[rows] >= 0)]
    if not len(vector):
        return []
    cycles = finish(instructions)[vector] - instructions.start[vector]
    cycles = cycles - np.maximum(0, instructions.read_conflict[vector])
    cycles = np.maximum(0, cycles - np.maximum(0, instructions.write_conflict[vector]))
    unused = np.rint(cycles * (100 - np.minimum(100, instructions.utilisation[vector])) / 100).astype(
        np.int64
    )
    saves = int(unused.sum())
    if not saves:
        return []
    frame, there = _worst_line(trace, vector, unused)
    in_functions = (instructions.pipe[vector] == Pipe.RVECEX).any()
    remedy = (
        "wider rows would fill the loops"
        if in_functions
        else "wider rows or fewer masked repeats would use them"
    )
    text = (
        f"vector instructions leave lanes empty that are worth {saves:,} cycles, {_of_them(there, saves)}"
        f"{_at(frame)}: {remedy}"
    )
    return [Advice("lanes", text, min(saves, path.get("VECTOR", 0)), frame)]


def _transfers(
    trace: Trace, figures: Stats, path: dict[str, int], core: str, rows: NDArray[np.int64]
) -> list[Advice]:
    """Transfers so small that latency, and not bandwidth, makes their time."""
    import numpy as np

    instructions = trace.instructions
    found = []
    end = finish(instructions)
    kind = kinds(instructions)
    for item in figures.traffic:
        if not item.roof_gb_per_s or item.gb_per_s >= 0.5 * item.roof_gb_per_s:
            continue
        pipe = _TRANSFERS[kind_of(core)].get(item.path)
        if pipe is None:
            continue
        mine = rows[(instructions.pipe[rows] == pipe) & (kind[rows] == Kind.WORK)]
        mine = mine[instructions.process_bytes[mine] > 0]
        if not len(mine):
            continue
        sizes = instructions.process_bytes[mine]
        needed = sizes / (item.roof_gb_per_s * 1e3 / trace.mhz)
        beyond = np.rint(np.maximum(0, end[mine] - instructions.start[mine] - needed)).astype(np.int64)
        frame, _ = _worst_line(trace, mine, beyond)
        saves = min(int(beyond.sum()), path.get(pipe_name(pipe), 0))
        remedy = (
            "fewer, larger transfers" if np.median(sizes) < GOOD_TRANSFER else "several transfers in flight"
        )
        text = (
            f"{item.path.replace('_TO_', '→')} moves {int(np.median(sizes)):,} bytes at a time and reaches "
            f"{item.gb_per_s:.0f} of {item.roof_gb_per_s:.0f} GB/s{_at(frame)}: {remedy} would "
            f"save up to {saves:,} cycles"
        )
        found.append(Advice("transfer", text, saves, frame))
    return found


def _scalar(core: CoreStats) -> list[Advice]:
    if core.scalar_alone < 0.05 * core.cycles:
        return []
    text = (
        f"only the scalar unit works for {core.scalar_alone:,} cycles "
        f"({_percent(core.scalar_alone, core.cycles)}): "
        "hoisting address arithmetic and scalar loads out of loops would give them back"
    )
    return [Advice("scalar", text, core.scalar_alone, "")]


# What makes a pipe's work longer than it has to be.
_REASONS = {
    "VECTOR": ("bank", "lanes"),
    "MTE2": ("transfer",),
    "MTE3": ("transfer",),
    "FIXPIPE": ("transfer",),
    "SCALAR": ("scalar",),
}


def _bound(figures: Stats, focus: Focus, more: list[Advice]) -> tuple[list[Advice], Advice | None]:
    """The pipe that works nearly all the time, with what makes its work long; and which advice that was."""
    core = focus.core
    pipes = [pipe for pipe in figures.pipes if pipe.core == core.core]
    busiest = max(pipes, key=lambda pipe: pipe.busy, default=None)
    if busiest is None or busiest.busy < BOUND * core.cycles:
        return [], None
    cycles = {each.core: each.cycles for each in focus.like}
    bound = [
        pipe
        for pipe in figures.pipes
        if pipe.pipe == busiest.pipe and pipe.core in cycles and pipe.busy >= BOUND * cycles[pipe.core]
    ]
    head = f"{busiest.pipe}{focus.owner} works {_percent(busiest.busy, core.cycles)} of the time"
    head += f"{focus.sharing(len(bound))}: this kernel is bound by it{_waits_for_it(figures, focus)}"
    topics = _REASONS.get(busiest.pipe, ())
    why = next((item for item in more if item.topic in topics and _about(item, busiest.pipe)), None)
    if why is not None:
        return [Advice("bound", f"{head}; {why.text}", why.saves, why.frame)], why
    rest = "" if more else "; only less work or a faster form of it would help"
    return [Advice("bound", f"{head}{rest}", 0, "")], None


def _waits_for_it(figures: Stats, focus: Focus) -> str:
    """The core of the other kind that waits longest for one of these, where there is one."""
    like = {each.core for each in focus.like}
    cycles = {each.core: each.cycles for each in figures.cores}
    for wait in figures.waits:  # the longest first
        _, _, other = wait.waits_for.partition(" of ")
        if other in like and wait.core not in like and not wait.last:
            share = _percent(wait.cycles, cycles[wait.core])
            return f"; {wait.pipe} of {wait.core} waits {share} for {wait.waits_for}{_at(wait.frame)}"
    return ""


def _longest(figures: Stats, focus: Focus, path: dict[str, int], rest: list[Advice]) -> list[Advice]:
    """The pipe that makes most of the critical path, where the first sentence is not about it anyway."""
    pipe = max(path, key=lambda name: (path[name], name), default="")
    if not pipe or path[pipe] < LONG * figures.cycles:
        return []
    if rest and (
        rest[0].saves >= PROMISING * figures.cycles or rest[0].topic == "bound" or _names(rest[0], pipe)
    ):
        return []
    text = (
        f"{pipe}{focus.owner} makes {_percent(path[pipe], figures.cycles)} of the critical path: "
        f"what shortens its work shortens the run, by up to {path[pipe]:,} cycles{_waits_for_it(figures, focus)}"
    )
    return [Advice("bound", text, path[pipe], "")]


def _names(advice: Advice, pipe: str) -> bool:
    topics = _REASONS.get(pipe, ())
    return pipe in advice.text or (advice.topic in topics and _about(advice, pipe))


def _about(advice: Advice, pipe: str) -> bool:
    """Whether advice about transfers is about those of a pipe."""
    moves = {"MTE2": "GM→", "MTE3": "→GM", "FIXPIPE": "L0C→"}.get(pipe)
    path = advice.text.split(" ", 1)[0]
    return moves is None or (moves in path and (pipe != "MTE3" or not path.startswith("L0C")))
