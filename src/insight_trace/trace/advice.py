"""Ranked advice: one sentence each, with its line, its place in the timeline and the cycles that it saves.

Where a machine can make the change on the recording, it is made and the run is timed again (changes.py, retime.py):
those cycles are what the simulator says. Elsewhere they are a bound, a measured number of this trace, after "up to".
Cycles of different sentences overlap, so they do not add up.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from msgspec.structs import replace

from insight_trace.model import Trace
from insight_trace.recording.busy import CoreStats, prologues
from insight_trace.recording.frames import short_frame, user_frames
from insight_trace.recording.kinds import Kind, finish, kinds
from insight_trace.recording.pipes import pipe_name, units
from insight_trace.recording.stream import distinct, numbered
from insight_trace.trace.bottleneck import Advice, Focus, causes, focus_of, path_work
from insight_trace.trace.changes import FREES_A_BUFFER, Idea, ideas
from insight_trace.trace.retime import MOST_ROWS, Change, Retiming
from insight_trace.trace.stats import Stats

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
# A change that is known to save this share comes before a pipe about which nothing can be done.
WORTH_FIRST = 0.1
# Sentences about less than this share of the total only distract.
WORTH_SAYING = 0.02
_FREES_A_BUFFER = frozenset((pipe_name(one), pipe_name(other)) for one, other in FREES_A_BUFFER)
# Rows that are placed again for all ideas of a trace together: a second or two.
_MOST_PLACED = 300_000


def advise(trace: Trace, figures: Stats, most_rows: int = MOST_ROWS) -> tuple[Advice, ...]:
    """Sentences about what holds the run up: first what bounds it, then what saves most.

    Of a trace with more than `most_rows` no change is tried.

    They are about the core on which the critical path spends most of its time, and say which cores of its kind share
    what they say.
    """
    focus = focus_of(trace, figures)
    if focus is None:
        return ()
    core = focus.core
    everywhere = path_work(trace, figures)
    path = {pipe: cycles for (name, pipe), cycles in everywhere.items() if name == core.core}
    places = _Places(trace, figures, core.core)
    small = len(trace.instructions) <= most_rows
    tried, worth_trying = _tried(trace, figures) if small else ([], [])
    found = [_sentence(idea, saves, figures, focus, places) for idea, saves in worth_trying]
    found += _bounds(figures, focus, path, tried, places)
    found += _other_cores(figures, focus, everywhere, places)
    worth = [advice for advice in found if advice.saves >= WORTH_SAYING * figures.cycles]
    worth.sort(key=lambda advice: (-advice.saves, advice.topic, advice.text))
    between = [places.put(each) for each in causes(trace, figures, focus)]
    bound, why = _bound(figures, focus, worth, places)
    rest = [advice for advice in worth if advice is not why]
    promising = bool(rest) and rest[0].simulated and rest[0].saves >= WORTH_FIRST * figures.cycles
    said = [*between, *rest, *bound] if promising and why is None else [*between, *bound, *rest]
    return (*_longest(figures, focus, path, said, places), *said)


class _Places:
    """Rows of the core that advice is about: where in the timeline a sentence points to."""

    def __init__(self, trace: Trace, figures: Stats, core: str) -> None:
        import numpy as np

        instructions = trace.instructions
        self.instructions = instructions
        self.core = core
        self.end = finish(instructions)
        self.kind = kinds(instructions)
        self.frames = user_frames(instructions.stacks) or [""]
        mine = instructions.core == instructions.cores.index(core)
        self.rows = np.flatnonzero(mine)
        self.prologue = prologues(instructions)[instructions.cores.index(core)]
        self.path = figures.path

    def frame(self, row: int) -> str:
        return self.frames[int(self.instructions.stack[row])]

    def on_line(self, rows: NDArray[np.int64], frame: str) -> NDArray[np.int64]:
        """Those of the rows that stand on one line."""
        import numpy as np

        same = np.array([each == frame for each in self.frames])
        found: NDArray[np.int64] = rows[same[self.instructions.stack[rows]]]
        return found

    def at(self, advice: Advice, rows: NDArray[np.int64]) -> Advice:
        """With the longest of these rows."""
        if not len(rows):
            return advice
        length = self.end[rows] - self.instructions.start[rows]
        row = int(rows[int(length.argmax())])
        return replace(
            advice,
            row=row,
            core=self.instructions.cores[self.instructions.core[row]],
            begin=int(self.instructions.start[row]),
            end=int(self.end[row]),
            frame=advice.frame or self.frame(row),
        )

    def of_pipe(self, pipe: str) -> NDArray[np.int64]:
        """Work of a pipe on the critical path, or anywhere where none is on it."""
        import numpy as np

        unit = units(self.instructions.pipe)
        works = (self.kind == Kind.WORK) | (self.kind == Kind.SCALAR)
        mine = np.array([pipe_name(int(each)) == pipe for each in range(256)])[unit] & works
        on_path = distinct(self.path.row[mine[self.path.row]])
        here = on_path[self.instructions.core[on_path] == self.instructions.cores.index(self.core)]
        found: NDArray[np.int64] = here if len(here) else self.rows[mine[self.rows]]
        return found

    def hottest(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of the line with most of their time."""
        import numpy as np

        if not len(rows):
            return rows
        length = self.end[rows] - self.instructions.start[rows]
        stacks, place = numbered(self.instructions.stack[rows])
        spent: dict[str, int] = defaultdict(int)
        for stack, cycles in zip(stacks.tolist(), np.bincount(place, weights=length).tolist(), strict=True):
            spent[self.frames[stack]] += int(cycles)
        return self.on_line(rows, max(spent, key=lambda frame: (spent[frame], frame)))

    def put(self, advice: Advice) -> Advice:
        """Advice that is about no single row: the work on the critical path that lasts longest, there or on its line."""

        if advice.row >= 0:
            return advice
        rows = distinct(self.path.row)
        if advice.frame:
            there = self.on_line(rows, advice.frame)
            rows = there if len(there) else rows
        return self.at(advice, self.hottest(rows) if not advice.frame else rows)


