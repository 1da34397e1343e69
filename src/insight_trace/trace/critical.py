"""The critical path: the chain of instructions and waits that makes the total.

Walking back from the instruction that ended last, each step goes to whatever let the current one start: the
flag that it waited for, what a barrier waited for, the instruction before it on its pipe, the scalar unit that issued it,
or what made room in a full queue. The pieces of the path follow each other without gap or overlap, so their cycles add up
to the total.
"""

from __future__ import annotations

import bisect
from array import array
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from insight_trace.model import Pipe, Stall, Trace
from insight_trace.recording.flag_pairs import partners
from insight_trace.recording.kinds import KERNEL_END, Kind, finish, kinds
from insight_trace.recording.pipes import units
from insight_trace.recording.stream import distinct

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Column = memoryview[int]

_ISSUE = 4  # cycles from issue to start where nothing else is in the way
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


def critical_path(trace: Trace) -> CriticalPath:
    """The chain that ends with the last instruction of the whole trace."""
    import numpy as np

    instructions = trace.instructions
    kind = kinds(instructions)
    considered = np.flatnonzero((kind != Kind.MISS) & (kind != Kind.MARK))
    if not len(considered):
        empty = np.zeros(0, np.int64)
        return CriticalPath(empty, empty, empty, np.zeros(0, bool))
    start, end = instructions.start, finish(instructions)
    before, earlier = _before_on_pipe(trace, kind, start, considered)
    issuer = _issuer(trace, kind, considered)
    partner = partners(instructions, kind)
    by_end = considered[np.lexsort((-considered, end[considered]))]
    origin = int(instructions.start[considered].min())
    holds = _holds(trace, kind, end, considered)
    drained = _drained(trace, kind, end, considered)
    columns = start, end, before, earlier, issuer, partner, drained, by_end
    start_, end_, before_, earlier_, issuer_, partner_, drained_, by_end_ = map(_readable, columns)
    steps = _Steps(start_, end_, before_, earlier_, issuer_, partner_, drained_, by_end_, holds)
    pieces = _walk(int(by_end[-1]), origin, steps)
    rows, begins, ends = (np.array(column, np.int64)[::-1] for column in pieces[:3])
    return CriticalPath(rows, begins, ends, np.array(pieces[3], bool)[::-1])


def _readable(column: NDArray[Any]) -> Column:
    """What a walk reads single values of: those of an array are slow to get, and to make a list of all takes longer."""
    import numpy as np

    return np.ascontiguousarray(column, np.int64).data


class _Steps(Struct, frozen=True):
    """By row, what may have let it start."""

    start: Column
    end: Column
    before: Column
    earlier: Column
    issuer: Column
    partner: Column
    drained: Column  # of sets and barriers of a pipe: the work of the pipe that they wait for
    by_end: Column
    holds: _Holds


class _Holds(Struct, frozen=True):
    """Barriers, and instructions that a full queue kept from being issued, with all after them."""

    barriers: frozenset[int]
    ends: frozenset[int]  # of kernels: they drain every pipe
    core: Column
    pipe: Column
    issue: Column
    issued: bool  # the trace says when a row was issued
    queued: dict[int, Column]  # by core: rows that found their pipe's queue full
    on_core: dict[int, Column]  # rows of a core by end
    on_pipe: dict[tuple[int, int], Column]  # rows of a pipe by end

    def runs_code(self, row: int, before: int, begin: int) -> bool:
        """Whether the scalar unit ran plain code between two rows: it did if the second started when it was issued."""
        scalar = self.pipe[before] == Pipe.SCALAR and self.core[before] == self.core[row]
        return self.issued and scalar and self.issue[row] >= begin - _ISSUE

    def starts_up(self, row: int, before: int, reached: int, begin: int) -> bool:
        """Whether a pipe only took its time from one of its instructions to the next, which it had already."""
        same = self.pipe[before] == self.pipe[row] and self.core[before] == self.core[row]
        return self.issued and same and self.issue[row] <= reached and begin - reached <= _START_UP

    def behind_barrier(self, row: int, now: int, start: int, end: Column, here: set[int]) -> int:
        """What a barrier waited for: the last of its core to end; -1 for none."""
        found = _latest(self.on_core[self.core[row]], end, now, here)
        return found if found >= 0 and end[found] > start else -1

    def behind_end(self, row: int, begin: int, after: int, end: Column, here: set[int]) -> int:
        """What the end of a kernel waited for, where that ended after `after`; -1 for none."""
        if row not in self.ends:
            return -1
        found = _latest(self.on_core[self.core[row]], end, begin, here)
        return found if found >= 0 and end[found] > after else -1

    def behind_queue(self, row: int, begin: int, after: int, end: Column, here: set[int]) -> int:
        """What made room in the queue that held up the issue of `row`; -1 where none did since `after`."""
        queued = self.queued.get(self.core[row])
        place = bisect.bisect_right(queued, row) - 1 if queued else -1
        if queued is None or place < 0:
            return -1
        full = queued[place]
        if not after < self.issue[full] <= begin + 1:
            return -1
        found = _latest(
            self.on_pipe[self.core[full], self.pipe[full]], end, min(self.issue[full], begin), here
        )
        return found if found >= 0 and end[found] > after else -1


