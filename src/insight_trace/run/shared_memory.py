"""Kernels that run at the same time share HBM, L2 and the unit that looks pages up: how far each has come, which ends next.

A kernel is known by what it took alone: its cycles, the bytes it asked of HBM and of L2 in each of them, the pages that it
looked up, and the part of its time in which a pipe moves data. When those that run ask for more than the chip gives, that
part of every kernel stretches by one factor, chosen so that all together get what there is. Kernels with the same part (in
eighths) advance alike, so one clock serves all of them: a start or an end costs the same however many run. Whole numbers
throughout.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PARTS = 8  # how finely the part of a kernel that moves data is told
RATE = 1024  # rates are in thousandths (binary) of bytes a cycle
WALKS = 1 << 30  # those of pages are in so many cycles
_ONE = 1024
_MOST = 64 * _ONE  # no kernel is slowed down further


@dataclass(frozen=True, slots=True, eq=False)
class MemoryDemand:
    """Of each row of Work.times and each of its members: what the kernel asks for while it runs alone."""

    part: NDArray[np.uint8]  # of its time that moves data, in eighths
    hbm: NDArray[np.int64]
    l2: NDArray[np.int64]


class RunningKernels:
    """What runs now. Every kernel has a number; times are whole cycles."""

    def __init__(self, hbm: int, l2: int, walks: int = 0) -> None:
        self._limits = (hbm, l2, walks)  # RATE, RATE, WALKS; 0: no limit
        self._now = 0
        self._slowness = _ONE
        self._clock = [0] * (PARTS + 1)
        self._ends: list[list[tuple[int, int, tuple[int, int, int]]]] = [[] for _ in range(PARTS + 1)]
        self._asked = [[0, 0, 0] for _ in range(PARTS + 1)]

    def begin(self, kernel: int, now: int, cycles: int, part: int, hbm: int, l2: int, walks: int = 0) -> None:
        self._advance(now)
        heapq.heappush(self._ends[part], (self._clock[part] + cycles * _ONE, kernel, (hbm, l2, walks)))
        self._ask(part, (hbm, l2, walks), 1)

    def next_end(self) -> int | None:
        """When the next kernel ends, if nothing else begins or ends before."""
        found: int | None = None
        for part, ends in enumerate(self._ends):
            if ends:
                left = ends[0][0] - self._clock[part]
                at = self._now - (-left * self._stretch(part)) // (PARTS * _ONE * _ONE)
                found = at if found is None or at < found else found
        return found

    def ended(self, now: int) -> list[int]:
        """The kernels that have ended by now, in the order of their numbers."""
        self._advance(now)
        found = []
        for part, ends in enumerate(self._ends):
            while ends and ends[0][0] <= self._clock[part]:
                _, kernel, rates = heapq.heappop(ends)
                found.append(kernel)
                self._ask(part, rates, -1)
        return sorted(found)

    def _stretch(self, part: int) -> int:
        """Of a kernel's time, times PARTS * _ONE."""
        return (PARTS - part) * _ONE + part * self._slowness

    def _advance(self, now: int) -> None:
        passed, self._now = now - self._now, now
        if passed:
            for part, ends in enumerate(self._ends):
                if ends:
                    # rounded up: a kernel has ended at the cycle that next_end gave
                    self._clock[part] -= -passed * PARTS * _ONE * _ONE // self._stretch(part)

    def _ask(self, part: int, rates: tuple[int, int, int], sign: int) -> None:
        if not any(rates):
            return
        for which, rate in enumerate(rates):
            self._asked[part][which] += sign * rate
        self._slowness = _ONE
        if not self._crowded():
            return
        low, high = _ONE, _MOST
        while high - low > 8:
            self._slowness = (low + high) // 2
            if self._crowded():
                low = self._slowness
            else:
                high = self._slowness
        self._slowness = high

    def _crowded(self) -> bool:
        for which, limit in enumerate(self._limits):
            if limit:
                asked = sum(
                    kind[which] * PARTS * _ONE // self._stretch(part)
                    for part, kind in enumerate(self._asked)
                    if kind[which]
                )
                if asked > limit:
                    return True
        return False
