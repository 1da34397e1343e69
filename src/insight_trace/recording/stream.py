"""Streams of instructions: none, some of the rows of one, and checks that its columns fit together."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from msgspec.structs import replace

from insight_trace.model import Instructions, Operands
from insight_trace.storage import require_room

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PIECE = 1 << 20  # rows that are worked on at a time
_ROWS_ON_DISK = 1 << 22

COLUMNS = {
    "core": "<u2", "pipe": "|u1", "name": "<u2", "stack": "<u4", "pc": "<u8", "start": "<i8", "end": "<i8",
    "issue": "<i8", "process_bytes": "<i8", "partner": "<i8", "stall": "|u1", "read_conflict": "<i4",
    "write_conflict": "<i4", "utilisation": "<f4",
}  # fmt: skip
OPERAND_COLUMNS = {
    "times": "<i8", "form": "|u1", "value": "<u8", "geometry": "<u4", "call": "<u4", "first": "<u4", "count": "<u4",
}  # fmt: skip


class Picked(Sequence[str]):
    """Some of the rows' details, spelled when asked for."""

    def __init__(self, details: Sequence[str], rows: NDArray[np.int64]) -> None:
        self._details = details
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return details_of(self._details, self._rows[index])
        return self._details[int(self._rows[index])]

    def texts(self, rows: NDArray[np.int64]) -> list[str]:
        return details_of(self._details, self._rows[rows])

    def numbered(self, rows: NDArray[np.int64], values: bool) -> tuple[list[str], NDArray[np.int64]]:
        return numbered_details(self._details, self._rows[rows], values=values)


def details_of(details: Sequence[str], rows: NDArray[np.int64]) -> list[str]:
    """The details of several rows."""
    of_rows = getattr(details, "texts", None)
    if of_rows is not None:
        found: list[str] = of_rows(rows)
        return found
    if isinstance(details, list) and len(rows) > 1:
        return list(itemgetter(*rows.tolist())(details))
    return [details[row] for row in rows.tolist()]


def numbered_details(
    details: Sequence[str], rows: NDArray[np.int64], *, values: bool
) -> tuple[list[str], NDArray[np.int64]]:
    """Texts of several rows, and which of them each row has. Without `values` rows may share a text whose values differ."""
    import numpy as np

    of_rows = getattr(details, "numbered", None)
    if of_rows is not None:
        found: tuple[list[str], NDArray[np.int64]] = of_rows(rows, values)
        return found
    numbers: dict[str, int] = {}
    index = [numbers.setdefault(text, len(numbers)) for text in details_of(details, rows)]
    return list(numbers), np.array(index, np.int64)


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """Each value once, in ascending order.

    By sorting: `np.unique` hashes, where addresses of tiles collide, and loads masked arrays, a tenth of NumPy's own time.
    """
    import numpy as np

    ordered = np.sort(values, axis=None)
    if len(ordered) < 2:
        return ordered
    once: NDArray[Any] = ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))]
    return once


def grouped(keys: NDArray[Any]) -> list[tuple[int, NDArray[np.int64]]]:
    """The places of each key, in ascending order of both.

    One sort serves all of them: of runs of one key, or of places, where small numbers sort in linear time.
    """
    import numpy as np

    if not len(keys):
        return []
    runs = np.concatenate(([0], np.flatnonzero(keys[1:] != keys[:-1]) + 1))
    if 8 * len(runs) > len(keys):
        runs = np.arange(len(keys))
    of_run = keys[runs]
    highest = int(of_run.max())
    small = of_run.astype(np.uint8 if highest < 1 << 8 else np.uint16) if highest < 1 << 16 else of_run
    order = np.argsort(small, kind="stable")
    ordered = of_run[order]
    begins = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    if len(runs) < len(keys):
        length = np.diff(runs, append=len(keys))[order]
        before = np.cumsum(length) - length
        places = np.repeat(runs[order] - before, length)
        places += np.arange(len(keys))
        parts = np.split(places, before[begins[1:]])
    else:
        parts = np.split(order, begins[1:])
    return list(zip(ordered[begins].tolist(), parts, strict=True))


