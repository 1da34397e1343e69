"""Columns to JSON text, many rows at a time: the pieces of every row, laid side by side.

Many rows are laid by event_rows.cpp; the same in Python serves for few, and where there is no compiler.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from insight_trace.errors import InsightTraceError

if TYPE_CHECKING:
    from numpy.typing import NDArray

WORTH_LOADING = 4096  # instructions of a trace for which compiled code is loaded, and the first time compiled
_WORTH_CALLING = 128  # rows at a time
EVENT_ROWS = Path(__file__).with_name("event_rows.cpp")
_MARGIN = bytes(64)  # event_rows.cpp reads so far behind a text


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


class Texts:
    """A table of pieces that an index array picks from."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self.pieces = list(pieces)

    def __getitem__(self, place: int) -> bytes:
        return self.pieces[place]

    def __len__(self) -> int:
        return len(self.pieces)

    @cached_property
    def objects(self) -> NDArray[Any]:
        found = np.empty(len(self.pieces), dtype=object)
        found[:] = self.pieces
        return found

    @cached_property
    def packed(self) -> tuple[bytes, NDArray[np.int64]]:
        """All of them one after the other, and where each begins."""
        begin = np.zeros(len(self.pieces) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, self.pieces), np.int64, len(self.pieces)), out=begin[1:])
        return b"".join([*self.pieces, _MARGIN]), begin


def joined(*parts: Texts | bytes) -> Texts:
    """A table whose pieces are those of several, side by side: fewer pieces of a row make faster text."""
    count = max(len(part) for part in parts if isinstance(part, Texts))
    columns = ([part] * count if isinstance(part, bytes) else part.pieces for part in parts)
    return Texts(map(b"".join, zip(*columns, strict=True)))


class Column:
    """One piece of text a row."""

    kind: int
    text: bytes = _MARGIN
    begin: NDArray[np.int64] | None = None
    mhz = 0.0

    def __init__(self, index: NDArray[Any]) -> None:
        self.index = index

    def __len__(self) -> int:
        return len(self.index)

    def spelled(self) -> list[bytes]:
        raise NotImplementedError


class Picked(Column):
    """Pieces of a table."""

    kind = 1

    def __init__(self, table: Texts, index: NDArray[Any]) -> None:
        if index.dtype not in (np.int32, np.int64):
            index = index.astype(np.int64)
        super().__init__(index)
        self._table = table

    @property
    def text(self) -> bytes:  # type: ignore[override]
        return self._table.packed[0]

    @property
    def begin(self) -> NDArray[np.int64]:  # type: ignore[override]
        return self._table.packed[1]

    def spelled(self) -> list[bytes]:
        found: list[bytes] = self._table.objects[self.index].tolist()
        return found


class Micros(Column):
    """Cycles as microseconds."""

    kind = 2

    def __init__(self, cycles: NDArray[Any], mhz: float) -> None:
        super().__init__(cycles.astype(np.int64, copy=False))
        self.mhz = mhz

    def spelled(self) -> list[bytes]:
        return floats(micros(self.index, self.mhz))


class Integers(Column):
    kind = 3

    def __init__(self, values: NDArray[Any]) -> None:
        super().__init__(values.astype(np.int64, copy=False))

    def spelled(self) -> list[bytes]:
        return msgspec.json.encode(self.index.tolist())[1:-1].split(b",") if len(self.index) else []


class Floats(Column):
    kind = 4

    def __init__(self, values: NDArray[Any]) -> None:
        super().__init__(values.astype(np.float64, copy=False))

    def spelled(self) -> list[bytes]:
        return floats(self.index)


class Strings(Column):
    """Texts of their own, as inside of JSON strings."""

    kind = 5

    def __init__(self, values: Sequence[str]) -> None:
        super().__init__(np.empty(0))
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    @cached_property
    def text(self) -> bytes:  # type: ignore[override]
        try:
            return msgspec.json.encode(self._values) + _MARGIN
        except UnicodeEncodeError:
            return b'["%s"]' % b'","'.join(self.spelled()) + _MARGIN

    def spelled(self) -> list[bytes]:
        return json_texts(self._values)


