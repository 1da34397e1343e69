"""Where to stop: a line, an op, a write, a NaN."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from insight_trace.debug.forward import Forward
from insight_trace.debug.tile_calls import TileCalls
from insight_trace.debug.tile_layout import as_double, element_size, is_number
from insight_trace.debug.writers import Writers
from insight_trace.errors import RequestError

if TYPE_CHECKING:
    from insight_trace.debug.debug_session import Session
    from insight_trace.debug.questions import Questions


@dataclass(frozen=True, slots=True, eq=False)
class Break:
    """A reason to stop, and the instructions at which it holds."""

    text: str
    rows: NDArray[np.int64]


def parse_break(looks: Questions, words: list[str]) -> Break:
    """`line 71`, `op TADD`, `write dst`, `write UB 0x100 64`, `nan`."""
    kind, rest = words[0], words[1:]
    text = " ".join(words)
    session = looks.session
    if kind == "nan" and not rest:
        return Break(text, births(session))
    if kind == "line" and len(rest) == 1:
        line = _number(rest[0])
        rows = [row for row in range(len(session.instructions)) if session.place_of(row)[1] == line]
        return Break(text, np.array(rows, np.int64))
    if kind == "op" and len(rest) == 1:
        names = np.array(session.operands.ops)[session.operands.calls["op"]]
        calls = np.flatnonzero(names == rest[0].upper()).tolist()
        ends = [session.call_rows(call)[1] for call in calls]
        return Break(text, np.array(sorted(end for end in ends if end >= 0), np.int64))
    if kind == "write" and rest:
        return Break(text, _writes(looks, rest))
    raise RequestError(
        f"'{text}' is nothing to stop at", hint="line N, op NAME, write TILE, write MEMORY ADDRESS, nan"
    )


def _writes(looks: Questions, words: list[str]) -> NDArray[np.int64]:
    from insight_trace.debug.questions import memory_named, tile_named

    session = looks.session
    core = looks.core if looks.core is not None else looks.moment.core
    if len(words) == 1:
        tile = tile_named(looks.moment, words[0])
        begin = tile.address
        end = begin + int(tile.offsets().max(initial=0)) + element_size(tile.type)
        return Writers(session).rows(core, tile.memory, begin, end)
    begin = _number(words[1])
    count = _number(words[2]) if len(words) > 2 else 1
    return Writers(session).rows(core, memory_named(words[0]), begin, begin + max(1, count))


def _number(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise RequestError(f"'{text}' is no number") from None


def births(session: Session) -> NDArray[np.int64]:
    """The last instructions of ops whose results hold NaN or Inf that their sources do not."""
    calls, forward, found = TileCalls(session), Forward(session), []
    for number in range(len(calls)):
        call = calls[number]
        tiles = [(i, t) for i, t in call.tiles if is_number(t.type)]
        if call.first < 0 or not tiles:
            continue
        forward.to(call.first - 1)
        clean = all(_finite(forward, call.core, tile) for _, tile in tiles[1:])
        forward.to(call.last)
        if clean and not _finite(forward, call.core, tiles[0][1]):
            found.append(call.last)
    return np.array(sorted(found), np.int64)


def _finite(forward: Forward, core: int, tile: Any) -> bool:
    rows, cols = tile.valid
    values = forward.values(core, tile)[:rows, :cols]
    if values.dtype.kind in "iub":
        return True
    return bool(np.isfinite(as_double(values)).all())


def search(session: Session, breaks: list[Break], row: int, way: int) -> tuple[int, str] | None:
    """The nearest stop after (1) or before (-1) a row, and what it is."""
    if not breaks:
        raise RequestError(
            "there is nothing to stop at", hint="break line N, break op NAME, break write …, break nan"
        )
    found: list[tuple[int, str]] = []
    for one in breaks:
        rows = one.rows[one.rows > row] if way > 0 else one.rows[one.rows < row]
        if len(rows):
            found.append((int(rows.min() if way > 0 else rows.max()), one.text))
    del session
    if not found:
        return None
    return min(found) if way > 0 else max(found)
