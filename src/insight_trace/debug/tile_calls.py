"""Executed tile ops with their operands: tiles, tensors in global memory, numbers and options."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from insight_trace.debug.journal import GLOBAL, GM, OPTION, SCALAR, TILE
from insight_trace.debug.tile_layout import Tile, numpy_type, tile_on_chip, type_name
from insight_trace.simulate.embedded.op_script import op_numbers

if TYPE_CHECKING:
    from insight_trace.debug.debug_session import Session
    from insight_trace.simulate.embedded.journaling import OperandChange


@dataclass(frozen=True, slots=True)
class Number:
    """A number that a tile op was given."""

    bits: int
    type: int  # of the element; -1: an option (a rounding mode, a row, a column)

    @property
    def value(self) -> float | int:
        if self.type < 0:
            return self.bits - (1 << 64) if self.bits >> 63 else self.bits
        import numpy as np

        kind = numpy_type(self.type)
        element = np.frombuffer(self.bits.to_bytes(8, "little")[: kind.itemsize], kind)[0]
        return int(element) if kind.kind in "iub" else float(element.astype(np.float32))

    @property
    def text(self) -> str:
        return f"{self.value:g}" + (f" {type_name(self.type)}" if self.type >= 0 else "")


@dataclass(frozen=True, slots=True)
class TileCall:
    """One executed tile op."""

    number: int
    op: str
    core: int
    first: int  # its instructions; -1: it issued none
    last: int
    operands: tuple[Tile | Number, ...]
    tiles: tuple[tuple[int, Tile], ...]  # of the operands, with their places
    numbers: tuple[tuple[int, Number], ...]


_Kinds = tuple[tuple[tuple[int, Tile], ...], tuple[tuple[int, Number], ...]]


def _by_kind(operands: tuple[Tile | Number, ...]) -> _Kinds:
    return (
        tuple((i, o) for i, o in enumerate(operands) if isinstance(o, Tile)),
        tuple((i, o) for i, o in enumerate(operands) if isinstance(o, Number)),
    )


class CallList(Protocol):
    """Executed tile ops by their number."""

    def __len__(self) -> int: ...

    def __getitem__(self, number: int, /) -> TileCall: ...


class TileCalls:
    """The tile ops of a session by their number, read when asked for."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._journal = session.journal()
        self._known: dict[int, TileCall] = {}
        self._tiles: dict[bytes, Tile | Number] = {}
        self._kinds: dict[tuple[Tile | Number, ...], _Kinds] = {}

    def __len__(self) -> int:
        return len(self._journal.calls)

    def __getitem__(self, number: int) -> TileCall:
        known = self._known.get(number)
        if known is None:
            first, last = self._session.call_rows(number)
            call = self._journal.calls[number]
            operands = tuple(self._operand(row) for row in self._journal.call_operands(number))
            kinds = self._kinds.setdefault(operands, _by_kind(operands))
            known = TileCall(
                number, self._session.op_name(number), int(call["core"]), first, last, operands, *kinds
            )
            self._known[number] = known
        return known

    def _operand(self, row: Any) -> Tile | Number:
        key = row.tobytes()
        if key not in self._tiles:
            self._tiles[key] = _operand(row)
        return self._tiles[key]


class ChangedCalls:
    """Tile ops of which some were given something else; that they are executed all the same is taken for granted."""

    def __init__(self, calls: CallList, changes: Sequence[OperandChange]) -> None:
        self._calls = calls
        self._changed: dict[int, TileCall] = {}
        names = {number: name for name, number in op_numbers().items()}
        for change in changes:
            call = self[change.call]
            if change.field == "op":
                self._changed[change.call] = dataclasses.replace(call, op=names[change.value])
                continue
            operands = list(call.operands)
            operands[change.operand] = _changed(operands[change.operand], change)
            tiles, numbers = _by_kind(tuple(operands))
            self._changed[change.call] = dataclasses.replace(
                call, operands=tuple(operands), tiles=tiles, numbers=numbers
            )

    def __len__(self) -> int:
        return len(self._calls)

    def __getitem__(self, number: int) -> TileCall:
        return self._changed.get(number) or self._calls[number]


def _changed(operand: Tile | Number, change: OperandChange) -> Tile | Number:
    if isinstance(operand, Tile):
        given: dict[str, Any] = {change.field: change.value}
        return dataclasses.replace(operand, **given)
    if change.field == "type":
        return dataclasses.replace(operand, type=change.value)
    return dataclasses.replace(operand, bits=change.value & (1 << 64) - 1)


def _operand(row: Any) -> Tile | Number:
    kind = int(row["kind"])
    if kind == SCALAR:
        return Number(int(row["bits"]), int(row["scalar_type"]))
    if kind == OPTION:
        return Number(int(row["bits"]), -1)
    if kind == GLOBAL:
        shape = tuple(int(n) for n in row["shape"])
        return Tile(
            GM, int(row["gm_address"]), 0, 0, 0, 0, int(row["gm_type"]), shape=shape,
            stride=tuple(int(n) for n in row["stride"]), layout=int(row["layout"]),
        )  # fmt: skip
    if kind != TILE:
        return Number(0, -1)
    return tile_on_chip(row)
