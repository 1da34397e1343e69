"""From a raw trace to what a person reads: lanes of work, and arrows where one waited for another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from insight_trace.model import Instructions, Trace
from insight_trace.recording.flag_pairs import partners
from insight_trace.recording.kinds import Kind, finish, kinds
from insight_trace.recording.pipes import ORDER, core_order
from insight_trace.recording.stream import distinct
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
    import numpy as np

    instructions = trace.instructions
    backwards = int((instructions.end[kept] < instructions.start[kept]).sum())
    if backwards:
        notes.append(f"{backwards} instructions end before they start; they are drawn with no length")

    chosen = np.flatnonzero(kept)
    group = instructions.core[chosen].astype(np.int64) * 256 + instructions.pipe[chosen]
    end = finish(instructions)[chosen]
    # a flag that is raised is drawn at that moment, whatever it waited for before
    raised = np.maximum(instructions.start[chosen], end - 1)
    begin = np.where(kind[chosen] == Kind.SET, raised, instructions.start[chosen])
    part, order = sublanes(group, begin, end)
    lanes, lane = _lanes(instructions, group, part)
    drawn = np.lexsort((np.argsort(order), lane))
    dropped = {
        reason: int(sum((kind[~kept] == k).sum() for k in _REASONS if _REASONS[k] == reason))
        for reason in dict.fromkeys(_REASONS.values())
    }
    return Clean(
        trace=trace,
        rows=chosen[drawn],
        lane=lane[drawn],
        lanes=lanes,
        arrows=_arrows(instructions, kind, chosen[order]),
        dropped={reason: count for reason, count in dropped.items() if count},
        notes=tuple(notes),
    )


def _lanes(
    instructions: Instructions, group: NDArray[np.int64], part: NDArray[np.int32]
) -> tuple[tuple[Lane, ...], NDArray[np.int32]]:
    import numpy as np

    present, index = np.unique(group * 2**32 + part, return_inverse=True)
    found = [(int(key >> 40), int(key >> 32) & 255, int(key & 0xFFFFFFFF)) for key in present]
    by_name = sorted(range(len(instructions.cores)), key=lambda core: core_order(instructions.cores[core]))
    core_place = {core: place for place, core in enumerate(by_name)}
    places = sorted(
        range(len(found)),
        key=lambda i: (
            core_place[found[i][0]],
            ORDER.get(found[i][1], 1000 + found[i][1]),
            found[i][2],
        ),
    )
    rank = np.empty(len(found), np.int32)
    rank[places] = np.arange(len(found), dtype=np.int32)
    lanes = tuple(
        Lane(core, pipe, sub, lane_label(instructions.cores[core], pipe, sub))
        for core, pipe, sub in (found[i] for i in places)
    )
    return lanes, rank[index].astype(np.int32)


def _arrows(instructions: Instructions, kind: NDArray[np.uint8], by_start: NDArray[np.int64]) -> Arrows:
    """`by_start`: the kept rows by (core, pipe, start), so that both ends are found by bisection."""
    import numpy as np

    partner = partners(instructions, kind)
    wait = np.flatnonzero(partner >= 0)
    set_ = partner[wait]
    flags = int(((kind == Kind.WAIT) | (kind == Kind.SET)).sum())
    unpaired = max(0, flags - len(wait) - len(distinct(set_)))
    order = np.lexsort((wait, instructions.start[set_]))
    wait, set_ = wait[order], set_[order]

    group = instructions.core.astype(np.int64) * 256 + instructions.pipe
    groups, dense = np.unique(group[by_start], return_inverse=True)
    if not len(by_start) or not len(wait):
        empty = np.zeros(0, np.int64)
        return Arrows(empty, empty, empty, empty, len(wait), 0, unpaired)
    first = np.searchsorted(dense, np.arange(len(groups)), "left")
    past = np.searchsorted(dense, np.arange(len(groups)), "right")
    floor = int(instructions.start.min())
    reach = int(finish(instructions).max()) - floor + 2
    keys = dense * reach + (instructions.start[by_start] - floor)

    def place(rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        index = np.minimum(np.searchsorted(groups, group[rows]), len(groups) - 1)
        return index, groups[index] == group[rows]

    source, source_kept = place(set_)
    target, target_kept = place(wait)
    shown = source_kept & target_kept
    before = np.searchsorted(keys, source * reach + (instructions.start[set_] - floor), "right") - 1
    after = np.searchsorted(keys, target * reach + (instructions.end[wait] - floor), "left")
    anchored = shown & (before >= first[source]) & (after < past[target])
    return Arrows(
        producer=by_start[before[anchored]],
        consumer=by_start[after[anchored]],
        set_row=set_[anchored],
        wait_row=wait[anchored],
        hidden=int((~shown).sum()),
        unanchored=int((shown & ~anchored).sum()),
        unpaired=unpaired,
    )
