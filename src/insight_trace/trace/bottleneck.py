"""What holds a run up: the cores on its critical path, and causes that lie between cores.

The path goes from the last end back to the first start, through flags from core to core, so the core on which it spends
most of its time is the one to look at; the one that ends last may only have waited for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from insight_trace.chips import find_chip
from insight_trace.model import Stall, Trace
from insight_trace.recording.busy import CoreStats
from insight_trace.recording.cache_use import cache_use
from insight_trace.recording.frames import user_frames
from insight_trace.recording.kinds import Kind, kinds
from insight_trace.recording.pipes import core_order, pipe_name, units
from insight_trace.trace.stats import Stats

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# A core that ends this share of the run after its like leaves the others without work for as long.
UNEQUAL = 0.2
# From this share of the path on, what lies between cores is the first thing to look at.
BETWEEN_CORES = 0.25
# From this share of the path on, transfers that hold each other up are what bounds a run.
SHARED = 0.4
# A memory that gives less than this share of what it can has room.
IN_USE = 0.35


class Advice(Struct, frozen=True):
    """What to try, where, and what it brings."""

    topic: str  # balance, l2, sync, bound, wait, buffer, barrier, scalar-wait, prologue, hoist, transfer, bank, lanes
    text: str
    saves: int  # cycles
    frame: str  # file:line; "" only where the trace names no lines
    row: int = -1  # the instruction that shows it
    core: str = ""  # and where that is in the timeline
    begin: int = 0  # cycles
    end: int = 0
    simulated: bool = False  # the run was timed again with the change; else `saves` is a bound


def kind_of(core: str) -> str:
    return "cube" if "cube" in core else "vector"


class Focus(Struct, frozen=True):
    """The core that holds the run up, and its like: cores of its kind."""

    core: CoreStats
    like: tuple[CoreStats, ...]  # itself among them
    mixed: bool  # cores of the other kind ran, too

    @property
    def owner(self) -> str:
        """` of the cube cores`, where it has to be said."""
        if not self.mixed:
            return ""
        return f" of the {kind_of(self.core.core)} core{'s' if len(self.like) > 1 else ''}"

    def sharing(self, count: int) -> str:
        """` on all 24 cores`, for what `count` cores of the kind have in common."""
        if len(self.like) == 1 or count < 2:
            return ""
        every = "all" if count == len(self.like) else f"{count} of"
        return f" on {every} {len(self.like)} {kind_of(self.core.core)} cores"


def focus_of(trace: Trace, figures: Stats) -> Focus | None:
    """Where the critical path spends most of its time; None for a trace in which nothing ran."""
    import numpy as np

    path = figures.path
    ran = {core.core: core for core in figures.cores if core.cycles}
    if not ran or not len(path.row):
        return None
    cores = trace.instructions.cores
    spent = np.bincount(
        trace.instructions.core[path.row], weights=path.end - path.begin, minlength=len(cores)
    ).tolist()
    by_kind = {"cube": 0.0, "vector": 0.0}
    for name, cycles in zip(cores, spent, strict=True):
        by_kind[kind_of(name)] += cycles
    # a core may hold the path and do nothing: it waits
    kinds = {kind_of(name) for name in ran}
    kind = max((each for each in by_kind if each in kinds), key=lambda each: by_kind[each])
    held = [(cycles, name) for name, cycles in zip(cores, spent, strict=True) if name in ran]
    chosen = max(
        (item for item in held if kind_of(item[1]) == kind),
        key=lambda item: (item[0], item[1] == figures.slowest),
    )[1]
    like = [core for core in figures.cores if kind_of(core.core) == kind and core.cycles]
    like.sort(key=lambda core: core_order(core.core))
    return Focus(ran[chosen], tuple(like), len(kinds) > 1)


def causes(trace: Trace, figures: Stats, focus: Focus) -> list[Advice]:
    """What no look at one core alone shows, the most expensive first."""
    found = [*_balance(figures, focus), *_memory(trace, figures), *_sync(trace, figures)]
    return sorted(found, key=lambda advice: -advice.saves)


def _balance(figures: Stats, focus: Focus) -> list[Advice]:
    """One core has more to do than its like: they end, and it goes on."""
    if len(focus.like) < 2:
        return []
    last = max(focus.like, key=lambda core: core.end)
    mean = sum(core.end for core in focus.like) / len(focus.like)
    excess = round(last.end - mean)
    work = sum(core.cycles for core in focus.like if core is not last) / (len(focus.like) - 1)
    if excess < UNEQUAL * figures.cycles or last.cycles < 1.3 * work:
        return []
    busy = sum(core.end >= last.end - UNEQUAL * figures.cycles for core in focus.like)
    who = (
        f"{last.core} works"
        if busy == 1
        else f"{busy} of {len(focus.like)} cores, {last.core} among them, work"
    )
    text = (
        f"{who} {last.cycles / work:.1f} times as long as the other {kind_of(last.core)} cores: "
        f"the blocks are unequal; sharing the work evenly would save up to {excess:,} cycles"
    )
    return [Advice("balance", text, excess, "")]


def path_work(trace: Trace, figures: Stats) -> dict[tuple[str, str], int]:
    """Cycles of the critical path by core and pipe, without waits.

    Work that is not on the path can become faster without the total becoming shorter.
    """
    import numpy as np

    instructions, path = trace.instructions, figures.path
    kind = kinds(instructions)[path.row]
    works = ~path.idle & ((kind == Kind.WORK) | (kind == Kind.SCALAR))
    key = instructions.core[path.row].astype(np.int64) * 256 + units(instructions.pipe[path.row])
    cycles = np.bincount(key[works], weights=(path.end - path.begin)[works]).tolist()
    return {
        (instructions.cores[number >> 8], pipe_name(number & 255)): int(spent)
        for number, spent in enumerate(cycles)
        if spent
    }


def _path_cycles(figures: Stats, chosen: NDArray[np.bool_]) -> int:
    """Cycles of the critical path that are spent on the chosen rows."""
    path = figures.path
    picked = chosen[path.row]
    return int((path.end - path.begin)[picked].sum())


def _memory(trace: Trace, figures: Stats) -> list[Advice]:
    """Many cores take more than HBM or L2 gives: transfers last longer together than alone."""
    use, memory = cache_use(trace.instructions), figures.memory
    chip = find_chip(figures.soc_version) if figures.soc_version else None
    if use is None or memory is None or chip is None or len(figures.cores) < 2:
        return []
    import numpy as np

    stretched = np.zeros(len(trace.instructions), bool)
    stretched[use.rows] = trace.instructions.stall[use.rows] == Stall.BANDWIDTH
    on_path = _path_cycles(figures, stretched)
    if on_path < SHARED * figures.cycles:
        return []
    chosen = stretched[use.rows]
    asked, missed = int(use.asked[chosen].sum()), int(use.missed[chosen].sum())
    name, key = ("HBM", "gm.chip_rate") if 2 * missed > asked else ("L2", "l2.chip_rate")
    if key not in chip.table["value"]:
        return []
    moved = memory.fetched + memory.written_back if name == "HBM" else memory.asked
    given, roof = moved / figures.cycles, chip.value(key)
    if given < IN_USE * roof:
        return []
    remedy = "reading less, or again from L2," if name == "HBM" else "keeping tiles in the cores"
    text = (
        f"{len(figures.cores)} cores share {name}, which gives them {given * figures.mhz / 1e3:,.0f} of "
        f"{roof * figures.mhz / 1e3:,.0f} GB/s: transfers that wait for each other there make "
        f"{100 * on_path / figures.cycles:.0f} % of the critical path; {remedy} is what shortens them"
    )
    return [Advice("l2", text, on_path, "")]


def _sync(trace: Trace, figures: Stats) -> list[Advice]:
    """The path stands at flags between cores while nothing works: the handover itself costs."""
    import numpy as np

    instructions = trace.instructions
    kind = kinds(instructions)
    partner = instructions.partner
    known = (partner >= 0) & (kind == Kind.WAIT)
    across = np.zeros(len(instructions), bool)
    across[known] = instructions.core[partner[known]] != instructions.core[known]
    sets = np.zeros(len(instructions), bool)
    sets[partner[across]] = True
    cycles = _path_cycles(figures, across | sets)
    if cycles < BETWEEN_CORES * figures.cycles:
        return []
    rows = figures.path.row[across[figures.path.row]]
    frames = user_frames(instructions.stacks)
    counts = np.bincount(instructions.stack[rows]) if len(rows) and frames else np.zeros(0, np.int64)
    frame = frames[int(counts.argmax())] if len(counts) else ""
    flags = len(set(rows.tolist()))
    text = (
        f"handing over between cores takes {100 * cycles / figures.cycles:.0f} % of the time, {flags} flags on the critical "
        f"path: fewer, larger handovers would save up to {cycles:,} cycles"
    )
    return [Advice("sync", text, cycles, frame)]
