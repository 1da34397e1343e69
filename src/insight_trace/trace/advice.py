"""Ranked advice: one sentence each, with the cycles that following it could save at most.

Every bound is a measured number of this trace: time that a pipe stood still, cycles that conflicts added,
cycles beyond what the chip's roof needs. Bounds of different sentences overlap, so they do not add up.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from insight_trace.model import Pipe, Trace
from insight_trace.recording.busy import CoreStats
from insight_trace.recording.frames import short_frame, user_frames
from insight_trace.recording.kinds import Kind, finish, kinds
from insight_trace.recording.pipes import VECTOR_ARITHMETIC, pipe_name
from insight_trace.trace.stats import Stats, Wait

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# A pipe that works this share of the time is what the kernel is bound by (the rule of the vendor's roofline).
BOUND = 0.8
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


@dataclass(frozen=True, slots=True)
class Advice:
    """What to try, where, and the most it can bring."""

    topic: str  # wait, overlap, bank, lanes, transfer, scalar, barrier, bound
    text: str
    saves: int  # cycles, at most
    frame: str  # file:line, "" where it is about no line


def advise(trace: Trace, figures: Stats) -> tuple[Advice, ...]:
    """Sentences about the core that ends last, the most promising first."""
    core = next((item for item in figures.cores if item.core == figures.slowest), None)
    if core is None or not core.cycles:
        return ()
    rows = _rows_of(trace, core.core)
    waits = _waits(figures, core)
    found = [
        *waits,
        *([] if any(advice.topic == "wait" for advice in waits) else _overlap(figures, core)),
        *_banks(trace, figures, rows),
        *_lanes(trace, figures, rows),
        *_transfers(trace, figures, rows),
        *_scalar(core),
    ]
    worth = [advice for advice in found if advice.saves >= WORTH_SAYING * core.cycles]
    worth.sort(key=lambda advice: (-advice.saves, advice.topic, advice.text))
    return (*worth, *_bound(figures, core, bool(worth)))


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


def _on_path(figures: Stats, pipe: str) -> int:
    """Work that is not on the critical path can become faster without the total becoming shorter."""
    return sum(share.cycles for share in figures.critical if (share.pipe, share.doing) == (pipe, "work"))


def _waits(figures: Stats, core: CoreStats) -> list[Advice]:
    """Waits of one pipe for another at one line, all events of it together."""
    together: dict[tuple[str, str, str], list[Wait]] = defaultdict(list)
    for wait in figures.waits:
        if wait.core == core.core and not wait.last:
            together[wait.pipe, wait.waits_for, wait.frame].append(wait)
    found = []
    for (pipe, source, frame), waits in together.items():
        cycles = sum(wait.cycles for wait in waits)
        events = sorted({wait.event for wait in waits if wait.event})
        on = f" on event {', '.join(events)}" if events else ""
        saves = min(cycles, _room(figures, core))
        head = f"{pipe} waits {_percent(cycles, core.cycles)} for {source}{on}{_at(frame)}"
        if source.startswith("all before"):
            text = (
                f"{pipe} stands {_percent(cycles, core.cycles)} at a barrier{_at(frame)}: flags between the "
                f"pipes that share data would free up to {saves:,} cycles"
            )
            found.append(Advice("barrier", text, saves, frame))
            continue
        remedy = _remedy(pipe, source)
        if remedy:
            found.append(Advice("wait", f"{head}: {remedy} {saves:,} cycles", saves, frame))
    return found


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


def _banks(trace: Trace, figures: Stats, rows: NDArray[np.int64]) -> list[Advice]:
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
    return [Advice("bank", text, min(cycles, _on_path(figures, "VECTOR")), frame)]


def _lanes(trace: Trace, figures: Stats, rows: NDArray[np.int64]) -> list[Advice]:
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
    return [Advice("lanes", text, min(saves, _on_path(figures, "VECTOR")), frame)]


def _transfers(trace: Trace, figures: Stats, rows: NDArray[np.int64]) -> list[Advice]:
    """Transfers so small that latency, and not bandwidth, makes their time."""
    import numpy as np

    instructions = trace.instructions
    found = []
    end = finish(instructions)
    kind = kinds(instructions)
    for item in figures.traffic:
        if not item.roof_gb_per_s or item.gb_per_s >= 0.5 * item.roof_gb_per_s:
            continue
        pipe = {
            "GM_TO_UB": Pipe.MTE2,
            "GM_TO_L1": Pipe.MTE2,
            "UB_TO_GM": Pipe.MTE3,
            "L0C_TO_GM": Pipe.FIXP,
        }.get(item.path)
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
        saves = min(int(beyond.sum()), _on_path(figures, pipe_name(pipe)))
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


def _bound(figures: Stats, core: CoreStats, more: bool) -> list[Advice]:
    pipes = [pipe for pipe in figures.pipes if pipe.core == core.core]
    busiest = max(pipes, key=lambda pipe: pipe.busy, default=None)
    if busiest is None or busiest.busy < BOUND * core.cycles:
        return []
    rest = "" if more else "; only less work or a faster form of it would help"
    share = _percent(busiest.busy, core.cycles)
    text = f"{busiest.pipe} works {share} of the time: this kernel is bound by it{rest}"
    return [Advice("bound", text, 0, "")]
