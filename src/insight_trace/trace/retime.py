"""The same instructions once more, with something changed: what a run would have taken.

A recording says when each row was issued, started and ended, and why. From that every row gets what it takes itself,
apart from what it waited for; placed again with nothing changed, all times come out as recorded. A change takes a wait
away, makes a row shorter or puts rows in another order, and the rows are placed again. What the rows of other cores do
to the speed of memory is kept as it was.
"""

from __future__ import annotations

import itertools
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from insight_trace.chips import roofs_of
from insight_trace.model import Pipe, Trace
from insight_trace.recording.flag_pairs import partners
from insight_trace.recording.kinds import KERNEL_END, Kind, kinds
from insight_trace.recording.pipes import VECTOR_LANES, units
from insight_trace.recording.stream import distinct
from insight_trace.trace.work import path_of

# Rows from which on a change is not tried: to place 60,000 takes a fifth of a second.
MOST_ROWS = 60_000
_SCALAR = frozenset((int(Pipe.SCALAR), int(Pipe.SCALARLDST)))
_INNER_LANES = tuple(int(lane) for lane in VECTOR_LANES if lane != Pipe.PUSHQ)
_HOLDS = (Kind.WAIT, Kind.BARRIER)  # nothing of their pipe starts before they have ended
_MOST_QUEUED = 64  # no queue is as deep
_MILLI = 1000


class Change(Struct, frozen=True):
    """What is different in a run that never was."""

    waits_for: Mapping[int, int] = field(default_factory=dict)  # wait -> another set, -1: none
    without: frozenset[int] = frozenset()  # rows that do not happen
    takes: Mapping[int, int] = field(default_factory=dict)  # row -> thousandths of a cycle
    after: Mapping[int, Sequence[int]] = field(default_factory=dict)  # row -> rows that end before it starts
    order: Mapping[int, Sequence[int]] = field(default_factory=dict)  # core -> its rows in another order

    def with_more(self, other: Change) -> Change:
        """Both at once."""
        return Change(
            {**self.waits_for, **other.waits_for},
            self.without | other.without,
            {**self.takes, **other.takes},
            {**self.after, **other.after},
            {**self.order, **other.order},
        )


class _Place:
    """Where a core stands while its rows are placed."""

    def __init__(self, rows: Sequence[int], begin: int) -> None:
        self.rows, self.next = rows, 0
        self.begin = self.clock = begin
        self.last_on: dict[int, int] = {}  # by pipe: its last row
        self.moved: dict[int, int] = {}  # by pipe: its last transfer
        self.drained: dict[int, int] = defaultdict(int)  # by pipe: when all its work has ended
        self.queues: dict[int, list[int]] = defaultdict(list)  # by pipe: when rows started


