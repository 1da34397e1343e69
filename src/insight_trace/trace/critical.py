"""The critical path: the chain of instructions and waits that makes the total.

Walking back from the instruction that ended last, each step goes to whatever let the current one start: the
flag that it waited for, what a barrier waited for, the instruction before it on its pipe, the scalar unit that issued it,
or what made room in a full queue. The pieces of the path follow each other without gap or overlap, so their cycles add up
to the total.
"""

from __future__ import annotations

import bisect
from array import array
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from insight_trace.model import Instructions, Pipe, Stall, Trace
from insight_trace.recording.flag_pairs import partners
from insight_trace.recording.kinds import KERNEL_END, Kind, finish, kinds
from insight_trace.recording.pipes import units
from insight_trace.recording.stream import grouped

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from insight_trace.recording.busy import Cores

    Column = memoryview[int]

_ISSUE = 4  # cycles from issue to start where nothing else is in the way
_FEW = 8
_START_UP = 64  # cycles that a pipe takes at most between two of its own instructions


class CriticalPath(Struct, frozen=True, eq=False):
    """Pieces in time order. Piece i covers [begin[i], end[i]) and is spent on `row[i]`.

    `idle[i]` marks a piece in which the row had all that it is known to wait for and had not started.
    """

    row: NDArray[np.int64]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    idle: NDArray[np.bool_]

    @property
    def cycles(self) -> int:
        return int((self.end - self.begin).sum())


def critical_path(
    trace: Trace, cores: Cores | None = None, partner: NDArray[np.int64] | None = None
) -> CriticalPath:
    """The chain that ends with the last instruction of the whole trace.

    `cores` and `partner` are the trace's own, where they are known already.
    """
    import numpy as np

    instructions = trace.instructions
    kind = kinds(instructions) if cores is None else cores.kind
    counts = (kind != Kind.MISS) & (kind != Kind.MARK)
    if not counts.any():
        empty = np.zeros(0, np.int64)
        return CriticalPath(empty, empty, empty, np.zeros(0, bool))
    end = finish(instructions) if cores is None else cores.end
    of_core = dict(grouped(instructions.core)) if cores is None else cores.rows
    raised = partners(instructions, kind) if partner is None else partner
    steps = _Steps(instructions, kind, end, raised, of_core)
    lowest = np.iinfo(np.int64).min
    last = int(
        np.argmax(end if counts.all() else np.where(counts, end, lowest))
    )  # the first of those that end last
    origin = int(instructions.start.min() if counts.all() else instructions.start[counts].min())
    pieces = _walk(last, origin, steps)
    rows, begins, ends = (np.array(column, np.int64)[::-1] for column in pieces[:3])
    return CriticalPath(rows, begins, ends, np.array(pieces[3], bool)[::-1])


def _readable(column: NDArray[Any]) -> Column:
    """What a walk reads single values of: those of an array are slow to get, and to make a list of all takes longer."""
    import numpy as np

    return np.ascontiguousarray(column).data