def _holds(trace: Trace, kind: NDArray[np.uint8], end: NDArray[np.int64], rows: NDArray[np.int64]) -> _Holds:
    import numpy as np

    instructions = trace.instructions
    unit = units(instructions.pipe)
    barriers = rows[(kind[rows] == Kind.BARRIER) & _of_all(unit[rows])]
    queued = rows[instructions.stall[rows] == Stall.QUEUE]
    works = rows[(kind[rows] == Kind.WORK) | (kind[rows] == Kind.SCALAR)]
    works = works[np.lexsort((-works, end[works]))]
    on_core: dict[int, Column] = {}
    named_end = np.array([name == KERNEL_END for name in instructions.names] or [False], bool)
    ends = rows[named_end[instructions.name[rows]]]
    for core in distinct(instructions.core[np.concatenate((barriers, ends))]).tolist():
        on_core[core] = _readable(works[instructions.core[works] == core])
    on_pipe: dict[tuple[int, int], Column] = {}
    by_core: dict[int, Column] = {}
    for core in distinct(instructions.core[queued]).tolist():
        mine = queued[instructions.core[queued] == core]
        by_core[core] = _readable(mine)
        for pipe in distinct(unit[mine]).tolist():
            chosen = (instructions.core[works] == core) & (unit[works] == pipe)
            on_pipe[core, pipe] = _readable(works[chosen])
    columns = _readable(instructions.core), _readable(unit), _readable(instructions.issue)
    issued = instructions.operands is not None
    drains = frozenset(barriers.tolist()), frozenset(ends.tolist())
    return _Holds(*drains, *columns, issued, by_core, on_core, on_pipe)


