"""Pages that the tasks of a run load from: a cluster looks each of them up once, for a run gets its buffers anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from insight_trace.chips import Chip
from insight_trace.model import Pipe
from insight_trace.outcome import Simulation
from insight_trace.recording.operands import MEMORIES, Form, byte_ranges

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# What a kernel loads, in pieces of a buffer: slot, first byte and the one behind the last.
Loaded = tuple[int, int, int]

_GM = MEMORIES.index("GM")
_SLOT = "slot "  # how a simulation names the buffers of its arguments
_COARSE = 64 << 10  # pieces of a large buffer are told in such steps, those of a small one in pages
_FINE = 4 << 10
_LARGE = 1 << 20


def loaded_of(run: Simulation) -> tuple[tuple[Loaded, ...], ...]:
    """By core, in the order of its launch."""
    import numpy as np

    columns, operands = run.instructions, run.instructions.operands
    nothing: list[tuple[Loaded, ...]] = [()] * len(columns.cores)
    if operands is None or not len(columns):
        return tuple(nothing)
    rows = np.flatnonzero((operands.form == Form.TRANSFER) & (columns.pipe == Pipe.MTE2))
    count = operands.count[rows].astype(np.int64)
    owner = np.repeat(rows, count)
    places = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    places += np.repeat(operands.first[rows].astype(np.int64), count)
    of_memory = operands.footprints["memory"][operands.rows["footprint"][places]] == _GM
    touched = byte_ranges(operands, places[of_memory])
    core = columns.core[owner[of_memory][touched.operand]]
    begin, end = touched.begin.astype(np.int64), touched.end.astype(np.int64)
    found: list[list[Loaded]] = [[] for _ in nothing]
    for name, address, _, padded in run.regions:
        if not name.startswith(_SLOT):
            continue
        slot, step = int(name.removeprefix(_SLOT)), _FINE if padded < _LARGE else _COARSE
        inside = (begin >= address) & (begin < address + padded)
        first, last = (begin[inside] - address) // step, (end[inside] - 1 - address) // step
        for number in np.unique(core[inside]).tolist():
            mine = core[inside] == number
            pieces = _joined(first[mine], last[mine])
            found[number] += [(slot, a * step, (b + 1) * step) for a, b in pieces]
    return tuple(map(tuple, found))


def _joined(first: NDArray[np.int64], last: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Ranges that meet or follow each other, as one."""
    import numpy as np

    order = np.argsort(first, kind="stable")
    first, reach = first[order], np.maximum.accumulate(last[order])
    starts = np.flatnonzero(np.concatenate(([True], first[1:] > reach[:-1] + 1)))
    ends = np.concatenate((starts[1:], [len(first)])) - 1
    return list(zip(first[starts].tolist(), reach[ends].tolist(), strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class TaskPages:
    """Kernel k loads from the pages ids[first[k]] to ids[first[k + 1] - 1]; kernels are numbered by task, block, member."""

    first: NDArray[np.int64]
    ids: NDArray[np.int64]

    def of(self, kernel: int) -> list[int]:
        found: list[int] = self.ids[self.first[kernel] : self.first[kernel + 1]].tolist()
        return found


class PageTable:
    """Which page an address lies in: a buffer has small pages or large ones, as the runtime allocates it."""

    def __init__(self, chip: Chip, buffers: Sequence[tuple[int, int]]) -> None:
        """`buffers`: address and size of each; whatever lies elsewhere is the runtime's own memory, with large pages."""
        import numpy as np

        ordered = sorted(buffers)
        self._address = np.array([address for address, _ in ordered], np.int64)
        size = np.array([size for _, size in ordered], np.int64)
        self._end = self._address + size
        small, self._large = (round(chip.value(f"page.{kind}")) for kind in ("small", "large"))
        self._page = np.where(size >= round(chip.value("page.large_from")), self._large, small)
        pages = (size + self._page - 1) // self._page
        self._number = np.cumsum(pages) - pages
        self._elsewhere = int(pages.sum())

    def between(
        self, kernel: NDArray[np.int64], begin: NDArray[np.int64], end: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Every page of these ranges of addresses, each of one buffer, with the kernel that loads it."""
        import numpy as np

        base, page, number = (
            np.zeros_like(begin),
            np.full_like(begin, self._large),
            np.full_like(begin, self._elsewhere),
        )
        if len(self._address):
            buffer = np.maximum(np.searchsorted(self._address, begin, side="right") - 1, 0)
            inside = (begin >= self._address[buffer]) & (begin < self._end[buffer])
            base, page, number = (
                np.where(inside, own[buffer], other)
                for own, other in ((self._address, base), (self._page, page), (self._number, number))
            )
            end = np.where(inside, np.minimum(end, self._end[buffer]), end)
        first = (begin - base) // page
        count = (end - 1 - base) // page - first + 1
        ids = np.repeat(number + first - (np.cumsum(count) - count), count) + np.arange(int(count.sum()))
        return np.repeat(kernel, count), ids


def task_pages(kernel: NDArray[np.int64], page: NDArray[np.int64], kernels: int) -> TaskPages:
    """From pairs of a kernel and a page, in any order and more than once each."""
    import numpy as np

    pairs = np.unique(np.stack((kernel, page), 1), axis=0) if len(kernel) else np.zeros((0, 2), np.int64)
    return TaskPages(np.searchsorted(pairs[:, 0], np.arange(kernels + 1)), pairs[:, 1])
