"""A run from its beginning on: memories as they change, op by op."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from insight_trace.debug.journal import GM, PAGE
from insight_trace.debug.tile_layout import Tile, element_size, numpy_type

if TYPE_CHECKING:
    from insight_trace.debug.debug_session import Session


class Forward:
    """The memories of a session, moved on row by row; much quicker than a moment for each."""

    def __init__(
        self, session: Session, changed: Callable[[int, int, int, int], None] = lambda _c, _m, _b, _e: None
    ) -> None:
        """`changed` is told of every change: core, memory, begin, end."""
        journal = session.journal()
        self._changed = changed
        self.row = -1
        # as plain arrays: looking into a mapped one is slow
        self._entries, self._contents = np.asarray(journal.entries), np.asarray(journal.contents)
        self._rows = np.array(self._entries["row"], np.int64)
        self._next = 0
        self._memories: dict[tuple[int, int], NDArray[np.uint8]] = {}
        self._pages: dict[int, NDArray[np.uint8]] = {}
        self._journal = journal
        addresses, content = journal.base_pages
        for address, page in zip(addresses.tolist(), content, strict=True):
            self._pages[address // PAGE] = np.array(page)
        for core, memory in journal.memories:
            if memory != GM:
                size = int(journal.changes(core, memory).end.max())
                self._memories[core, memory] = np.zeros(size, np.uint8)

    def to(self, row: int) -> None:
        """Applies everything up to a row."""
        stop = int(self._rows.searchsorted(row, "right"))
        for entry in self._entries[self._next : stop].tolist():
            address, payload, _, length, core, memory, _ = entry
            content = self._contents[payload : payload + length]
            self._changed(core, memory, address, address + length)
            if memory == GM:
                page, offset = divmod(address, PAGE)  # a change never goes past its page
                self._pages[page][offset : offset + length] = content
            else:
                self._memories[core, memory][address : address + length] = content
        self._next, self.row = max(self._next, stop), row

    def bytes(self, core: int, memory: int, begin: int, end: int) -> NDArray[np.uint8]:
        """A copy of some bytes; what is not known is 0."""
        out = np.zeros(end - begin, np.uint8)
        if memory != GM:
            held = self._memories.get((core, memory))
            if held is not None and begin < len(held):
                part = held[begin:end]
                out[: len(part)] = part
            return out
        at = begin
        while at < end:
            stop = min(end, at // PAGE * PAGE + PAGE)
            page = self._pages.get(at // PAGE)
            if page is not None:
                out[at - begin : stop - begin] = page[at % PAGE : at % PAGE + stop - at]
            at = stop
        return out

    def view(self, core: int, tile: Tile) -> NDArray[Any] | None:
        """A plain tile where it lies: it changes as the run goes on; None: it has to be copied."""
        held = self._memories.get((core, tile.memory))
        end = tile.address + tile.rows * tile.cols * element_size(tile.type)
        if not tile.plain or held is None or end > len(held) or end == tile.address:
            return None
        if tile.address % numpy_type(tile.type).alignment:
            return None
        found: NDArray[Any] = (
            held[tile.address : end].view(numpy_type(tile.type)).reshape(tile.rows, tile.cols)
        )
        return found

    def values(self, core: int, tile: Tile) -> NDArray[Any]:
        """A tile's elements as a matrix, whole."""
        size = element_size(tile.type)
        if tile.plain:
            content = self.bytes(core, tile.memory, tile.address, tile.address + tile.rows * tile.cols * size)
            rows: NDArray[Any] = content.view(numpy_type(tile.type)).reshape(tile.rows, tile.cols)
            return rows
        offsets = tile.offsets()
        if not offsets.size:
            return np.zeros(offsets.shape, numpy_type(tile.type))
        content = self.bytes(core, tile.memory, tile.address, tile.address + int(offsets.max()) + size)
        raw = content[offsets[..., None] + np.arange(size)]
        found: NDArray[Any] = np.ascontiguousarray(raw).view(numpy_type(tile.type))[..., 0]
        return found