class Retiming:
    """What every row of a trace takes itself, and what it depends on."""

    def __init__(self, trace: Trace) -> None:
        import numpy as np

        instructions = trace.instructions
        kind = kinds(instructions)
        if instructions.operands is not None:
            issue, start, end = instructions.operands.times.astype(np.int64).T
        else:
            columns = instructions.issue, instructions.start, instructions.end
            issue, start, end = (column.astype(np.int64) * _MILLI for column in columns)
        self.trace = trace
        self.roofs = roofs_of(trace.soc_version)
        self.issue, self.start = issue.tolist(), start.tolist()
        self.end: list[int] = np.maximum(start, end).tolist()
        self.kind = kind.tolist()
        self.pipe = units(instructions.pipe).tolist()
        self.core = instructions.core.tolist()
        self.bytes = np.where(kind == Kind.WORK, instructions.process_bytes, 0).tolist()
        self.partner = partners(instructions, kind).tolist()
        ends = np.array([name == KERNEL_END for name in instructions.names] or [False], bool)
        self.is_end = frozenset(np.flatnonzero(ends[instructions.name]).tolist())
        # the pipe itself goes on to these: the scalar unit does not issue them
        self.inner = frozenset(np.flatnonzero(np.isin(instructions.pipe, _INNER_LANES)).tolist())
        counted = np.flatnonzero((kind != Kind.MISS) & (kind != Kind.MARK))
        self.order = {
            core: counted[instructions.core[counted] == core].tolist()
            for core in distinct(instructions.core[counted]).tolist()
        }
        issued = counted[~np.isin(instructions.pipe[counted], tuple(_SCALAR))]
        self.dispatch = int((start - issue)[issued].min()) if len(issued) else 0
        self.depths = self._queue_depths()
        count = len(instructions)
        self.gap, self.occupies, self.takes = [0] * count, [0] * count, [0] * count
        self.data, self.free = [0] * count, [0] * count  # of transfers
        self.unseen: list[int] = []  # rows of which nothing shows how long they keep their pipe
        self._learn()
        flags = [
            self.takes[r] for r in counted.tolist() if self.kind[r] == Kind.WAIT and self.partner[r] >= 0
        ]
        self.handover = 2 * min(flags, default=0)  # what a flag costs between two pipes, set and wait
        self.recorded = self.place(Change())

    def _queue_depths(self) -> dict[tuple[int, int], int]:
        """By core and pipe, how many its queue holds: an issue into a full one came when the one so many before it started.

        Whatever else held the row later: its stall names the longest wait alone. Queues that were never full have no entry.
        """
        usual = self._usual_gap()
        votes: dict[tuple[int, int], dict[int, int]] = defaultdict(lambda: defaultdict(int))
        for core, rows in self.order.items():
            taken: dict[int, list[int]] = defaultdict(list)
            before = self.start[rows[0]]
            for row in rows:
                if self.pipe[row] in _SCALAR or row in self.inner:
                    before = max(before, self.end[row]) if self.pipe[row] in _SCALAR else before
                    continue
                mine = taken[self.pipe[row]]
                if self.issue[row] - before > usual:
                    last = mine[: -_MOST_QUEUED - 1 : -1]
                    if self.issue[row] in last:
                        votes[core, self.pipe[row]][last.index(self.issue[row]) + 1] += 1
                mine.append(self.start[row])
                before = max(before, self.issue[row])
        return {key: max(found, key=found.__getitem__) for key, found in votes.items()}

    def _learn(self) -> None:
        usual = self._usual_gap()
        for rows in self.order.values():
            at = _Place(rows, self.start[rows[0]])
            for row in rows:
                pipe, own = self.pipe[row], self.pipe[row] in _SCALAR
                begin = self.start[row] if own else self.issue[row]
                self.gap[row] = max(0, begin - at.clock)
                depth = 0 if own or row in self.inner else self.depths.get((self.core[row], pipe), 0)
                if depth and len(at.queues[pipe]) >= depth and begin == at.queues[pipe][-depth]:
                    self.gap[row] = min(self.gap[row], usual)
                elif row in self.is_end:
                    self.gap[row] = max(0, begin - max(at.clock, *at.drained.values(), at.begin))
                self._learn_own(row, at)
                if own:
                    at.clock = self.end[row]
                    continue
                at.clock = max(at.clock, begin)
                if row not in self.inner:
                    at.queues[pipe].append(self.start[row])
                self._learn_occupied(row, at)
                at.last_on[pipe] = row
                at.drained[pipe] = max(at.drained[pipe], self.end[row])
            for row in at.last_on.values():
                self.occupies[row] = self.end[row] - self.start[row]
        self._learn_transfers()

    def _usual_gap(self) -> int:
        gaps = (
            self.issue[other] - self.issue[one]
            for rows in self.order.values()
            for one, other in itertools.pairwise(rows)
            if self.pipe[one] not in _SCALAR and self.pipe[other] not in _SCALAR
        )
        return min((gap for gap in gaps if gap > 0), default=0)

    def _learn_occupied(self, row: int, at: _Place) -> None:
        """How long the row before kept its pipe from starting this one."""
        previous = at.last_on.get(self.pipe[row])
        if previous is None or self.kind[previous] in _HOLDS:
            return
        between = self.start[row] - self.start[previous]
        held = self.start[row] > self.issue[row] + self.dispatch
        # a flag waits for its pipe, and lets the next instruction pass meanwhile
        alone = (
            self.takes[previous]
            if self.kind[previous] == Kind.SET
            else self.end[previous] - self.start[previous]
        )
        own = between if held else min(between, alone)
        self.occupies[previous] = max(0, own)
        if not held and own < between:
            self.unseen.append(previous)

    def _learn_own(self, row: int, at: _Place) -> None:
        """What a row takes from the moment on at which nothing keeps it any more."""
        kind, pipe = self.kind[row], self.pipe[row]
        base = self.start[row]
        if kind == Kind.WAIT and self.partner[row] >= 0:
            base = max(base, self.end[self.partner[row]])
        elif kind == Kind.BARRIER and pipe in _SCALAR:
            base = max(base, *at.drained.values(), at.begin)
        elif kind in (Kind.SET, Kind.BARRIER):
            base = max(base, at.drained[pipe])
        elif self.bytes[row] > 0:
            before = at.moved.get(pipe)
            if before is not None and base < self.end[before] < self.end[row]:
                self.data[row] = self.end[row] - self.end[before]  # it came through behind the one before
            at.moved[pipe] = row
        self.takes[row] = max(0, self.end[row] - base)

    def _learn_transfers(self) -> None:
        """What a transfer takes alone, and on the way that transfers in flight share."""
        moves = [row for rows in self.order.values() for row in rows if self.bytes[row] > 0]
        alone: dict[tuple[int, int], int] = {}
        rates: dict[int, list[float]] = defaultdict(list)
        for row in moves:
            key = self.pipe[row], self.bytes[row]
            alone[key] = min(alone.get(key, self.takes[row]), self.takes[row])
            if self.data[row] > 0:
                rates[key[0]].append(self.bytes[row] / self.data[row])
        seen = {pipe: statistics.median(found) for pipe, found in rates.items()}
        for row in moves:
            key = self.pipe[row], self.bytes[row]
            self.free[row] = alone[key] if self.data[row] else self.takes[row]
            if not self.data[row]:
                usual = seen.get(key[0]) or self.roof(row)
                own = self.bytes[row] / usual if usual else self.takes[row]
                self.data[row] = min(self.takes[row], round(own))
        for row in self.unseen:  # several transfers may be in flight
            if self.bytes[row] > 0:
                self.occupies[row] = min(self.occupies[row], self.data[row])

    def roof(self, row: int) -> float:
        """Bytes in a thousandth of a cycle that the path of a transfer carries; 0 where nobody has said."""
        instructions = self.trace.instructions
        core, name = instructions.cores[self.core[row]], instructions.names[instructions.name[row]]
        rate = self.roofs.bandwidth.get(path_of(core, self.pipe[row], name))
        return rate * 1e3 / self.trace.mhz / _MILLI if rate else 0.0

    def cycles(self, change: Change | None = None) -> int | None:
        """Of the whole run; None where rows wait for each other in a circle."""
        placed = self.recorded if change is None else self.place(change)
        return None if placed is None else round(placed / _MILLI)

    def place(self, change: Change) -> int | None:
        """Thousandths of a cycle from the first start to the last end."""
        count = len(self.start)
        start_of, end_of = [-1] * count, [-1] * count
        cores = [
            _Place(change.order.get(core, rows), self.start[rows[0]]) for core, rows in self.order.items()
        ]
        while any(core.next < len(core.rows) for core in cores):
            moved = [self._go_on(core, change, start_of, end_of) for core in cores]
            if not any(moved):
                return None
        return max(end_of, default=0) - min((core.begin for core in cores), default=0)

    def _go_on(self, at: _Place, change: Change, start_of: list[int], end_of: list[int]) -> bool:
        """Places rows of a core as far as what they wait for has its time; whether there were any."""
        rows, first, drained = at.rows, at.next, at.drained
        for place in range(first, len(rows)):
            row = rows[place]
            at.next = place
            if row in change.without:
                continue
            kind, pipe = self.kind[row], self.pipe[row]
            partner = change.waits_for.get(row, self.partner[row]) if kind == Kind.WAIT else -1
            if partner >= 0 and end_of[partner] < 0 and partner not in change.without:
                return place > first
            begin = at.clock + self.gap[row]
            own = pipe in _SCALAR
            if row in self.is_end:
                begin = max(begin, *drained.values(), at.begin)
            elif not own:
                queue = at.queues[pipe]
                depth = self.depths.get((self.core[row], pipe), 0)
                if depth and len(queue) >= depth and row not in self.inner:
                    begin = max(begin, queue[-depth])
                at.clock = begin
                begin = max(begin + self.dispatch, self._pipe_free(at, pipe, change, start_of, end_of))
            if row in change.after:
                begin = max([begin, *(end_of[other] + self.handover for other in change.after[row])])
            start_of[row] = base = begin
            if partner >= 0:
                base = max(base, end_of[partner])
            elif kind == Kind.BARRIER and own:
                base = max(base, *drained.values(), at.begin)
            elif kind in (Kind.SET, Kind.BARRIER):
                base = max(base, drained[pipe])
            end = base + change.takes.get(row, self.takes[row])
            if self.bytes[row] > 0:
                before = at.moved.get(pipe)
                if before is not None:
                    alone = change.takes.get(row, self.free[row])
                    end = max(begin + alone, end_of[before] + min(alone, self.data[row]))
                at.moved[pipe] = row
            end_of[row] = end
            if own:
                at.clock = end
                continue
            if row not in self.inner:
                queue.append(begin)
            at.last_on[pipe] = row
            drained[pipe] = max(drained[pipe], end)
        at.next = len(rows)
        return len(rows) > first

    def _pipe_free(
        self, at: _Place, pipe: int, change: Change, start_of: list[int], end_of: list[int]
    ) -> int:
        previous = at.last_on.get(pipe)
        if previous is None:
            return 0
        if self.kind[previous] in _HOLDS:
            return end_of[previous]
        occupies = self.occupies[previous]
        if previous in change.takes:
            occupies = max(0, occupies + change.takes[previous] - self.takes[previous])
        return start_of[previous] + occupies