def numbered(keys: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Each key once, in ascending order, and for every place which of them it has. Keys are whole numbers from 0 on."""
    import numpy as np

    if not len(keys):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    highest = int(keys.max())
    if highest > 4 * len(keys) + (1 << 16):  # a table would be larger than what it sorts
        present, place = np.unique(keys, return_inverse=True)
        return present.astype(np.int64), place
    keys = keys.astype(np.int64, copy=False)
    present = np.flatnonzero(np.bincount(keys))
    table = np.zeros(highest + 1, np.int64)
    table[present] = np.arange(len(present))
    return present, table[keys]


def first_places(index: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Where each of `count` numbers stands first; one that never does has the length of `index`."""
    import numpy as np

    first = np.full(count, len(index), np.int64)
    first[index[::-1]] = np.arange(len(index) - 1, -1, -1)
    return first


def empty(cores: tuple[str, ...] = ()) -> Instructions:
    """A stream without instructions."""
    import numpy as np

    columns: dict[str, Any] = {name: np.empty(0, kind) for name, kind in COLUMNS.items()}
    return Instructions(cores=cores, names=(), stacks=("",), detail=[], **columns)


def pieces(instructions: Instructions, rows: int = PIECE) -> Iterator[tuple[int, Instructions]]:
    """The stream in parts that are views of it, each with its first row. Partners are rows of the whole."""
    import numpy as np

    for begin in range(0, len(instructions), rows):
        here = slice(begin, begin + rows)
        columns: dict[str, Any] = {name: getattr(instructions, name)[here] for name in COLUMNS}
        operands = instructions.operands
        if operands is not None:
            operands = replace(operands, **{name: getattr(operands, name)[here] for name in OPERAND_COLUMNS})
        detail = Picked(instructions.detail, np.arange(begin, min(begin + rows, len(instructions))))
        yield begin, replace(instructions, **columns, detail=detail, operands=operands)
        release(instructions)


def release(instructions: Instructions) -> None:
    """Gives back the memory of columns that are mapped from files: it is read again when it is needed.

    Only of large ones: what is read again costs more than it takes.
    """
    if len(instructions) < PIECE:
        return
    operands = instructions.operands
    columns: list[Any] = [getattr(instructions, name) for name in COLUMNS]
    if operands is not None:
        columns += [getattr(operands, name) for name in (*OPERAND_COLUMNS, "rows", "calls")]
    release_columns(columns)


def release_columns(columns: Sequence[Any]) -> None:
    """The same for columns: those that are not mapped from a file stay as they are."""
    import mmap

    found = {}
    for column in columns:
        base = column
        while base is not None and not isinstance(base, mmap.mmap):
            base = getattr(base, "base", None)
        if base is not None:
            found[id(base)] = base
    for mapping in found.values():
        mapping.madvise(mmap.MADV_DONTNEED)


def column_room(rows: int, kind: Any, width: int = 1) -> NDArray[Any]:
    """A new column: in memory, and of a large stream in a file without a name that `release` gives back."""
    import numpy as np

    shape = (rows,) if width == 1 else (rows, width)
    if rows < _ROWS_ON_DISK:
        return np.empty(shape, kind)
    with tempfile.TemporaryFile(prefix="insight-trace-column-") as file:
        return np.memmap(file, kind, "w+", shape=shape)


def require_column_room(rows: int) -> None:
    """Refuses a stream whose columns find no room: a page of a temporary file that is missing ends the process."""
    import numpy as np

    if rows < _ROWS_ON_DISK:
        return
    kinds = [*COLUMNS.values(), *OPERAND_COLUMNS.values(), "<i8", "<i8"]  # an operand has three times
    need = rows * sum(np.dtype(kind).itemsize for kind in kinds)
    hint = "TMPDIR names a place with more room; fewer blocks (--blocks) or a shorter run take less"
    require_room(Path(tempfile.gettempdir()), need, f"the columns of {rows:,} instructions", hint)


def take(instructions: Instructions, rows: NDArray[Any]) -> Instructions:
    """The stream of some rows, in the order given; a partner that is left out is none."""
    import numpy as np

    rows = np.flatnonzero(rows) if rows.dtype == bool else np.asarray(rows, np.int64)
    columns: dict[str, Any] = {name: getattr(instructions, name)[rows] for name in COLUMNS}
    place = np.full(len(instructions) + 1, -1, np.int64)
    place[rows] = np.arange(len(rows))
    columns["partner"] = place[columns["partner"]]
    operands = instructions.operands
    if operands is not None:
        operands = _take_operands(operands, rows)
    return replace(instructions, **columns, detail=Picked(instructions.detail, rows), operands=operands)


def _take_operands(operands: Operands, rows: NDArray[np.int64]) -> Operands:
    chosen = {name: getattr(operands, name)[rows] for name in OPERAND_COLUMNS}
    return replace(operands, **chosen)
