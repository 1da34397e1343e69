"""Sets of time: unions of intervals and how much of one lies inside another. All in sorted arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Spans(Struct, frozen=True, eq=False):
    """Disjoint intervals in order, and the length of all before each."""

    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    before: NDArray[np.int64]

    @property
    def length(self) -> int:
        return int((self.end - self.begin).sum())

    def covered(self, time: NDArray[np.int64]) -> NDArray[np.int64]:
        """How much of the set lies before each point in time."""
        import numpy as np

        if not len(self.begin):
            return np.zeros(len(time), np.int64)
        index = np.searchsorted(self.begin, time, "right") - 1
        inside = np.minimum(time, self.end[index]) - self.begin[index]
        return np.where(index < 0, 0, self.before[index] + inside)

    def inside(self, begin: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
        """How much of the set lies inside each interval."""
        return self.covered(end) - self.covered(begin)

    def overlap(self, other: Spans) -> int:
        return int(self.inside(other.begin, other.end).sum())


def union(begin: NDArray[np.int64], end: NDArray[np.int64]) -> Spans:
    """The union of intervals in any order; empty and backward ones add nothing."""
    import numpy as np

    proper = end > begin
    begin, end = begin[proper], end[proper]
    if not len(begin):
        empty = np.zeros(0, np.int64)
        return Spans(empty, empty, empty)
    if (begin[1:] < begin[:-1]).any():
        order = np.argsort(begin, kind="stable")
        begin, end = begin[order], end[order]
    latest = np.maximum.accumulate(end)
    opens = np.concatenate(([0], np.flatnonzero(begin[1:] > latest[:-1]) + 1))
    starts = begin[opens]
    ends = np.concatenate((latest[opens[1:] - 1], latest[-1:]))
    before = np.cumsum(ends - starts)
    before -= ends - starts
    return Spans(starts, ends, before)


def added(group: NDArray[np.int64], begin: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """How much each interval adds to those before it in its group; a group's sum is the length of its union.

    Groups stand together, and in each the intervals in the order of their begin.
    """
    import numpy as np

    if not len(begin):
        return np.zeros(0, np.int64)
    # one axis for all: every group begins behind the end of the one before
    shift = np.cumsum(np.r_[0, group[1:] != group[:-1]]) * (int(end.max()) - int(begin.min()) + 1)
    first, last = begin + shift, end + shift
    seen = np.r_[first[0], np.maximum.accumulate(last)[:-1]]
    spent: NDArray[np.int64] = np.maximum(last - np.maximum(first, seen), 0)
    return spent


def together(first: Spans, second: Spans) -> Spans:
    """The union of two sets."""
    import numpy as np

    if not len(second.begin) or not len(first.begin):
        return first if len(first.begin) else second
    return union(np.concatenate((first.begin, second.begin)), np.concatenate((first.end, second.end)))
