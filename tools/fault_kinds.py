"""Faults of a tile op: its operands changed while the kernel runs. Knows nothing of how faults are looked for."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from insight_trace.debug.debug_session import Session
from insight_trace.debug.tile_calls import TileCall, TileCalls
from insight_trace.debug.tile_layout import Tile, element_size, numpy_type, type_name
from insight_trace.simulate.embedded.journaling import OperandChange

_SAME_SIZE = (("f32", "i32", "u32"), ("f16", "bf16", "i16", "u16"), ("i8", "u8"))
_FLOATS = ("f32", "f16", "bf16")
_ROUND_MODES = 7
_TYPES = 64


@dataclass(frozen=True)
class Fault:
    """One op that is wrong, in one execution of its line or in all of them."""

    kind: str
    file: str
    line: int
    op: str
    text: str
    executions: int
    changes: tuple[OperandChange, ...]


Place = tuple[str, int, str]
Drawn = tuple[str, list[OperandChange]]


def sites(session: Session, calls: TileCalls) -> dict[Place, list[TileCall]]:
    """Lines with a tile op, and their executions."""
    found: dict[Place, list[TileCall]] = {}
    for number in range(len(calls)):
        call = calls[number]
        if call.first >= 0:
            found.setdefault((*session.place_of(call.first), call.op), []).append(call)
    return found


def draw(kind: str, session: Session, calls: TileCalls, dice: random.Random) -> Fault | None:
    """A fault of a kind in a random op that can have it."""
    known = sites(session, calls)
    places = sorted(known)
    dice.shuffle(places)
    for place in places:
        executed = known[place]
        if len(executed) > 1 and dice.random() < 0.5:
            executed = [dice.choice(executed)]
        text, changes = KINDS[kind](executed, calls, dice)
        if changes:
            return Fault(kind, *place, text, len({change.call for change in changes}), tuple(changes))
    return None


def _on_chip(call: TileCall) -> list[tuple[int, Tile]]:
    return [(operand, tile) for operand, tile in call.tiles if not tile.in_global]


def _some(call: TileCall, dice: random.Random) -> list[int]:
    """All tiles of an op, or one of them."""
    operands = [operand for operand, _ in _on_chip(call)]
    return operands if not operands or dice.random() < 0.5 else [dice.choice(operands)]


def _rounding(executed: Sequence[TileCall], _: TileCalls, dice: random.Random) -> Drawn:
    some = executed[0]
    options = [(operand, number) for operand, number in some.numbers if number.type < 0]
    if some.op != "TCVT" or not options:
        return "", []
    operand, old = options[0]
    mode = dice.choice([mode for mode in range(_ROUND_MODES) if mode != old.value])
    return f"mode {mode} for {old.value}", [
        OperandChange(call.number, operand, "option", mode) for call in executed
    ]


def _type(executed: Sequence[TileCall], _: TileCalls, dice: random.Random) -> Drawn:
    some = executed[0]
    tiles = _on_chip(some)
    if not tiles:
        return "", []
    old = dice.choice(tiles)[1].type
    family = next((names for names in _SAME_SIZE if type_name(old) in names), ())
    others = [code for code in range(_TYPES) if code != old and type_name(code) in family]
    if not others:
        return "", []
    new = dice.choice(others)
    chosen = {operand for operand, given in enumerate(some.operands) if given.type == old}
    chosen -= {operand for operand, tile in some.tiles if tile.in_global}
    if dice.random() < 0.5:
        chosen = {dice.choice(sorted(chosen))}
    changes = [
        OperandChange(call.number, operand, "type", new) for call in executed for operand in sorted(chosen)
    ]
    return f"{type_name(new)} for {type_name(old)}, operands {sorted(chosen)}", changes


def _sized(executed: Iterable[TileCall], chosen: Sequence[int], field: str, by: int) -> list[OperandChange]:
    changes = []
    for call in executed:
        for operand, tile in _on_chip(call):
            value = getattr(tile, field) + by
            most = tile.rows if field == "valid_rows" else tile.cols
            if operand in chosen and 0 < value <= most:
                changes.append(OperandChange(call.number, operand, field, value))
    return changes


def _row(executed: Sequence[TileCall], _: TileCalls, dice: random.Random) -> Drawn:
    chosen = _some(executed[0], dice)
    plain = all(tile.plain for _, tile in _on_chip(executed[0]))
    changes = _sized(executed, chosen, "valid_rows", -1)
    if not changes or not plain or dice.random() < 0.5:
        return f"the last row is dropped, operands {chosen}", changes
    moved = []
    for call in executed:
        for operand, tile in _on_chip(call):
            if operand in chosen and tile.valid_rows > 1:
                line = tile.cols * element_size(tile.type)
                moved.append(OperandChange(call.number, operand, "address", tile.address + line))
    return f"the first row is dropped, operands {chosen}", [*changes, *moved]


def _valid(executed: Sequence[TileCall], _: TileCalls, dice: random.Random) -> Drawn:
    field, by = dice.choice((("valid_cols", -1), ("valid_cols", 1), ("valid_rows", 1)))
    chosen = _some(executed[0], dice)
    return f"{field} {by:+}, operands {chosen}", _sized(executed, chosen, field, by)


def _buffer(executed: Sequence[TileCall], calls: TileCalls, dice: random.Random) -> Drawn:
    some = executed[0]
    tiles = _on_chip(some)
    if not tiles:
        return "", []
    operand, tile = dice.choice(tiles)
    others = {
        other.address
        for number in range(len(calls))
        if calls[number].core == some.core
        for _, other in calls[number].tiles
        if not other.in_global and other.memory == tile.memory
    } - {tile.address}
    if not others:
        return "", []
    address = dice.choice(sorted(others))
    changes = [
        OperandChange(call.number, operand, "address", address)
        for call in executed
        if call.operands[operand] == tile
    ]
    return f"operand {operand} at 0x{address:x} for 0x{tile.address:x}", changes


def _scale(executed: Sequence[TileCall], _: TileCalls, dice: random.Random) -> Drawn:
    numbers = [(i, n) for i, n in executed[0].numbers if n.type >= 0 and type_name(n.type) in _FLOATS]
    if not numbers:
        return "", []
    operand, number = dice.choice(numbers)
    factor = dice.choice((0.5, 2.0, -1.0, 1.01, 1 / 1.01, 2 ** dice.uniform(-3, 3)))
    with np.errstate(over="ignore"):
        value = np.array([number.value * factor if number.value else factor], np.float64).astype(np.float32)
    if not np.isfinite(value).all():
        return "", []
    bits = int.from_bytes(value.astype(numpy_type(number.type)).tobytes().ljust(8, b"\0"), "little")
    changes = [OperandChange(call.number, operand, "scalar", bits) for call in executed]
    return f"{float(value[0]):g} for {number.value:g}", changes


KINDS: dict[str, Callable[[Sequence[TileCall], TileCalls, random.Random], Drawn]] = {
    "rounding": _rounding, "type": _type, "row": _row, "valid": _valid, "buffer": _buffer, "scale": _scale,
}  # fmt: skip
