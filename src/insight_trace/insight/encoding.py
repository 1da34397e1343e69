"""Columns to JSON text, many rows at a time: pieces of text per row, laid side by side and joined once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TABLED_CYCLES = 4096

Pieces = list[bytes] | bytes  # one piece per row, or the same one for all


def json_text(value: str) -> bytes:
    """A JSON string without its quotes; what is not Unicode is replaced, never refused."""
    try:
        return msgspec.json.encode(value)[1:-1]
    except UnicodeEncodeError:
        return msgspec.json.encode(value.encode("utf-8", "replace").decode())[1:-1]


def json_texts(values: Sequence[str]) -> list[bytes]:
    """The same for many strings. One encoding and one split serve them all unless one holds a quote."""
    if not values:
        return []
    try:
        joined = msgspec.json.encode(values)
    except UnicodeEncodeError:
        return [json_text(value) for value in values]
    if joined.count(b'"') != 2 * len(values):
        return [json_text(value) for value in values]
    return joined[2:-2].split(b'","')


def micros(cycles: NDArray[Any], mhz: float) -> NDArray[np.float32]:
    """Cycles as the vendor prints time: float32 microseconds."""
    return (cycles / mhz).astype(np.float32)


def floats(values: NDArray[Any]) -> list[bytes]:
    """Numbers as shortest text that gives the same double back, always with a decimal point."""
    if len(values) == 0:
        return []
    return msgspec.json.encode(values.astype(np.float64).tolist())[1:-1].split(b",")


def integers(values: NDArray[Any]) -> list[bytes]:
    if len(values) == 0:
        return []
    return msgspec.json.encode(values.tolist())[1:-1].split(b",")


def texts(table: Sequence[bytes]) -> NDArray[Any]:
    """A table of pieces that an index array can pick from."""
    picked = np.empty(len(table), dtype=object)
    picked[:] = table
    return picked


def pick(table: NDArray[Any], index: NDArray[Any]) -> list[bytes]:
    chosen: list[bytes] = table[index].tolist()
    return chosen


class Durations:
    """Durations as text. Most instructions last a few cycles, so short ones are looked up."""

    def __init__(self, mhz: float) -> None:
        self._mhz = mhz
        self._table: NDArray[Any] | None = None

    def __call__(self, cycles: NDArray[np.int64]) -> list[bytes]:
        if len(cycles) < _TABLED_CYCLES // 8:
            return floats(micros(cycles, self._mhz))
        if self._table is None:
            self._table = texts(floats(micros(np.arange(_TABLED_CYCLES), self._mhz)))
        long = np.flatnonzero(cycles >= _TABLED_CYCLES)
        found = pick(self._table, np.minimum(cycles, _TABLED_CYCLES - 1))
        for row, text in zip(long.tolist(), floats(micros(cycles[long], self._mhz)), strict=True):
            found[row] = text
        return found


def lay(columns: Sequence[Pieces], rows: int) -> bytes:
    """The pieces of every row, row after row."""
    columns = [column for column in columns if column != b""]
    width = len(columns)
    pieces = [b""] * (width * rows)
    for place, column in enumerate(columns):
        pieces[place::width] = [column] * rows if isinstance(column, bytes) else column
    return b"".join(pieces)
