"""The way back: the tile ops that made some bytes, and where they came from."""

from __future__ import annotations

import dataclasses
import heapq
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from insight_trace.debug.journal import GM
from insight_trace.debug.op_flow import Elements, sources
from insight_trace.debug.tile_calls import TileCall, TileCalls
from insight_trace.debug.tile_layout import Tile
from insight_trace.debug.writers import Writers
from insight_trace.recording.operands import READS, byte_ranges, operand_rows
from insight_trace.recording.stream import distinct

if TYPE_CHECKING:
    from insight_trace.debug.debug_session import Session

_MOST_CALLS = 20_000


@dataclass
class SliceStep:
    """A tile op, or an instruction outside of one, that made some of what was asked for."""

    row: int  # its last instruction
    call: TileCall | None
    made: dict[int, NDArray[np.int64]] = field(
        default_factory=dict
    )  # by operand: elements, row * width + col
    # by operand: the steps that made what it read, and how many elements each; -1: nobody wrote them
    sources: dict[int, dict[int, int]] = field(default_factory=dict)
    read: dict[int, Elements] = field(default_factory=dict)

    @property
    def unwritten(self) -> int:
        """On-chip elements that it read and that nobody had written."""
        return sum(made_by.get(-1, 0) for made_by in self.sources.values())

    @property
    def elements(self) -> int:
        return sum(len(each) for each in self.made.values())


@dataclass
class Slice:
    """Everything that some bytes were made of."""

    steps: dict[int, SliceStep]  # by key, the latest first
    inputs: dict[int, NDArray[np.int64]]  # by slot: byte offsets in its buffer that were read
    unwritten: int = 0  # bytes that were asked for and that nobody wrote
    cut: bool = False


class Backward:
    """Finds what made some bytes of a session."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.calls = TileCalls(session)
        self.writers = Writers(session)
        regions = session.recording.about.get("regions", ())
        self._slots = sorted((r[1], r[1] + r[3], int(r[0][5:])) for r in regions if r[0].startswith("slot "))

    def slice(self, core: int, memory: int, addresses: NDArray[np.int64], before: int) -> Slice:
        """What made the elements that begin at these addresses, as they were before an instruction."""
        found = Slice({}, {})
        queue: list[int] = []
        self._ask(found, queue, None, 0, core, memory, addresses, before)
        done: set[int] = set()
        while queue:
            key = -heapq.heappop(queue)
            if key in done:
                continue
            done.add(key)
            if len(done) > _MOST_CALLS:
                found.cut = True
                break
            self._follow(found, queue, key)
        found.steps = dict(sorted(found.steps.items(), reverse=True))
        return found

    def _ask(
        self, found: Slice, queue: list[int], asker: int | None, operand: int, core: int, memory: int,
        addresses: NDArray[np.int64], before: int,
    ) -> None:  # fmt: skip
        rows = self.writers.last(core, memory, addresses, before)
        nobody = addresses[rows < 0]
        if len(nobody):
            self._from_nobody(found, asker, operand, memory, nobody)
        for row in distinct(rows[rows >= 0]).tolist():
            call = self.session.call_of(row)
            last = self.session.call_rows(call)[1] if call is not None else row
            step = found.steps.get(last)
            if step is None:
                step = SliceStep(last, self.calls[call] if call is not None else None)
                found.steps[last] = step
            own = addresses[rows == row]
            self._demand(step, memory, own)
            heapq.heappush(queue, -last)
            if asker is not None:
                made_by = found.steps[asker].sources.setdefault(operand, {})
                made_by[last] = made_by.get(last, 0) + len(own)

    def _from_nobody(
        self, found: Slice, asker: int | None, operand: int, memory: int, addresses: NDArray[np.int64]
    ) -> None:
        if memory != GM:
            if asker is None:
                found.unwritten += len(addresses)
            else:
                made_by = found.steps[asker].sources.setdefault(operand, {})
                made_by[-1] = made_by.get(-1, 0) + len(addresses)
            return
        for begin, end, slot in self._slots:
            own = addresses[(addresses >= begin) & (addresses < end)] - begin
            if len(own):
                found.inputs[slot] = _joined(found.inputs.get(slot), own)

    def _demand(self, step: SliceStep, memory: int, addresses: NDArray[np.int64]) -> None:
        if step.call is None:
            step.made[-1] = _joined(step.made.get(-1), addresses)
            return
        for number, tile in step.call.tiles:
            if tile.memory != memory:
                continue
            places, order = _places(tile)
            at = np.searchsorted(places, addresses - tile.address)
            at = np.minimum(at, len(places) - 1)
            hit = places[at] == addresses - tile.address
            if hit.any():
                elements = order[at[hit]]
                step.made[number] = _joined(step.made.get(number), elements)
                if hit.all():
                    return
                addresses = addresses[~hit]

    def _follow(self, found: Slice, queue: list[int], key: int) -> None:
        step = found.steps[key]
        if step.call is None:
            self._follow_instruction(found, queue, key)
            return
        call = step.call
        before = call.first
        for number, elements in list(step.made.items()):
            tile = call.operands[number]
            assert isinstance(tile, Tile)
            width = tile.offsets().shape[1]
            for part in sources(call, Elements(number, elements // width, elements % width)):
                source = call.operands[part.operand]
                assert isinstance(source, Tile)
                offsets = source.offsets()
                known = (part.row < offsets.shape[0]) & (part.col < offsets.shape[1])
                addresses = source.address + offsets[part.row[known], part.col[known]]
                step.read[part.operand] = part
                self._ask(
                    found, queue, key, part.operand, call.core, source.memory, distinct(addresses), before
                )

    def _follow_instruction(self, found: Slice, queue: list[int], key: int) -> None:
        """What a plain instruction reads: the same bytes of a copy, all that it reads otherwise."""
        operands = self.session.operands
        rows = np.array(operand_rows(operands, key), np.int64)
        roles = operands.footprints["role"][operands.rows["footprint"][rows]]
        reads = rows[(roles & READS) > 0]
        core = int(self.session.instructions.core[key])
        for row in reads.tolist():
            ranges = byte_ranges(operands, row)
            memory = int(operands.footprints["memory"][operands.rows["footprint"][row]])
            bytes_ = np.concatenate(
                [np.arange(int(b), int(e), dtype=np.int64)[::4]
                 for b, e in zip(ranges.begin, ranges.end, strict=True)] or [np.zeros(0, np.int64)]
            )  # fmt: skip
            self._ask(found, queue, key, 0, core, memory, bytes_[:4096], key)


def _joined(known: NDArray[np.int64] | None, more: NDArray[np.int64]) -> NDArray[np.int64]:
    return distinct(more if known is None else np.concatenate([known, more]))


def _places(tile: Tile) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return _ordered(dataclasses.replace(tile, address=0))


@lru_cache(maxsize=1024)
def _ordered(tile: Tile) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Byte offsets of a tile's elements in order, and the element that lies at each."""
    flat = tile.offsets().reshape(-1)
    order = np.argsort(flat, kind="stable")
    return flat[order], order