Pieces = Column | list[bytes] | bytes  # a list has one piece per row, bytes are the same for all


def spelled(column: Pieces, rows: int) -> list[bytes]:
    """The piece of each row."""
    if isinstance(column, Column):
        return column.spelled()
    return [column] * rows if isinstance(column, bytes) else column


def lay(columns: Sequence[Pieces], rows: int) -> bytes | memoryview:
    """The pieces of every row, row after row."""
    columns = [column for column in columns if not isinstance(column, bytes) or column]
    compiled = compiled_for(rows)
    if compiled is not None:
        return _laid(compiled, columns, rows)
    width = len(columns)
    pieces = [b""] * (width * rows)
    for place, column in enumerate(columns):
        pieces[place::width] = spelled(column, rows)
    return b"".join(pieces)


# --- compiled


class _Described(ctypes.Structure):
    """`Column` of event_rows.cpp."""

    _fields_ = (
        ("kind", ctypes.c_uint32),
        ("wide", ctypes.c_uint32),
        ("text", ctypes.c_char_p),
        ("begin", ctypes.c_void_p),
        ("index", ctypes.c_void_p),
        ("size", ctypes.c_int64),
        ("mhz", ctypes.c_double),
    )


_loaded: list[ctypes.CDLL] = []


def compiled_for(rows: int) -> ctypes.CDLL | None:
    """event_rows.cpp, if it is loaded and worth a call."""
    return _loaded[0] if _loaded and rows >= _WORTH_CALLING else None


def load_compiled() -> None:
    """Loads event_rows.cpp, compiled the first time; where it cannot be, Python serves."""
    if _loaded:
        return
    from insight_trace.simulate.embedded.toolchain import Toolchain

    try:
        library = ctypes.CDLL(str(Toolchain.find().library_of(EVENT_ROWS)))
    except (InsightTraceError, OSError):
        return
    for name in ("insight_trace_room", "insight_trace_lay", "insight_trace_threads"):
        getattr(library, name).restype = ctypes.c_int64
    library.insight_trace_count.restype = None
    _loaded.append(library)


def pointer(values: NDArray[Any]) -> ctypes.c_void_p:
    assert values.flags.c_contiguous
    return ctypes.c_void_p(values.ctypes.data)


def _laid(compiled: ctypes.CDLL, columns: Sequence[Pieces], rows: int) -> memoryview:
    described = (_Described * len(columns))()
    kept: list[object] = []  # what the addresses point into
    for into, column in zip(described, columns, strict=True):
        if isinstance(column, bytes):
            text = column + _MARGIN
            into.kind, into.text, into.size = 0, text, len(column)
            kept.append(text)
            continue
        if isinstance(column, list):
            column = Picked(Texts(column), np.arange(rows))
        index = np.ascontiguousarray(column.index)
        if len(column) != rows:
            raise ValueError(f"a column has {len(column)} of {rows} rows")
        text, begin = column.text, column.begin
        into.kind, into.text, into.size, into.mhz = column.kind, text, len(text), column.mhz
        into.wide, into.index = index.itemsize == 8, index.ctypes.data
        if begin is not None:
            low, high = int(index.min()), int(index.max())
            if low < 0 or high >= len(begin) - 1:
                raise IndexError(f"pieces {low} to {high} of {len(begin) - 1}")
            into.begin = begin.ctypes.data
        kept += [text, begin, index]
    count = ctypes.c_int64(len(columns))
    room = compiled.insight_trace_room(described, count, ctypes.c_int64(rows))
    laid = np.empty(room, np.uint8)
    size = compiled.insight_trace_lay(described, count, ctypes.c_int64(rows), pointer(laid))
    return laid[:size].data