def _of_all(unit: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """A barrier of every pipe stands where the scalar unit waits for it; one of a pipe stands on that pipe."""
    import numpy as np

    return np.isin(unit, (Pipe.SCALAR, Pipe.SCALARLDST, Pipe.FLOWCTRL, Pipe.ALL))


def _drained(
    trace: Trace, kind: NDArray[np.uint8], end: NDArray[np.int64], rows: NDArray[np.int64]
) -> NDArray[np.int64]:
    """For sets and barriers of one pipe, the row before them on it that ended last; -1 elsewhere."""
    import numpy as np

    instructions = trace.instructions
    unit = units(instructions.pipe)
    found = np.full(len(instructions), -1, np.int64)
    group = instructions.core[rows].astype(np.int64) * 256 + unit[rows]
    for key in distinct(group):
        members = rows[group == key]
        works = (kind[members] == Kind.WORK) | (kind[members] == Kind.SCALAR)
        until = np.where(works, end[members], np.iinfo(np.int64).min)
        highest = np.maximum.accumulate(until)
        # the place at which the maximum so far was reached last
        place = np.maximum.accumulate(np.where(works & (until == highest), np.arange(len(members)), -1))
        asks = (kind[members] == Kind.SET) | ((kind[members] == Kind.BARRIER) & ~_of_all(unit[members]))
        asks &= place >= 0
        found[members[asks]] = members[place[asks]]
    return found


def _walk(last: int, origin: int, steps: _Steps) -> tuple[array[int], array[int], array[int], array[int]]:
    """Row, begin, end and idleness of the pieces, from the last to the first."""
    start, end, holds = steps.start, steps.end, steps.holds
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
        raised, ahead = partner[row], earlier[row]
        if raised >= 0 and ahead >= 0 and end[raised] < end[ahead] <= now and ahead not in here:
            # the flag was up already: the wait ended when what is in flight before it on its pipe did
            raised = ahead
        elif raised < 0 and row in holds.barriers:
            raised = holds.behind_barrier(row, now, start[row], end, here)
        elif raised < 0 and drained[row] >= 0 and end[drained[row]] > start[row]:
            # a flag is raised when all before it on its pipe has ended, however early the pipe took it up
            raised = drained[row]
        if raised >= 0 and start[row] <= end[raised] <= now and raised not in here:
            following, reached = raised, end[raised]
            if now > reached:
                piece(row, reached, now, 0)
        else:
            begin = min(now, start[row])
            if now > begin:
                piece(row, begin, now, 0)
            following, reached = before[row], begin
            if following >= 0 and (end[following] > begin or following in here):
                following = -1
            issued = issuer[row]
            if (
                issued >= 0
                and end[issued] <= begin
                and (following < 0 or end[issued] > end[following])
                and issued not in here
            ):
                following = issued
            if following < 0 or end[following] < begin:
                if ahead >= 0 and start[ahead] < begin < end[ahead] and ahead not in here:
                    # several in flight on one pipe: this one came when the one ahead let it in
                    if begin < now:
                        here.clear()
                    here.add(ahead)
                    row, now = ahead, begin
                    continue
                after = end[following] if following >= 0 else origin
                last_work = holds.behind_end(row, begin, after, end, here)
                if last_work >= 0:
                    following = last_work
                elif holds.queued:
                    room = holds.behind_queue(row, begin, after, end, here)
                    following = room if room >= 0 else following
            if following < 0:
                following = _latest(steps.by_end, end, begin, here)
            if following < 0:
                if begin > origin:
                    piece(row, origin, begin, 1)
                return pieces
            reached = end[following]
            if begin > reached:
                if holds.runs_code(row, following, begin):
                    piece(following, reached, begin, 0)
                else:
                    piece(row, reached, begin, not holds.starts_up(row, following, reached, begin))
        if reached < now:
            here.clear()
        here.add(following)
        row, now = following, reached


def _latest(by_end: Column, end: Column, time: int, here: set[int]) -> int:
    """Any row that had ended by then, the latest first: where the trace does not say what was waited for."""
    low = bisect.bisect_right(by_end, time, key=end.__getitem__)
    while low and by_end[low - 1] in here:
        low -= 1
    return by_end[low - 1] if low else -1


def _before_on_pipe(
    trace: Trace, kind: NDArray[np.uint8], start: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """On the same pipe: the latest row that had ended when this one started, and the work before it in the program.

    -1 for none.
    """
    import numpy as np

    instructions = trace.instructions
    found = np.full(len(instructions), -1, np.int64)
    earlier = found.copy()
    group = instructions.core[rows].astype(np.int64) * 256 + units(instructions.pipe)[rows]
    end = finish(instructions)
    for key in distinct(group):
        members = rows[group == key]
        by_end = members[np.lexsort((members, end[members]))]
        by_start = members[np.lexsort((members, start[members]))]
        place = np.searchsorted(end[by_end], start[by_start], "right") - 1
        # rows of no length end where they start: take the nearest one that is not the row itself or after it
        previous = np.where(place >= 0, by_end[np.maximum(place, 0)], -1)
        wrong = (previous == by_start) | ((previous >= 0) & (end[previous] == start[by_start]))
        wrong &= previous >= by_start
        previous = np.where(wrong, np.where(place >= 1, by_end[np.maximum(place - 1, 0)], -1), previous)
        found[by_start] = np.where(previous == by_start, -1, previous)
        work = np.sort(members[(kind[members] == Kind.WORK) | (kind[members] == Kind.SCALAR)])
        place = np.searchsorted(work, members) - 1
        earlier[members] = np.where(place >= 0, work[np.maximum(place, 0)], -1) if len(work) else -1
    return found, earlier


def _issuer(trace: Trace, kind: NDArray[np.uint8], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """The scalar row that ended last before a row of another pipe was issued, -1 for none."""
    import numpy as np

    instructions = trace.instructions
    found = np.full(len(instructions), -1, np.int64)
    end = finish(instructions)
    on_scalar = instructions.pipe == Pipe.SCALAR
    for core in distinct(instructions.core[rows]):
        mine = rows[instructions.core[rows] == core]
        scalar = mine[on_scalar[mine]]
        other = mine[~on_scalar[mine] & (kind[mine] != Kind.CONTROL)]
        if not len(scalar) or not len(other):
            continue
        by_end = scalar[np.lexsort((scalar, end[scalar]))]
        place = np.searchsorted(end[by_end], instructions.issue[other], "right") - 1
        found[other] = np.where(place >= 0, by_end[np.maximum(place, 0)], -1)
    return found