class _Steps:
    """By row, what may have let it start: worked out for a core when the walk first comes to it.

    `before` is the latest row on the same pipe that had ended when this one started, `earlier` the work before it on its
    pipe in the program, `issuer` the scalar row that ended last before it was issued, `drained`, of a set or barrier of one
    pipe, the work of that pipe that it waits for. They hold a row's number and one more, 0 for none: what is never asked
    for takes no memory.
    """

    def __init__(
        self,
        instructions: Instructions,
        kind: NDArray[np.uint8],
        end: NDArray[np.int64],
        partner: NDArray[np.int64],
        of_core: Mapping[int, NDArray[np.int64]],
    ) -> None:
        import numpy as np

        self._instructions, self._kind, self._end = instructions, kind, end
        self._unit = units(instructions.pipe)
        numbers = np.int32 if len(instructions) < 2**31 - 1 else np.int64
        self._found = np.zeros((4, len(instructions)), numbers)
        self.before, self.earlier, self.issuer, self.drained = (column.data for column in self._found)
        self.start, self.end, self.partner = map(_readable, (instructions.start, end, partner))
        self.core, self.issue = _readable(instructions.core), _readable(instructions.issue)
        self.unit = _readable(self._unit)
        self._issued = instructions.operands is not None  # the trace says when a row was issued
        named_end = np.array([name == KERNEL_END for name in instructions.names] or [False], bool)
        # a barrier of every pipe stands where the scalar unit waits for it; one of a pipe stands on that pipe
        self._of_all = np.zeros(256, bool)
        self._of_all[[Pipe.SCALAR, Pipe.SCALARLDST, Pipe.FLOWCTRL, Pipe.ALL]] = True
        self.is_barrier = _readable((kind == Kind.BARRIER) & self._of_all[self._unit])
        self.is_end = _readable(named_end[instructions.name])
        self._of_core = of_core
        self.done: set[int] = set()  # cores that are worked out
        self._queued: dict[int, Column] = {}  # by core: rows that found their pipe's queue full
        self._works: dict[int, NDArray[np.int64]] = {}  # by core: work by its end, the later row first
        self._on_core: dict[int, Column] = {}
        self._by_start: dict[tuple[int, int], Column] = {}  # by core and pipe
        self._by_end: Column | None = None
        self._asked = 0  # how often `ended_by` was

    def come_to(self, row: int) -> None:
        """Works out the core of the row, once."""
        import numpy as np

        core = self.core[row]
        self.done.add(core)

        instructions, kind, end = self._instructions, self._kind, self._end
        rows = self._of_core[core]
        rows = rows[(kind[rows] != Kind.MISS) & (kind[rows] != Kind.MARK)]
        self._queued[core] = _readable(rows[instructions.stall[rows] == Stall.QUEUE])
        works = rows[(kind[rows] == Kind.WORK) | (kind[rows] == Kind.SCALAR)][::-1]
        self._works[core] = works[np.argsort(end[works], kind="stable")]
        for _, places in grouped(self._unit[rows]):
            self._of_pipe(rows[places])
        scalar = rows[instructions.pipe[rows] == Pipe.SCALAR]
        other = rows[(instructions.pipe[rows] != Pipe.SCALAR) & (kind[rows] != Kind.CONTROL)]
        if len(scalar) and len(other):
            by_end = scalar[np.argsort(end[scalar], kind="stable")]
            place = np.searchsorted(end[by_end], instructions.issue[other], "right") - 1
            self._found[2, other] = np.where(place >= 0, by_end[np.maximum(place, 0)] + 1, 0)

    def _of_pipe(self, members: NDArray[np.int64]) -> None:
        import numpy as np

        start, end, kind = self._instructions.start, self._end, self._kind[members]
        by_end = members[np.argsort(end[members], kind="stable")]
        by_start = members[np.argsort(start[members], kind="stable")]
        place = np.searchsorted(end[by_end], start[by_start], "right") - 1
        # rows of no length end where they start: take the nearest one that is not the row itself or after it
        previous = np.where(place >= 0, by_end[np.maximum(place, 0)], -1)
        wrong = (previous == by_start) | ((previous >= 0) & (end[previous] == start[by_start]))
        wrong &= previous >= by_start
        previous = np.where(wrong, np.where(place >= 1, by_end[np.maximum(place - 1, 0)], -1), previous)
        self._found[0, by_start] = np.where(previous == by_start, 0, previous + 1)
        works = (kind == Kind.WORK) | (kind == Kind.SCALAR)
        work = members[works]
        if len(work):
            place = np.searchsorted(work, members) - 1
            self._found[1, members] = np.where(place >= 0, work[np.maximum(place, 0)] + 1, 0)
        until = np.where(works, end[members], np.iinfo(np.int64).min)
        highest = np.maximum.accumulate(until)
        # the place at which the maximum so far was reached last
        place = np.maximum.accumulate(np.where(works & (until == highest), np.arange(len(members)), -1))
        asks = (kind == Kind.SET) | ((kind == Kind.BARRIER) & ~self._of_all[self._unit[members]])
        asks &= place >= 0
        self._found[3, members[asks]] = members[place[asks]] + 1

    def ended_by(self, time: int, here: set[int]) -> int:
        """Any row that had ended by then, the latest first: where the trace does not say what was waited for."""
        import numpy as np

        self._asked += 1
        if self._asked <= _FEW:  # a search of all rows is quicker than to sort them
            ended = (self._kind != Kind.MISS) & (self._kind != Kind.MARK) & (self._end <= time)
            ended[list(here)] = False
            if not ended.any():
                return -1
            return int(np.argmax(np.where(ended, self._end, np.iinfo(np.int64).min)))
        if self._by_end is None:
            rows = np.flatnonzero((self._kind != Kind.MISS) & (self._kind != Kind.MARK))[::-1]
            self._by_end = _readable(rows[np.argsort(self._end[rows], kind="stable")])
        return _latest(self._by_end, self.end, time, here)

    def runs_code(self, row: int, before: int, begin: int) -> bool:
        """Whether the scalar unit ran plain code between two rows: it did if the second started when it was issued."""
        scalar = self.unit[before] == Pipe.SCALAR and self.core[before] == self.core[row]
        return self._issued and scalar and self.issue[row] >= begin - _ISSUE

    def starts_up(self, row: int, before: int, reached: int, begin: int) -> bool:
        """Whether a pipe only took its time from one of its instructions to the next, which it had already."""
        same = self.unit[before] == self.unit[row] and self.core[before] == self.core[row]
        return self._issued and same and self.issue[row] <= reached and begin - reached <= _START_UP

    def _last_on_core(self, row: int, time: int, here: set[int]) -> int:
        core = self.core[row]
        if core not in self._on_core:
            self._on_core[core] = _readable(self._works[core])
        return _latest(self._on_core[core], self.end, time, here)

    def behind_barrier(self, row: int, now: int, here: set[int]) -> int:
        """What a barrier waited for: the last of its core to end; -1 for none."""
        found = self._last_on_core(row, now, here)
        return found if found >= 0 and self.end[found] > self.start[row] else -1

    def behind_end(self, row: int, begin: int, after: int, here: set[int]) -> int:
        """What the end of a kernel waited for, where that ended after `after`; -1 for none."""
        if not self.is_end[row]:
            return -1
        found = self._last_on_core(row, begin, here)
        return found if found >= 0 and self.end[found] > after else -1

    def behind_queue(self, row: int, begin: int, after: int, here: set[int]) -> int:
        """What made room in the queue that held up the issue of `row`, by starting; -1 where none did since `after`."""
        import numpy as np

        queued = self._queued[self.core[row]]
        place = bisect.bisect_right(queued, row) - 1
        if place < 0:
            return -1
        full = queued[place]
        if not after < self.issue[full] <= begin + 1:
            return -1
        key = self.core[full], int(self._unit[full])
        if key not in self._by_start:
            rows = self._of_core[key[0]]
            counts = (self._kind[rows] != Kind.MISS) & (self._kind[rows] != Kind.MARK)
            rows = rows[counts & (self._unit[rows] == key[1])][::-1]
            by_start = np.argsort(self._instructions.start[rows], kind="stable")
            self._by_start[key] = _readable(rows[by_start])
        found = _latest(self._by_start[key], self.start, min(self.issue[full], begin), here)
        return found if found >= 0 and self.start[found] > after else -1


