"""From a raw trace to what a person reads: lanes of work, and arrows where one waited for another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from insight_trace.model import Instructions, Trace
from insight_trace.recording.flag_pairs import partners
from insight_trace.recording.kinds import Kind, kinds
from insight_trace.recording.pipes import ORDER, core_order
from insight_trace.recording.stream import distinct, grouped
from insight_trace.trace.sublanes import lane_label, sublanes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Lane(Struct, frozen=True):
    """One row of the timeline."""

    core: int
    pipe: int
    part: int  # 0, or the number of the sub-lane
    label: str


class Arrows(Struct, frozen=True, eq=False):
    """Flags as arrows, from the last instruction before the set to the first after the wait."""

    producer: NDArray[np.int64]  # rows of the trace
    consumer: NDArray[np.int64]
    set_row: NDArray[np.int64]
    wait_row: NDArray[np.int64]
    hidden: int  # pairs with an end on a lane that is not kept
    unanchored: int  # pairs with no instruction before the set or after the wait
    unpaired: int  # sets and waits without a partner


class Clean(Struct, frozen=True, eq=False):
    """What `clean` kept, where it stands, and what it left out."""

    trace: Trace
    rows: NDArray[np.int64]  # rows of the trace that are drawn, by lane and start
    lane: NDArray[np.int32]  # of every drawn row, an index of `lanes`
    lanes: tuple[Lane, ...]
    arrows: Arrows
    dropped: dict[str, int]  # what was left out, by reason
    notes: tuple[str, ...]


_REASONS = {
    Kind.SCALAR: "scalar",
    Kind.SET: "flags",
    Kind.WAIT: "flags",
    Kind.BARRIER: "barriers",
    Kind.MISS: "cache misses",
    Kind.CONTROL: "flow control",
}


def clean(trace: Trace, *, keep_scalar: bool = False) -> Clean:
    """Keeps the work, puts overlapping work on sub-lanes, and turns flags into arrows.

    A kernel that only ran scalar instructions keeps them: an empty picture would hide why it is empty.
    """
    instructions = trace.instructions
    kind = kinds(instructions)
    notes = list(trace.warnings)
    kept = (kind == Kind.WORK) | (kind == Kind.MARK)
    scalar = kind == Kind.SCALAR
    if not keep_scalar and scalar.any() and not (kind == Kind.WORK).any():
        keep_scalar = True
        notes.append("only scalar instructions ran, so the SCALAR lane is kept")
    if keep_scalar:
        kept |= scalar
    return _drawn(trace, kind, kept, notes)


def whole(trace: Trace) -> Clean:
    """Every instruction, flags, barriers and scalar ones too, each on a lane where nothing hides it."""
    kind = kinds(trace.instructions)
    return _drawn(trace, kind, kind != Kind.MISS, list(trace.warnings))


def _drawn(trace: Trace, kind: NDArray[np.uint8], kept: NDArray[np.bool_], notes: list[str]) -> Clean:
    """Core by core, so that what is sorted stays small; only the flags of all cores stand together."""
    import numpy as np

    instructions = trace.instructions
    backwards = int((instructions.end < instructions.start)[kept].sum())
    if backwards:
        notes.append(f"{backwards} instructions end before they start; they are drawn with no length")
    counts = np.bincount(kind[~kept], minlength=max(Kind) + 1)
    dropped: dict[str, int] = {}
    for each, reason in _REASONS.items():
        dropped[reason] = dropped.get(reason, 0) + int(counts[each])
    of_core = dict(grouped(instructions.core))
    anchors = _Anchors(instructions, kind)
    lanes: list[Lane] = []
    rows: list[NDArray[np.int64]] = []
    places: list[NDArray[np.int32]] = []
    for core in sorted(of_core, key=lambda number: core_order(instructions.cores[number])):
        mine = of_core.pop(core)
        mine = mine[kept[mine]]
        pipe = instructions.pipe[mine].astype(np.int64)
        start = instructions.start[mine]
        end = np.maximum(start, instructions.end[mine])
        # a flag that is raised is drawn at that moment, whatever it waited for before
        begin = np.where(kind[mine] == Kind.SET, np.maximum(start, end - 1), start)
        part, order = sublanes(pipe, begin, end)
        found, lane = _lanes(core, instructions.cores[core], pipe, part)
        drawn = order[np.argsort(lane[order], kind="stable")]
        rows.append(mine[drawn])
        places.append(lane[drawn] + np.int32(len(lanes)))
        lanes += found
        anchors.find(core, mine[order], pipe[order])
    return Clean(
        trace=trace,
        rows=np.concatenate([np.zeros(0, np.int64), *rows]),
        lane=np.concatenate([np.zeros(0, np.int32), *places]),
        lanes=tuple(lanes),
        arrows=anchors.arrows(),
        dropped={reason: count for reason, count in dropped.items() if count},
        notes=tuple(notes),
    )


def _lanes(
    core: int, name: str, pipe: NDArray[np.int64], part: NDArray[np.int32]
) -> tuple[list[Lane], NDArray[np.int32]]:
    """The lanes of one core from top to bottom, and which of them each row is on."""
    import numpy as np

    width = int(part.max()) + 1 if len(part) else 1
    key = pipe * width + part
    present = np.flatnonzero(np.bincount(key)).tolist()
    present.sort(key=lambda one: (ORDER.get(one // width, 1000 + one // width), one % width))
    rank = np.zeros(max(present, default=0) + 1, np.int32)
    rank[present] = np.arange(len(present), dtype=np.int32)
    lanes = [
        Lane(core, one // width, one % width, lane_label(name, one // width, one % width)) for one in present
    ]
    return lanes, rank[key]


class _Anchors:
    """Both ends of every arrow: found core by core, by bisection in the rows that are drawn."""

    def __init__(self, instructions: Instructions, kind: NDArray[np.uint8]) -> None:
        import numpy as np

        self._instructions = instructions
        partner = partners(instructions, kind)
        wait = np.flatnonzero(partner >= 0)
        set_ = partner[wait]
        flags = int(((kind == Kind.WAIT) | (kind == Kind.SET)).sum())
        self._unpaired = max(0, flags - len(wait) - len(distinct(set_)))
        order = np.lexsort((wait, instructions.start[set_]))
        self._wait, self._set = wait[order], set_[order]
        self._sets = dict(grouped(instructions.core[self._set]))
        self._waits = dict(grouped(instructions.core[self._wait]))
        # by arrow: a row, -1 where nothing ran before or after, -2 where the lane is not kept
        self._producer, self._consumer = np.full((2, len(wait)), -2)

    def find(self, core: int, rows: NDArray[np.int64], pipe: NDArray[np.int64]) -> None:
        """`rows` of one core in the order of pipe and start."""
        import numpy as np

        columns = self._instructions
        nothing = np.zeros(0, np.int64)
        sets, waits = self._sets.get(core, nothing), self._waits.get(core, nothing)
        set_pipe, wait_pipe = columns.pipe[self._set[sets]], columns.pipe[self._wait[waits]]
        start = columns.start[rows]
        bounds = np.searchsorted(pipe, np.arange(257))
        for each in np.flatnonzero(np.diff(bounds)).tolist():
            here = slice(bounds[each], bounds[each + 1])
            lane = np.concatenate((rows[here], [-1]))  # before the first and behind the last there is nobody
            mine = sets[set_pipe == each]
            before = np.searchsorted(start[here], columns.start[self._set[mine]], "right") - 1
            self._producer[mine] = lane[before]
            mine = waits[wait_pipe == each]
            after = np.searchsorted(start[here], columns.end[self._wait[mine]], "left")
            self._consumer[mine] = lane[after]

    def arrows(self) -> Arrows:
        shown = (self._producer > -2) & (self._consumer > -2)
        anchored = (self._producer >= 0) & (self._consumer >= 0)
        return Arrows(
            producer=self._producer[anchored],
            consumer=self._consumer[anchored],
            set_row=self._set[anchored],
            wait_row=self._wait[anchored],
            hidden=int((~shown).sum()),
            unanchored=int((shown & ~anchored).sum()),
            unpaired=self._unpaired,
        )
