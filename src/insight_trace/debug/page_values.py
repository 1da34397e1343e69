"""What a page shows of values: the result of each tile op before and after, and which ops made what it read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from insight_trace.debug.forward import Forward
from insight_trace.debug.op_flow import is_scratch
from insight_trace.debug.tile_calls import TileCall, TileCalls
from insight_trace.debug.tile_layout import Tile, as_double, is_number, type_name
from insight_trace.debug.writers import Writers
from insight_trace.recording.operands import MEMORIES, NONE

if TYPE_CHECKING:
    from insight_trace.debug.debug_session import Session

VALUES, MADE_BY = "Result before and after", "What made this"
_MOST_CALLS = 2000
_ROWS, _COLS = 8, 8  # shown as numbers; larger ones as shades, too
Line = str | tuple[str, int] | list[str]  # a text, one that leads to an instruction, a heat map
Entries = dict[int, list[Line]]


def value_sections(session: Session) -> tuple[list[tuple[str, Entries]], int]:
    """Texts by instruction under their titles, and how many tile ops were left out."""
    calls, forward, writers = TileCalls(session), Forward(session), Writers(session)
    of_call = np.asarray(session.operands.call)
    values: Entries = {}
    makers: Entries = {}
    for number in range(min(len(calls), _MOST_CALLS)):
        call = calls[number]
        dst = call.operands[0] if call.operands else None
        if call.first < 0 or not isinstance(dst, Tile):
            continue
        forward.to(call.first - 1)
        before = forward.values(call.core, dst)
        forward.to(call.last)
        text = _tile_lines(dst, before, forward.values(call.core, dst))
        back = _maker_lines(session, writers, calls, call)
        for row in range(call.first, call.last + 1):
            if int(of_call[row]) == number and int(of_call[row]) != NONE:
                values[row] = text
                if back:
                    makers[row] = back
    return [(VALUES, values), (MADE_BY, makers)], max(0, len(calls) - _MOST_CALLS)


def _tile_lines(tile: Tile, before: NDArray[Any], after: NDArray[Any]) -> list[Line]:
    rows, cols = tile.valid
    before, after = before[:rows, :cols], after[:rows, :cols]
    title = f"{MEMORIES[tile.memory]} 0x{tile.address:x} {type_name(tile.type)} {rows}x{cols}"
    if not after.size or not is_number(tile.type):
        return [title]
    kind = np.dtype(f"u{after.dtype.itemsize}")
    changed = np.ascontiguousarray(before).view(kind) != np.ascontiguousarray(after).view(kind)
    lines: list[Line] = [f"{title}\n{int(changed.sum()):,} of {after.size:,} elements changed"]
    large = rows > _ROWS or cols > _COLS
    for name, values in (("before", before), ("after", after)):
        lines.append("\n".join([name, *_numbers(values)]))
        if large:
            lines.append(heat_map(values))
    return lines


def _numbers(values: NDArray[Any]) -> list[str]:
    shown = as_double(values[:_ROWS, :_COLS])
    more = " …" if values.shape[1] > _COLS else ""
    lines = ["".join(f"{value:>10.4g}" for value in row) + more for row in shown]
    return [*lines, "…"] if values.shape[0] > _ROWS else lines


def heat_map(values: NDArray[Any], height: int = 16, width: int = 48) -> list[str]:
    """A tile by size, 0 to 9 of its largest number; ! where one is not finite."""
    with np.errstate(all="ignore"):
        size = np.abs(as_double(values))
    rows = np.linspace(0, size.shape[0], min(height, size.shape[0]) + 1).astype(int)
    cols = np.linspace(0, size.shape[1], min(width, size.shape[1]) + 1).astype(int)
    odd = np.maximum.reduceat(np.maximum.reduceat(~np.isfinite(size), rows[:-1], axis=0), cols[:-1], axis=1)
    finite = np.where(np.isfinite(size), size, 0.0)
    most = np.maximum.reduceat(np.maximum.reduceat(finite, rows[:-1], axis=0), cols[:-1], axis=1)
    top = float(most.max()) or 1.0
    digits = np.where(odd, "!", np.ceil(most / top * 9).astype(int).astype(str))
    return ["".join(line) for line in digits]


def _maker_lines(session: Session, writers: Writers, calls: TileCalls, call: TileCall) -> list[Line]:
    lines: list[Line] = []
    for operand, tile in call.tiles:
        if (operand == 0 and call.op != "TMATMUL_ACC") or is_scratch(call, operand):
            continue
        rows, cols = tile.valid
        places = (tile.address + tile.offsets()[:rows, :cols]).reshape(-1)
        found = writers.last(call.core, tile.memory, places, call.first)
        lines.append(f"operand {operand}, {MEMORIES[tile.memory]} 0x{tile.address:x} {type_name(tile.type)}")
        made = [_maker(session, calls, row, tile)
                for row in sorted({int(r) for r in found[:: max(1, len(found) // 256)]}, reverse=True)[:4]]  # fmt: skip
        lines += dict.fromkeys(made)
    return lines


def _maker(session: Session, calls: TileCalls, row: int, tile: Tile) -> str | tuple[str, int]:
    if row < 0:
        return "an argument" if MEMORIES[tile.memory] == "GM" else "nobody wrote it"
    number = session.call_of(row)
    names = session.instructions.names
    name = calls[number].op if number is not None else names[session.instructions.name[row]]
    file, line = session.place_of(row)
    return f"{name} at {Path(file).name}:{line}, instruction {row}", row