def _walk(last: int, origin: int, steps: _Steps) -> tuple[array[int], array[int], array[int], array[int]]:
    """Row, begin, end and idleness of the pieces, from the last to the first."""
    start, end, is_barrier = steps.start, steps.end, steps.is_barrier
    core, done = steps.core, steps.done
    partner, earlier, before, issuer = steps.partner, steps.earlier, steps.before, steps.issuer
    drained = steps.drained
    pieces = array("q"), array("q"), array("q"), array("b")
    rows, begins, ends, idle = (column.append for column in pieces)

    def piece(row: int, begin: int, until: int, waits: int) -> None:
        rows(row)
        begins(begin)
        ends(until)
        idle(waits)

    row, now = last, end[last]
    here: set[int] = {row}  # rows met without going back in time: none is visited twice
    while True:
        if core[row] not in done:
            steps.come_to(row)
        raised, ahead = partner[row], earlier[row] - 1
        if raised >= 0 and ahead >= 0 and end[raised] < end[ahead] <= now and ahead not in here:
            # the flag was up already: the wait ended when what is in flight before it on its pipe did
            raised = ahead
        elif raised < 0 and is_barrier[row]:
            raised = steps.behind_barrier(row, now, here)
        elif raised < 0 and drained[row] and end[drained[row] - 1] > start[row]:
            # a flag is raised when all before it on its pipe has ended, however early the pipe took it up
            raised = drained[row] - 1
        if raised >= 0 and start[row] <= end[raised] <= now and raised not in here:
            following, reached = raised, end[raised]
            if now > reached:
                piece(row, reached, now, 0)
        else:
            begin = min(now, start[row])
            if now > begin:
                piece(row, begin, now, 0)
            following, reached = before[row] - 1, begin
            if following >= 0 and (end[following] > begin or following in here):
                following = -1
            issued = issuer[row] - 1
            if (
                issued >= 0
                and end[issued] <= begin
                and (following < 0 or end[issued] > end[following])
                and issued not in here
            ):
                following = issued
            if following < 0 or end[following] < begin:
                if ahead >= 0 and start[ahead] <= begin < end[ahead] and ahead not in here:
                    # several in flight on one pipe: this one came when the one ahead let it in
                    if begin < now:
                        here.clear()
                    here.add(ahead)
                    row, now = ahead, begin
                    continue
                after = end[following] if following >= 0 else origin
                last_work = steps.behind_end(row, begin, after, here)
                if last_work >= 0:
                    following = last_work
                else:
                    room = steps.behind_queue(row, begin, after, here)
                    if room >= 0:  # the walk goes on where that one started
                        reached = start[room]
                        if begin > reached:
                            piece(row, reached, begin, 1)
                        if reached < now:
                            here.clear()
                        here.add(room)
                        row, now = room, reached
                        continue
            if following < 0:
                following = steps.ended_by(begin, here)
            if following < 0:
                if begin > origin:
                    piece(row, origin, begin, 1)
                return pieces
            reached = end[following]
            if begin > reached:
                if steps.runs_code(row, following, begin):
                    piece(following, reached, begin, 0)
                else:
                    piece(row, reached, begin, not steps.starts_up(row, following, reached, begin))
        if reached < now:
            here.clear()
        here.add(following)
        row, now = following, reached


def _latest(ordered: Column, key: Column, time: int, here: set[int]) -> int:
    """The last of these rows, which are in the order of `key`, that had come to it by then; -1 for none."""
    low = bisect.bisect_right(ordered, time, key=key.__getitem__)
    while low and ordered[low - 1] in here:
        low -= 1
    return ordered[low - 1] if low else -1
