"""The state of a run after one instruction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from insight_trace.debug.journal import GM
from insight_trace.debug.tile_layout import (
    Tile,
    as_double,
    element_size,
    is_number,
    matrix,
    tile_of,
    type_name,
)
from insight_trace.errors import RequestError
from insight_trace.recording.operands import MEMORIES, NONE, operand_rows
from insight_trace.recording.stream import distinct

if TYPE_CHECKING:
    from insight_trace.debug.debug_session import Session


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """A tile at a moment: its elements as a matrix, the valid part first."""

    tile: Tile
    core: int
    values: NDArray[Any]

    @property
    def valid(self) -> NDArray[Any]:
        rows, cols = self.tile.valid
        return self.values[:rows, :cols]

    @property
    def name(self) -> str:
        rows, cols = self.values.shape
        return (
            f"{MEMORIES[self.tile.memory]} 0x{self.tile.address:x} {type_name(self.tile.type)} {rows}x{cols}"
        )

    def statistics(self) -> dict[str, Any]:
        """Of the valid part: how many, least, largest, mean, NaN, Inf and zeros."""
        valid = self.valid
        facts: dict[str, Any] = {"elements": int(valid.size)}
        if not valid.size or not is_number(self.tile.type):
            return facts
        numbers = as_double(valid)
        finite = numbers[np.isfinite(numbers)]
        facts |= {"nan": int(np.isnan(numbers).sum()), "inf": int(np.isinf(numbers).sum()),
                  "zero": int((numbers == 0).sum())}  # fmt: skip
        if finite.size:
            with np.errstate(all="ignore"):
                facts |= {
                    "min": float(finite.min()),
                    "max": float(finite.max()),
                    "mean": float(finite.mean()),
                }
        return facts


class Moment:
    """What every memory holds after instruction `row` of a session; -1 is before the first."""

    def __init__(self, session: Session, row: int) -> None:
        self.session = session
        self.row = row

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Moment) and other.session is self.session and other.row == self.row

    def __hash__(self) -> int:
        return hash((id(self.session), self.row))

    # --- where it is -----------------------------------------------------------------------------------------

    @property
    def core(self) -> int:
        return int(self.session.instructions.core[self.row]) if self.row >= 0 else 0

    @property
    def call(self) -> int | None:
        """The tile op that the instruction belongs to."""
        return self.session.call_of(self.row)

    @property
    def time(self) -> int:
        """Thousandths of a cycle: when the instruction ends."""
        return int(self.session.operands.times[self.row, 2]) if self.row >= 0 else 0

    # --- memory ----------------------------------------------------------------------------------------------

    def bytes(self, core: int, memory: int, begin: int, end: int) -> NDArray[np.uint8]:
        """The bytes of a memory; of global memory only pages that the kernel touched are known (others are 0)."""
        if not 0 <= core < len(self.session.instructions.cores):
            raise RequestError(f"there is no core {core}: {', '.join(self.session.instructions.cores)}")
        if begin < 0 or end < begin:
            raise RequestError(f"bytes {begin} to {end} are no range")
        return self.session.journal(self.row).state(core, memory, begin, end, self.row)

    def show(self, tile: Tile, core: int | None = None) -> Shown:
        """A tile as the matrix that it is."""
        owner = self.core if core is None else core
        offsets = tile.offsets()
        extent = int(offsets.max()) + element_size(tile.type) if offsets.size else 0
        content = self.bytes(owner, tile.memory, tile.address, tile.address + extent)
        return Shown(tile, owner, matrix(content, tile))

    def tiles(self) -> list[tuple[str, Tile]]:
        """Tiles and tensors of the tile op that this instruction belongs to, in the order in which it takes them."""
        call = self.call
        operands = self.session.operands
        if call is None:
            rows = (
                [int(operands.rows["tile"][row]) for row in operand_rows(operands, self.row)]
                if self.row >= 0
                else []
            )
            rows = list(dict.fromkeys(row for row in rows if row != NONE))
        else:
            start = int(operands.calls["tiles"][call])
            rows = operands.lists[start + 1 : start + 1 + int(operands.lists[start])].tolist()
        found = [tile_of(operands.tiles[row], GM) for row in rows]
        names = ["dst", *(f"src{i}" for i in range(len(found) - 1))]
        return list(zip(names, found, strict=False))

    def changed(self) -> list[tuple[int, int, int, int]]:
        """What this instruction changed: core, memory, begin, end."""
        entries = self.session.journal(self.row).entries
        low, high = np.searchsorted(entries["row"], [self.row, self.row + 1])
        return [
            (int(e["core"]), int(e["memory"]), int(e["address"]), int(e["address"]) + int(e["length"]))
            for e in entries[low:high]
        ]

    # --- everything else that a core has ---------------------------------------------------------------------

    def flags(self, core: int | None = None) -> list[dict[str, Any]]:
        """Flags that are set and that nobody has waited for yet, in the order of the program."""
        from insight_trace.recording.kinds import SET_NAMES
        from insight_trace.recording.operands import Form
        from insight_trace.recording.pipes import ENGINE_PIPES

        owner = self.core if core is None else core
        stream, operands = self.session.instructions, self.session.operands
        rows = np.flatnonzero(
            (operands.form[: self.row + 1] == Form.FLAG) & (stream.core[: self.row + 1] == owner)
        )
        sets = np.array([name in SET_NAMES for name in stream.names])[stream.name[rows]]
        keys, place = np.unique(operands.value[rows], return_inverse=True)
        count = np.bincount(place, np.where(sets, 1, -1), len(keys)).astype(int)
        return [
            {"from": ENGINE_PIPES[int(key) & 255].name, "to": ENGINE_PIPES[int(key) >> 8 & 255].name,
             "event": int(key) >> 16, "set": int(number)}
            for key, number in zip(keys, count, strict=True)
            if number > 0
        ]  # fmt: skip

    def pipes(self, core: int | None = None) -> list[dict[str, Any]]:
        """What each pipe of a core works on when this instruction ends, and how many wait in its queue."""
        from insight_trace.model import Pipe

        owner = self.core if core is None else core
        stream, times = self.session.instructions, self.session.operands.times
        now = self.time
        rows = np.flatnonzero(stream.core == owner)
        found = []
        for pipe in distinct(stream.pipe[rows]).tolist():
            own = rows[stream.pipe[rows] == pipe]
            busy = own[(times[own, 1] < now) & (times[own, 2] >= now)]
            waiting = own[(times[own, 0] <= now) & (times[own, 1] >= now)]
            found.append({"pipe": Pipe(pipe).name, "rows": busy.tolist(), "queued": len(waiting)})
        return found

    def registers(self, core: int | None = None) -> list[dict[str, Any]]:
        """The last value that was written to registers, by pipe: masks, modes, strides, pad values."""
        owner = self.core if core is None else core
        stream, operands = self.session.instructions, self.session.operands
        named = np.array([name == "MOV_SPR_XN" for name in stream.names])
        upto = slice(0, self.row + 1)
        rows = np.flatnonzero(named[stream.name[upto]] & (stream.core[upto] == owner))
        from insight_trace.model import Pipe

        last = {int(stream.pipe[row]): int(row) for row in rows.tolist()}
        return [
            {"pipe": Pipe(pipe).name, "row": row, "value": int(operands.value[row])}
            for pipe, row in sorted(last.items())
        ]

    # --- other moments ---------------------------------------------------------------------------------------

    def step(self, count: int = 1) -> Moment:
        """So many instructions of the same core further; back with a negative number."""
        core = self.session.instructions.core
        own = np.flatnonzero(core == self.core)
        place = int(np.searchsorted(own, self.row, "right")) - 1 + count
        if place >= len(own):
            raise RequestError(
                f"{self.session.instructions.cores[self.core]} has only {len(own):,} instructions"
            )
        return self.session.moment(int(own[place]) if place >= 0 else -1)
