"""What becomes of results on chip: parts that nobody reads before they are written over."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from insight_trace.debug.journal import GM
from insight_trace.debug.op_flow import Elements, is_scratch, sources
from insight_trace.debug.tile_calls import CallList, TileCall
from insight_trace.debug.tile_layout import Tile, element_size
from insight_trace.recording.operands import NONE, all_operands

if TYPE_CHECKING:
    from insight_trace.debug.debug_session import Session

_MOST_CALLS = 20_000


@dataclass
class Liveness:
    """By number of a tile op: elements of its result, those that were never read; and what it wrote over."""

    made: Counter[int] = field(default_factory=Counter)
    unread: Counter[int] = field(default_factory=Counter)
    until: dict[int, int] = field(
        default_factory=dict
    )  # the op that wrote over the last of what was never read
    reads: list[tuple[int, int, int]] = field(default_factory=list)  # op, operand, the latest op that made it
    lost: Counter[int] = field(default_factory=Counter)  # elements of others that it wrote over, never read
    unwritten: Counter[int] = field(default_factory=Counter)  # elements that it read and nobody had written
    patched: Counter[int] = field(
        default_factory=Counter
    )  # operands whose elements are of several ops' making
    retyped: Counter[int] = field(
        default_factory=Counter
    )  # operands written as another type of the same size

    @property
    def oddities(self) -> int:
        """How often something happens that in a kernel that is right hardly does."""
        unread = sum(count >= self.made[number] for number, count in self.unread.items())
        others = (self.lost, self.unwritten, self.patched, self.retyped)
        return unread + sum(len(+counter) for counter in others)


class _Memory:
    """Who wrote the element that begins at a byte, and whether somebody has read it since."""

    def __init__(self) -> None:
        self.writer = np.full(1 << 12, -1, np.int64)
        self.read = np.zeros(1 << 12, bool)

    def reach(self, end: int) -> None:
        if end > len(self.writer):
            more = max(end, 2 * len(self.writer)) - len(self.writer)
            self.writer = np.concatenate([self.writer, np.full(more, -1, np.int64)])
            self.read = np.concatenate([self.read, np.zeros(more, bool)])


def liveness(session: Session, calls: CallList) -> Liveness | None:
    """None: the kernel has too many ops, or touches its memory outside of tile ops, and nothing can be said."""
    if len(calls) > _MOST_CALLS or _has_plain_accesses(session):
        return None
    found = Liveness()
    memories: dict[tuple[int, int], _Memory] = {}
    lines: dict[int, tuple[str, int]] = {}
    for number in range(len(calls)):
        call = calls[number]
        if call.first < 0 or not call.tiles:
            continue
        lines[number] = session.place_of(call.first)
        for operand, places in _read_by(call):
            tile = call.operands[operand]
            assert isinstance(tile, Tile)
            if tile.in_global or not len(places):
                continue
            memory = memories.setdefault((call.core, tile.memory), _Memory())
            memory.reach(int(places.max()) + 1)
            memory.read[places] = True
            makers = memory.writer[places]
            found.reads.append((number, operand, int(makers.max())))
            _made_of(found, calls, number, tile, makers)
        for operand, tile in call.tiles:
            if (operand == call.tiles[0][0] or is_scratch(call, operand)) and not tile.in_global:
                memory = memories.setdefault((call.core, tile.memory), _Memory())
                _written(found, memory, call, operand, tile, lines)
    for memory in memories.values():
        _forgotten(found, memory, np.flatnonzero((memory.writer >= 0) & ~memory.read), len(calls))
    return found


def _has_plain_accesses(session: Session) -> bool:
    """Whether instructions outside of tile ops work on memories of the core."""
    operands = session.operands
    outside = np.repeat(np.asarray(operands.call) == NONE, operands.count)
    kinds = operands.rows["footprint"][all_operands(operands)[outside]]
    return bool((operands.footprints["memory"][kinds] != GM).any())


def _read_by(call: TileCall) -> list[tuple[int, NDArray[np.int64]]]:
    operand, dst = call.tiles[0]
    rows, cols = dst.valid
    row, col = (each.reshape(-1) for each in np.meshgrid(np.arange(rows), np.arange(cols), indexing="ij"))
    found = []
    for part in sources(call, Elements(operand, row, col)):
        tile = call.operands[part.operand]
        assert isinstance(tile, Tile)
        offsets = tile.offsets()
        inside = (part.row < offsets.shape[0]) & (part.col < offsets.shape[1])
        found.append((part.operand, tile.address + offsets[part.row[inside], part.col[inside]]))
    return found


def _made_of(found: Liveness, calls: CallList, number: int, tile: Tile, makers: NDArray[np.int64]) -> None:
    known = np.unique(makers)
    found.unwritten[number] += int((makers < 0).sum())
    found.patched[number] += len(known) > 1
    for maker in known[known >= 0].tolist():
        written = calls[maker].tiles[0][1].type
        found.retyped[number] += written != tile.type and element_size(written) == element_size(tile.type)


def _written(
    found: Liveness, memory: _Memory, call: TileCall, operand: int, tile: Tile, lines: dict[int, tuple[str, int]]
) -> None:  # fmt: skip
    rows, cols = tile.valid
    places = (tile.address + tile.offsets()[:rows, :cols]).reshape(-1)
    if not len(places):
        return
    memory.reach(int(places.max()) + 1)
    over = places[~memory.read[places]]
    for writer, count in zip(*np.unique(memory.writer[over], return_counts=True), strict=True):
        if writer >= 0 and lines[int(writer)] != lines[call.number]:  # of itself: a reader is missing
            found.lost[call.number] += int(count)
    _forgotten(found, memory, over, call.number)
    scratch = operand != call.tiles[0][0]
    memory.writer[places] = -1 if scratch else call.number
    memory.read[places] = scratch
    if not scratch:
        found.made[call.number] += len(places)


def _forgotten(found: Liveness, memory: _Memory, places: NDArray[np.int64], by: int) -> None:
    writers, counts = np.unique(memory.writer[places], return_counts=True)
    for writer, count in zip(writers.tolist(), counts.tolist(), strict=True):
        if writer >= 0:
            found.unread[writer] += count
            found.until[writer] = by
