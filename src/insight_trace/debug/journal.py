"""The journal of a run: which bytes changed at which instruction (engine/journal.hpp writes it)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from insight_trace.errors import InputError
from insight_trace.limits import RECORD_BYTES
from insight_trace.reading import load_json, open_regular
from insight_trace.recording.operands import MEMORIES
from insight_trace.recording.stream import distinct

GM = MEMORIES.index("GM")
PAGE = 4096
HEADER = "journal.json"
_ENTRY = np.dtype(
    [("address", "<u8"), ("payload", "<u8"), ("row", "<u4"), ("length", "<u4"), ("core", "<u2"), ("memory", "u1"),
     ("reserved", "u1", (5,))]
)  # fmt: skip
_CALL = np.dtype(
    [
        ("row", "<u4"),
        ("operand", "<u4"),
        ("op", "<u2"),
        ("core", "<u2"),
        ("count", "<u2"),
        ("reserved", "<u2"),
    ]
)
_BASE = np.dtype([("address", "<u8"), ("bytes", "u1", (PAGE,))])
OBSERVED = np.dtype([("row", "<u8"), ("core", "<u8"), ("memory", "<u8"), ("hash", "<u8")])

# abi.hpp Operand: its kind, then a union of what it can be
TILE, GLOBAL, SCALAR, OPTION = 1, 2, 3, 4
_OPERAND_BYTES = 104
_OPERAND = np.dtype(
    {
        "names": ["kind", "address", "rows", "cols", "valid_rows", "valid_cols", "memory", "type", "row_major", "inner",
                  "compact", "fractal", "gm_address", "shape", "stride", "gm_type", "layout", "bits", "scalar_type"],
        "formats": ["u1", "<u4", "<i4", "<i4", "<i4", "<i4", "u1", "u1", "u1", "u1", "u1", "<i4", "<u8", ("<i8", 5),
                    ("<i8", 5), "u1", "u1", "<u8", "u1"],
        "offsets": [0, 8, 12, 16, 20, 24, 28, 29, 30, 31, 32, 36, 8, 16, 56, 96, 97, 8, 16],
        "itemsize": _OPERAND_BYTES,
    }
)  # fmt: skip

_CHUNK = 4096  # entries that are looked at together
_BLOCK = 1 << 22


@dataclass(frozen=True, slots=True, eq=False)
class _Changes:
    """Entries of one memory, the earliest first."""

    place: NDArray[np.int64]  # in the file
    row: NDArray[np.int64]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    payload: NDArray[np.int64]


class Journal:
    """A journal on disk, mapped."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            facts = load_json(folder / HEADER, most=RECORD_BYTES)
            self.first, self.complete = int(facts["first"]), int(facts["complete"])
            self.instructions, self.of = int(facts["instructions"]), str(facts.get("of", ""))
        except (InputError, ValueError, LookupError, TypeError, OverflowError) as error:
            raise InputError(
                f"the journal cannot be read: {error}", where=str(folder), hint="remove it: it is made again"
            ) from None

    def _table(self, name: str, kind: Any) -> NDArray[Any]:
        path, dtype = self.folder / name, np.dtype(kind)
        try:
            with open_regular(path) as file:
                size = os.fstat(file.fileno()).st_size
            if size % dtype.itemsize:
                raise ValueError(f"{size} bytes are no whole number of rows")
            if size < _BLOCK:
                return np.fromfile(path, dtype)
            return np.memmap(path, dtype, "r")
        except (OSError, ValueError) as error:
            raise InputError(
                f"cannot be read: {error}", where=str(path), hint="remove the journal: it is made again"
            ) from None

    @cached_property
    def entries(self) -> NDArray[Any]:
        found = self._table("entries", _ENTRY)
        size = len(self.contents)
        payload, length = found["payload"], found["length"]
        if (payload > size).any() or (length > size - np.minimum(payload, size)).any():
            raise InputError(
                "changes reach past the journal's contents",
                where=str(self.folder / "entries"),
                hint="remove the journal: it is made again",
            )
        return found

    @cached_property
    def contents(self) -> NDArray[np.uint8]:
        return self._table("contents", np.uint8)

    @cached_property
    def calls(self) -> NDArray[Any]:
        """Executed tile ops in order: `row` of the first instruction, and where their operands are."""
        return self._table("calls", _CALL)

    @cached_property
    def operands(self) -> NDArray[Any]:
        """Operands of tile ops as the kernel gave them: tiles, tensors, numbers and options."""
        return self._table("operands", _OPERAND)

    @cached_property
    def observed(self) -> NDArray[Any]:
        return self._table("observed", OBSERVED)

    @cached_property
    def base_pages(self) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        """Pages of global memory that the kernel touched, and what they held at first."""
        table = self._table("bases", _BASE)
        order = np.argsort(table["address"], kind="stable")
        return table["address"][order].astype(np.int64), table["bytes"][order]

    @cached_property
    def memories(self) -> tuple[tuple[int, int], ...]:
        """Core and memory of all that was written; global memory has core 0."""
        keys = distinct(self._keys)
        return tuple((int(key) >> 8, int(key) & 255) for key in keys)

    @cached_property
    def _keys(self) -> NDArray[np.uint32]:
        entries = self.entries
        keys: NDArray[np.uint32] = entries["core"].astype(np.uint32) << 8 | entries["memory"]
        return keys

    @cached_property
    def _by_memory(self) -> dict[tuple[int, int], _Changes]:
        keys = self._keys
        order = np.argsort(keys, kind="stable")
        bounds = np.searchsorted(keys[order], [core << 8 | memory for core, memory in self.memories])
        ends = [*bounds[1:].tolist(), len(order)][: len(bounds)]
        found = {}
        for key, begin, end in zip(self.memories, bounds.tolist(), ends, strict=True):
            place = order[begin:end]
            entries = self.entries[place]
            address = entries["address"].astype(np.int64)
            found[key] = _Changes(
                place,
                entries["row"].astype(np.int64),
                address,
                address + entries["length"],
                entries["payload"].astype(np.int64),
            )
        return found

    def changes(self, core: int, memory: int) -> _Changes:
        """Everything that changed in a memory, the earliest first."""
        nothing = np.zeros(0, np.int64)
        empty = _Changes(nothing, nothing, nothing, nothing, nothing)
        return self._by_memory.get((0 if memory == GM else core, memory), empty)

    def pages(self, begin: int, end: int) -> NDArray[np.bool_]:
        """Which bytes of global memory lie in a page that the kernel touched: others are not known."""
        known = np.zeros(end - begin, bool)
        addresses, _ = self.base_pages
        first, last = np.searchsorted(addresses, [begin - PAGE + 1, end])
        for address in addresses[first:last].tolist():
            known[max(0, address - begin) : address + PAGE - begin] = True
        return known

    def at_first(self, memory: int, begin: int, end: int) -> NDArray[np.uint8]:
        """What bytes held before the run; on-chip memory holds zeros then."""
        state = np.zeros(end - begin, np.uint8)
        if memory != GM:
            return state
        addresses, content = self.base_pages
        first, last = np.searchsorted(addresses, [begin - PAGE + 1, end])
        for place in range(int(first), int(last)):
            low, high = max(begin, int(addresses[place])), min(end, int(addresses[place]) + PAGE)
            start = low - int(addresses[place])
            state[low - begin : high - begin] = content[place, start : start + high - low]
        return state

    def state(self, core: int, memory: int, begin: int, end: int, row: int) -> NDArray[np.uint8]:
        """The bytes of a memory after instruction `row`; -1: before the first.

        From the latest change back, and only to what is not known yet: a byte is copied once.
        """
        state = self.at_first(memory, begin, end)
        changes = self.changes(core, memory)
        stop = int(np.searchsorted(changes.row, row, "right"))
        open_ = np.ones(end - begin, bool)
        left = _ever(changes, stop, begin, end)
        while stop > 0 and left > 0:
            start = max(0, stop - _CHUNK)
            low = np.clip(changes.begin[start:stop] - begin, 0, end - begin)
            high = np.clip(changes.end[start:stop] - begin, 0, end - begin)
            before = np.concatenate([[0], np.cumsum(open_)])
            needed = np.flatnonzero(before[high] > before[low])
            for place in needed[::-1].tolist():
                a, b = int(low[place]), int(high[place])
                part = open_[a:b]
                if not part.any():
                    continue
                source = int(changes.payload[start + place]) + a - int(changes.begin[start + place] - begin)
                fresh = self.contents[source : source + b - a]
                np.copyto(state[a:b], fresh, where=part)
                left -= int(part.sum())
                part[:] = False
            stop = start
        return state

    def last_change(self, core: int, memory: int, begin: int, end: int, row: int) -> NDArray[np.int64]:
        """For every byte the instruction that changed it last, up to `row`; -1: none did."""
        found = np.full(end - begin, -1, np.int64)
        changes = self.changes(core, memory)
        stop = int(np.searchsorted(changes.row, row, "right"))
        hits = np.flatnonzero((changes.begin[:stop] < end) & (changes.end[:stop] > begin))
        for place in hits.tolist():
            low, high = int(changes.begin[place]) - begin, int(changes.end[place]) - begin
            found[max(0, low) : high] = changes.row[place]
        return found

    def call_kinds(self) -> NDArray[np.int64]:
        """A number for each tile op: the same for ops of one name that one core gave the same operands."""
        calls = np.asarray(self.calls)
        operands = np.ascontiguousarray(self.operands)
        mixed = np.random.default_rng(0).integers(1, 1 << 62, _OPERAND_BYTES // 8, np.uint64) | np.uint64(1)
        words = operands.view(np.uint64).reshape(len(operands), -1)
        hashed = np.zeros(len(operands), np.uint64)
        for word, weight in enumerate(mixed):  # a sum of products, modulo 2**64
            part = words[:, word] ^ words[:, word] >> np.uint64(29)
            hashed += (part + np.uint64(word + 1)) * weight
        hashed ^= hashed >> np.uint64(32)
        found = calls["op"].astype(np.uint64) << np.uint64(32) | calls["core"].astype(np.uint64) << np.uint64(
            16
        )
        found |= calls["count"].astype(np.uint64)
        for place in range(int(calls["count"].max(initial=0))):
            some = calls["count"] > place
            found[some] = found[some] * np.uint64(0x9E3779B97F4A7C15) + hashed[calls["operand"][some] + place]
            found ^= found >> np.uint64(31)
        kinds: NDArray[np.int64] = np.unique(found, return_inverse=True)[1].reshape(-1).astype(np.int64)
        return kinds

    def call_operands(self, call: int) -> NDArray[Any]:
        """The operands of a tile op."""
        first, count = int(self.calls["operand"][call]), int(self.calls["count"][call])
        return self.operands[first : first + count]


def _ever(changes: _Changes, stop: int, begin: int, end: int) -> int:
    """How many bytes of a range were changed by the first `stop` changes."""
    edges = np.zeros(end - begin + 1, np.int64)
    low = np.clip(changes.begin[:stop] - begin, 0, end - begin)
    high = np.clip(changes.end[:stop] - begin, 0, end - begin)
    np.add.at(edges, low, 1)
    np.add.at(edges, high, -1)
    return int((np.cumsum(edges)[:-1] > 0).sum())
