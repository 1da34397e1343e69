"""Who wrote a byte last: from the bytes that instructions name as written, and from those that changed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from insight_trace.debug.journal import GM
from insight_trace.recording.operands import (
    WRITES,
    all_operands,
    instruction_of_operands,
    relative_ranges,
)
from insight_trace.recording.stream import distinct

if TYPE_CHECKING:
    from insight_trace.debug.debug_session import Session

_MOST_HULL = 1 << 24  # bytes in which changes are looked up one by one


class Writers:
    """The writes of a run by memory, the earliest first."""

    def __init__(self, session: Session) -> None:
        self._session = session
        operands = session.operands
        prints = operands.footprints
        self._relative: dict[int, tuple[NDArray[np.int64], NDArray[np.int64]]] = {}
        places = all_operands(operands)
        kind = operands.rows["footprint"][places]
        wanted = ((prints["role"] & WRITES) > 0) & (prints["exact"] > 0) & (prints["run"] > 0)
        chosen = np.flatnonzero(wanted[kind]) if len(prints) else np.zeros(0, np.int64)
        kind = kind[chosen]
        row = instruction_of_operands(operands)[chosen]
        low, high = self._hulls(distinct(kind).tolist(), len(prints))
        address = operands.rows["address"][places[chosen]].astype(np.int64)
        memory = prints["memory"][kind].astype(np.int64)
        core = self._owners(session.instructions.core[row], prints["owner"][kind])
        core[memory == GM] = 0
        key = core << 8 | memory
        order = np.argsort(key, kind="stable")
        self._keys = key[order]
        self._row, self._kind, self._address = row[order], kind[order], address[order]
        self._begin, self._end = (address + low[kind])[order], (address + high[kind])[order]

    def _hulls(self, kinds: list[int], count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        low, high = np.zeros(count, np.int64), np.zeros(count, np.int64)
        for kind in kinds:
            begin, end = self._ranges(kind)
            if len(begin):
                low[kind], high[kind] = begin[0], end[-1]
        return low, high

    def _ranges(self, kind: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        if kind not in self._relative:
            self._relative[kind] = relative_ranges(self._session.operands.footprints[kind])
        return self._relative[kind]

    def _owners(self, core: NDArray[Any], owner: NDArray[Any]) -> NDArray[np.int64]:
        """The core whose memory an operand lies in."""
        names = self._session.instructions.cores
        index = {name: number for number, name in enumerate(names)}
        table = np.tile(np.arange(len(names), dtype=np.int64)[:, None], (1, 16))
        for number, name in enumerate(names):
            block = re.match(r"core\d+", name)
            for code in range(1, 16):
                part = "cubecore0" if code == 1 else f"veccore{code - 2}"
                table[number, code] = index.get(f"{block[0]}.{part}" if block else name, number)
        found: NDArray[np.int64] = table[core, np.minimum(owner, 15)]
        return found

    def last(self, core: int, memory: int, addresses: NDArray[np.int64], before: int) -> NDArray[np.int64]:
        """For each address the last instruction before `before` that wrote it; -1: none did."""
        found = np.full(len(addresses), -1, np.int64)
        if not len(addresses):
            return found
        order = np.argsort(addresses, kind="stable")
        sorted_ = addresses[order]
        low, high = int(sorted_[0]), int(sorted_[-1]) + 1
        key = (0 if memory == GM else core) << 8 | memory
        first, stop = np.searchsorted(self._keys, [key, key + 1])
        stop = first + np.searchsorted(self._row[first:stop], before)
        hits = np.flatnonzero((self._begin[first:stop] < high) & (self._end[first:stop] > low)) + first
        named = np.full(len(sorted_), -1, np.int64)
        left = len(sorted_)
        for place in hits[::-1].tolist():
            begin, end = self._ranges(int(self._kind[place]))
            base = int(self._address[place])
            starts = np.searchsorted(sorted_, begin + base)
            ends = np.searchsorted(sorted_, end + base)
            for a, b in zip(starts[ends > starts].tolist(), ends[ends > starts].tolist(), strict=True):
                part = named[a:b]
                fresh = part < 0
                left -= int(fresh.sum())
                part[fresh] = self._row[place]
            if not left:
                break
        if high - low <= _MOST_HULL:
            changed = self._session.journal().last_change(core, memory, low, high, before - 1)
            named = np.maximum(named, changed[sorted_ - low])
        found[order] = named
        return found

    def rows(self, core: int, memory: int, begin: int, end: int) -> NDArray[np.int64]:
        """The instructions that wrote any byte of a range, the earliest first."""
        key = (0 if memory == GM else core) << 8 | memory
        first, stop = np.searchsorted(self._keys, [key, key + 1])
        hits = np.flatnonzero((self._begin[first:stop] < end) & (self._end[first:stop] > begin)) + first
        found = []
        for place in hits.tolist():
            low, high = self._ranges(int(self._kind[place]))
            base = int(self._address[place])
            if ((low + base < end) & (high + base > begin)).any():
                found.append(int(self._row[place]))
        changes = self._session.journal().changes(core, memory)
        changed = distinct(changes.row[(changes.begin < end) & (changes.end > begin)]).tolist()
        # what an op changes is written down with its first instruction, whichever names it
        named = {self._session.call_of(row) for row in found} - {None}
        found += [row for row in changed if self._session.call_of(row) not in named]
        return distinct(np.array(found, np.int64))