def _tried(trace: Trace, figures: Stats) -> tuple[list[Idea], list[tuple[Idea, int]]]:
    """What was changed on the recording; and of that, with the cycles that a run with it would save, what is worth it."""
    if not figures.cycles:
        return [], []
    retiming = Retiming(trace)
    before = retiming.cycles()
    if before is None or abs(before - figures.cycles) > 0.01 * figures.cycles:
        return [], []  # the recording does not say enough of what its rows waited for
    found = ideas(retiming, figures)
    found.sort(key=lambda idea: -sum(retiming.end[row] - retiming.start[row] for row in idea.rows))
    most = max(4, _MOST_PLACED // max(1, len(trace.instructions)))
    tried = [(idea, before - (retiming.cycles(idea.change) or before)) for idea in found[:most]]
    worth = [(idea, saves) for idea, saves in tried if saves >= WORTH_SAYING * figures.cycles]
    together = _together(retiming, before, tried)
    said = {frame for idea, _ in together for frame in idea.frames}
    alone = [one for one in _best_of_a_line(worth) if one[0].topic != "buffer" or one[0].frame not in said]
    return [idea for idea, _ in tried], [*together, *alone]


def _best_of_a_line(tried: list[tuple[Idea, int]]) -> list[tuple[Idea, int]]:
    """Of several forms of one change at one line, those that bring clearly more than what is less to do."""
    kept: list[tuple[Idea, int]] = []
    for idea, saves in tried:
        other = next((one for one in kept if (one[0].topic, one[0].frame) == (idea.topic, idea.frame)), None)
        if other is None:
            kept.append((idea, saves))
        elif saves > 1.1 * other[1]:
            kept[kept.index(other)] = (idea, saves)
    return kept


def _together(retiming: Retiming, before: int, tried: list[tuple[Idea, int]]) -> list[tuple[Idea, int]]:
    """Buffers that help with each other: a tile that is loaded early has nowhere to go while its result is not stored."""
    buffers = [(idea, saves) for idea, saves in tried if idea.topic == "buffer" and idea.fits]
    if len(buffers) < 2:
        return []
    change = Change()
    for idea, _ in buffers:
        change = change.with_more(idea.change)
    best = max(saves for _, saves in buffers)
    saves = before - (retiming.cycles(change) or before)
    if saves < max(1.2 * best, best + WORTH_SAYING * before):
        return []
    lead = max(buffers, key=lambda item: item[1])[0]
    frames = tuple(dict.fromkeys(idea.frame for idea, _ in buffers))
    return [(replace(lead, change=change, frames=frames), saves)]


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "0 %"


def _at(frame: str) -> str:
    return f" at {short_frame(frame)}" if frame else ""


def _lines(frames: tuple[str, ...]) -> str:
    shown = [short_frame(frame) for frame in frames[:3]]
    return ", ".join(shown) + (f" and {len(frames) - 3} more" if len(frames) > 3 else "")


def _sentence(idea: Idea, saves: int, figures: Stats, focus: Focus, places: _Places) -> Advice:
    import numpy as np

    gain = f"saves {saves:,} of {figures.cycles:,} cycles"
    text = _text(idea, _waiting(idea, figures, focus), gain)
    rows = np.array(idea.rows, np.int64)
    own = rows[np.isin(rows, places.rows)]
    return places.at(Advice(idea.topic, text, saves, idea.frame, simulated=True), own if len(own) else rows)


def _waiting(idea: Idea, figures: Stats, focus: Focus) -> str:
    """`MTE2 of the cube cores waits 48 % for VECTOR on event 0, 1 at kernel.cpp:41 on all 8 cores`."""
    spent: dict[str, int] = defaultdict(int)
    for wait in figures.waits:
        if (wait.pipe, wait.waits_for, wait.frame) == (idea.pipe, idea.source or wait.waits_for, idea.frame):
            spent[wait.core] += wait.cycles
    cycles = spent.get(focus.core.core, max(spent.values(), default=0))
    like = {each.core for each in focus.like}
    shared = focus.sharing(sum(2 * spent[each] >= cycles for each in spent if each in like))
    on = f" on event {', '.join(idea.events)}" if idea.events else ""
    share = _percent(cycles, focus.core.cycles)
    if not idea.source:
        return f"{idea.pipe}{focus.owner} stands {share} at a barrier{_at(idea.frame)}{shared}"
    return f"{idea.pipe}{focus.owner} waits {share} for {idea.source}{on}{_at(idea.frame)}{shared}"


def _text(idea: Idea, waiting: str, gain: str) -> str:
    """What there is to see, and after the colon what to do about it."""
    where, more = _at(idea.frame), _lines(idea.frames)
    of_them = "all of them" if idea.bytes == idea.count else f"{idea.bytes:,} of them"
    which = "a second buffer" if idea.count < 2 else "one more buffer"
    match idea.topic:
        case "buffer" if not idea.fits:
            size = f"its {idea.bytes:,} bytes do not fit into {idea.memory}"
            return f"{waiting}: {which} {gain}, and {size}: smaller tiles make room"
        case "buffer" if idea.frames:
            return f"{waiting}: {which} for each of {more} together {gain}"
        case "buffer":
            size = f" of {idea.bytes:,} bytes in {idea.memory}" if idea.bytes else ""
            return f"{waiting}: {which}{size} {gain}"
        case "barrier":
            them = f" in place of the barriers at {more}" if idea.frames else ""
            twice = ", and a second buffer for each tile," if idea.count else ""
            return f"{waiting}: flags between the pipes that share data{them}{twice} {gain}"
        case "scalar-wait":
            return f"{waiting}: nothing is issued meanwhile; letting the pipe that needs the data wait {gain}"
        case "prologue":
            loads = f"{idea.count} scalar {'load' if idea.count == 1 else 'loads'}"
            return (
                f"the first transfer{where} is issued after {loads} of other tensors' descriptors (at {more}), each a miss "
                f"of the scalar cache: issuing it once its own is read, and the others behind it, {gain}"
            )
        case "hoist":
            return (
                f"the scalar unit loads the same{where} {idea.count + 1:,} times while others wait: "
                f"loading it once before the loop {gain}"
            )
        case "transfer":
            return (
                f"{idea.source} moves {idea.bytes:,} bytes at a time{where}, {idea.count:,} transfers in a row: "
                f"one transfer for all of them, or fewer of up to 16 KB, {gain}"
            )
        case "bank":
            return (
                f"UB bank conflicts cost {idea.count:,} cycles, {of_them}{where} (mostly {idea.source}): "
                f"moving one operand by 256 bytes puts the two in different bank groups and {gain}"
            )
        case _:
            how = (
                "wider rows that fill the loops"
                if idea.source == "loops"
                else "wider rows or fewer masked repeats"
            )
            return (
                f"vector instructions leave lanes empty that are worth {idea.count:,} cycles, {of_them}{where}: "
                f"with all lanes in use, {how} {gain.replace('saves', 'save up to')}"
            )


def _bounds(
    figures: Stats, focus: Focus, path: dict[str, int], tried: list[Idea], places: _Places
) -> list[Advice]:
    """Waits on which no change could be tried: where a trace does not say enough, or has too many rows."""
    import numpy as np

    known = {(idea.pipe, idea.source, idea.frame) for idea in tried}
    groups: dict[tuple[str, str, str], int] = defaultdict(int)
    counts: dict[tuple[str, str, str], int] = defaultdict(int)
    for wait in figures.waits:
        if wait.core == focus.core.core and not wait.last and " of " not in wait.waits_for:
            source = "" if wait.waits_for.startswith("all before") else wait.waits_for
            groups[wait.pipe, source, wait.frame] += wait.cycles
            counts[wait.pipe, source, wait.frame] += wait.count
    found = []
    for (pipe, source, frame), cycles in groups.items():
        topic, remedy = _remedy(pipe, source, counts[pipe, source, frame])
        if not topic or (pipe, source, frame) in known:
            continue
        saves = min(cycles, _room(figures, focus.core), path.get(source, cycles) if source else cycles)
        idea = Idea(topic, Change(), frame, (), pipe, source)
        text = f"{_waiting(idea, figures, focus)}: {remedy} up to {saves:,} cycles"
        rows = places.rows[np.isin(places.kind[places.rows], (Kind.WAIT, Kind.BARRIER))]
        found.append(places.at(Advice(topic, text, saves, frame), places.on_line(rows, frame)))
    return found


def _remedy(pipe: str, source: str, count: int) -> tuple[str, str]:
    """What to do about a wait; nothing where waiting is the pipe's part, as a store waits for its result."""
    if not source:
        return "barrier", "flags between the pipes that share data would free"
    if pipe == "SCALAR":
        return (
            "scalar-wait",
            "nothing is issued meanwhile; letting the pipe that needs the data wait would free",
        )
    if source == "SCALAR":
        return "hoist", "the scalar unit is late; address arithmetic before the loop would free"
    if (pipe, source) in _FREES_A_BUFFER and count > 1:
        return "buffer", "a second buffer would hide"
    return "", ""


def _other_cores(
    figures: Stats, focus: Focus, everywhere: dict[tuple[str, str], int], places: _Places
) -> list[Advice]:
    """Waits for a core of the other kind: no change of this one's rows makes them shorter."""

    found: dict[tuple[str, str], list[int]] = defaultdict(list)
    frames: dict[tuple[str, str], str] = {}
    for wait in figures.waits:
        _, _, other = wait.waits_for.partition(" of ")
        if wait.last or not other or wait.core != focus.core.core:
            continue
        found[wait.pipe, wait.waits_for].append(wait.cycles)
        frames.setdefault((wait.pipe, wait.waits_for), wait.frame)
    advice = []
    for (pipe, source), cycles in found.items():
        frame, spent = frames[pipe, source], sum(cycles)
        other = source.partition(" of ")[2]
        saves = min(
            spent, _room(figures, focus.core), sum(c for (name, _), c in everywhere.items() if name == other)
        )
        text = (
            f"{pipe}{focus.owner} waits {_percent(spent, focus.core.cycles)} for {source}{_at(frame)}: "
            f"the other core is late and holds this one up by up to {saves:,} cycles"
        )
        rows = places.rows[(places.kind[places.rows] == Kind.WAIT)]
        advice.append(places.at(Advice("wait", text, saves, frame), places.on_line(rows, frame)))
    return advice


def _room(figures: Stats, core: CoreStats) -> int:
    """No overlap makes a core faster than its busiest pipe."""
    busiest = max((pipe.busy for pipe in figures.pipes if pipe.core == core.core), default=0)
    return core.cycles - busiest


# What makes a pipe's work longer than it has to be.
_REASONS = {
    "VECTOR": ("bank", "lanes"),
    "MTE2": ("transfer",),
    "MTE3": ("transfer",),
    "FIXPIPE": ("transfer",),
    "SCALAR": ("hoist",),
}


def _bound(
    figures: Stats, focus: Focus, more: list[Advice], places: _Places
) -> tuple[list[Advice], Advice | None]:
    """The pipe that works nearly all the time, with what makes its work long; and which advice that was.

    What a core reads before any other pipe works is not counted.
    """
    core = focus.core
    pipes = [pipe for pipe in figures.pipes if pipe.core == core.core]

    def busy(name: str, cycles: int) -> int:
        return max(0, cycles - places.prologue) if name == "SCALAR" else cycles

    busiest = max(pipes, key=lambda pipe: busy(pipe.pipe, pipe.busy), default=None)
    whole = core.cycles - places.prologue
    if busiest is None or busy(busiest.pipe, busiest.busy) < BOUND * whole:
        return [], None
    cycles = {each.core: each.cycles - places.prologue for each in focus.like}
    bound = [
        pipe
        for pipe in figures.pipes
        if pipe.pipe == busiest.pipe
        and pipe.core in cycles
        and busy(pipe.pipe, pipe.busy) >= BOUND * cycles[pipe.core]
    ]
    share = _percent(busy(busiest.pipe, busiest.busy), whole)
    since = " from its first transfer on" if places.prologue >= WORTH_SAYING * core.cycles else ""
    rows = places.hottest(places.of_pipe(busiest.pipe))
    frame = places.frame(int(rows[0])) if len(rows) else ""
    head = f"{busiest.pipe}{focus.owner} works {share} of the time{focus.sharing(len(bound))}"
    head += f"{since}: this kernel is bound by it{_waits_for_it(figures, focus)}"
    topics = _REASONS.get(busiest.pipe, ())
    why = next((item for item in more if item.topic in topics and _about(item, busiest.pipe)), None)
    if why is not None:
        return [replace(why, topic="bound", text=f"{head}; {why.text}")], why
    rest = f", most{_at(frame)}" if frame else ""
    if busiest.pipe == "SCALAR":
        rest += "; fewer scalar instructions, or loads made once before a loop, would help"
    elif not more:
        rest += "; only less work or a faster form of it would help"
    return [
        places.at(Advice("bound", f"{head}{rest}{_from_memory(figures, busiest.pipe)}", 0, frame), rows)
    ], None


def _from_memory(figures: Stats, pipe: str) -> str:
    """Of loads, how much of their data L2 did not have."""
    if pipe != "MTE2":
        return ""
    for item in figures.traffic:
        if (
            item.path.startswith("GM_TO_")
            and item.requests
            and item.missed
            and 2 * item.missed > item.requests
        ):
            return f" ({item.missed / item.requests:.0%} of what it loads is not in L2)"
    return ""


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


def _longest(
    figures: Stats, focus: Focus, path: dict[str, int], rest: list[Advice], places: _Places
) -> list[Advice]:
    """The pipe that makes most of the critical path, where the first sentence is not about it anyway."""
    path = {pipe: cycles - (places.prologue if pipe == "SCALAR" else 0) for pipe, cycles in path.items()}
    pipe = max(path, key=lambda name: (path[name], name), default="")
    if not pipe or path[pipe] < LONG * (figures.cycles - places.prologue):
        return []
    first = rest[0] if rest else None
    enough = WORTH_FIRST if first and first.simulated else PROMISING
    if first and (first.saves >= enough * figures.cycles or first.topic == "bound" or _names(first, pipe)):
        return []
    if first and first.simulated and first.saves >= LONG * path[pipe]:
        return []  # known to bring half of all that this pipe could give
    rows = places.hottest(places.of_pipe(pipe))
    frame = places.frame(int(rows[0])) if len(rows) else ""
    text = (
        f"{pipe}{focus.owner} makes {_percent(path[pipe], figures.cycles)} of the critical path, most{_at(frame)}: "
        f"what shortens its work shortens the run, by up to {path[pipe]:,} cycles{_waits_for_it(figures, focus)}"
    )
    return [places.at(Advice("bound", text, path[pipe], frame), rows)]


def _names(advice: Advice, pipe: str) -> bool:
    topics = _REASONS.get(pipe, ())
    return pipe in advice.text or (advice.topic in topics and _about(advice, pipe))


def _about(advice: Advice, pipe: str) -> bool:
    """Whether advice about transfers is about those of a pipe."""
    moves = {"MTE2": "GM→", "MTE3": "→GM", "FIXPIPE": "L0C→"}.get(pipe)
    path = advice.text.split(" ", 1)[0]
    return moves is None or (moves in path and (pipe != "MTE3" or not path.startswith("L0C")))
