"""Executions counted by address and by source line: what the CSV files and the API tables show."""

from __future__ import annotations

import ctypes
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from insight_trace.insight.encoding import compiled_for, pointer
from insight_trace.insight.prepared import Prepared
from insight_trace.model import Pipe
from insight_trace.recording.frames import TOOLKIT
from insight_trace.recording.intervals import added
from insight_trace.recording.stream import distinct, numbered

if TYPE_CHECKING:
    from numpy.typing import NDArray

INT32_MAX = 2**31 - 1


class Counts(Struct, frozen=True, eq=False):
    """One row per (core, what is counted), ordered by both."""

    core: NDArray[np.int64]
    key: NDArray[np.int64]
    first: NDArray[np.int64]  # row of the first execution, in the vendor's order
    executed: NDArray[np.int64]
    cycles: NDArray[np.int64]  # clamped to int32, all that Insight reads
    busy: NDArray[np.int64]  # cycles of the union of the executions
    gpr: NDArray[np.int64]
    process_bytes: NDArray[np.int64]
    read_conflict: NDArray[np.int64]
    write_conflict: NDArray[np.int64]
    utilisation: NDArray[np.float32]
    stalled: NDArray[np.int64]
    fetching: NDArray[np.int64]
    decoding: NDArray[np.int64]


def running_time(busy: NDArray[Any], mhz: float) -> NDArray[np.float32]:
    """Microseconds to two decimals, halves away from zero."""
    return (np.floor(busy / mhz * 100 + 0.5) / 100).astype(np.float32)


class Keys(Struct, frozen=True, eq=False):
    """What rows count for: lists of keys, and which list each row has."""

    begin: NDArray[np.int64]  # of each list, and the end of the last one
    key: NDArray[np.int64]
    list: NDArray[np.int64]  # by row of the trace


def _count(prepared: Prepared, rows: NDArray[np.int64], core: NDArray[Any], keys: Keys) -> Counts:
    """Counts over `rows`, whose cores stand at the places `core`."""
    found = _count_compiled(prepared, rows, keys)
    if found is not None:
        return found
    spread, key = _spread(rows, keys)
    return _count_sorted(prepared, rows[spread], core[spread], key)


def _spread(rows: NDArray[np.int64], keys: Keys) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Places in `rows`, once for each key that the row has, and these keys."""
    first = keys.begin[keys.list[rows]]
    repeats = keys.begin[keys.list[rows] + 1] - first
    spread = np.repeat(np.arange(len(rows)), repeats)
    within = np.arange(len(spread)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    return spread, keys.key[first[spread] + within]


_COLUMNS = (
    *("order", "core", "list", "begin", "key", "start", "end", "rank", "moved", "stalled"),
    *("read_conflict", "write_conflict", "utilisation"),
)
_CELLS = (
    *("executed", "cycles", "busy", "moved", "stalled", "rank", "read_conflict", "write_conflict", "latest"),
    "utilisation",
)


class _Given(ctypes.Structure):
    """`RowsToCount` of event_rows.cpp."""

    _fields_ = (
        ("rows", ctypes.c_int64),
        ("keys", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in _COLUMNS),
    )


class _Cells(ctypes.Structure):
    """`CellCounts` of event_rows.cpp."""

    _fields_ = tuple((name, ctypes.c_void_p) for name in _CELLS)


def _count_compiled(prepared: Prepared, rows: NDArray[np.int64], keys: Keys) -> Counts | None:
    """The counts by compiled code; None where it is not there or has no place for what is asked."""
    columns, extras = prepared.instructions, prepared.extras
    compiled = compiled_for(len(rows))
    width = int(keys.key.max()) + 1
    size = width * len(prepared.cores)
    if (
        compiled is None
        or extras.gpr is not None
        or extras.fetched is not None
        or size > 4 * len(rows) + (1 << 16)
    ):
        return None
    if np.isnan(columns.utilisation).any():
        return None
    moved = np.maximum(columns.process_bytes, 0)
    moved[columns.pipe == Pipe.USERMARK] = 0
    place = np.zeros(len(columns.cores), np.int64)
    place[prepared.cores] = np.arange(len(prepared.cores))
    by_row = {
        "order": (rows[np.argsort(columns.start[rows], kind="stable")], np.int64),
        "core": (columns.core, np.uint16),
        "list": (keys.list, np.int64),
        "begin": (keys.begin, np.int64),
        "key": (keys.key, np.int64),
        "start": (columns.start, np.int64),
        "end": (columns.end, np.int64),
        "rank": (prepared.drawn[1], np.int64),
        "moved": (moved, np.int64),
        "stalled": (prepared.stood_still, np.int64),
        "read_conflict": (columns.read_conflict, np.int32),
        "write_conflict": (columns.write_conflict, np.int32),
        "utilisation": (columns.utilisation, np.float32),
    }
    kept = {name: np.ascontiguousarray(values, kind) for name, (values, kind) in by_row.items()}
    given = _Given(len(rows), width, *(pointer(kept[name]) for name in _COLUMNS))
    cells: dict[str, NDArray[Any]] = {name: np.zeros(size, np.int64) for name in _CELLS}
    cells["utilisation"] = np.full(size, np.inf, np.float32)
    cells["rank"][:] = len(columns)
    for name in ("read_conflict", "write_conflict", "latest"):
        cells[name][:] = np.iinfo(np.int64).min
    into = _Cells(*(pointer(cells[name]) for name in _CELLS))
    compiled.insight_trace_count(ctypes.byref(given), ctypes.byref(into), pointer(place))
    present = np.flatnonzero(cells["executed"])
    found = {name: values[present] for name, values in cells.items()}
    nothing = np.zeros(len(present), np.int64)
    return Counts(
        core=present // width,
        key=present % width,
        first=prepared.drawn[0][found["rank"]],
        executed=found["executed"],
        cycles=np.minimum(found["cycles"], INT32_MAX),
        busy=found["busy"],
        gpr=np.full(len(present), -1),
        process_bytes=np.minimum(found["moved"], INT32_MAX),
        read_conflict=found["read_conflict"],
        write_conflict=found["write_conflict"],
        utilisation=found["utilisation"],
        stalled=np.minimum(found["stalled"], INT32_MAX),
        fetching=nothing,
        decoding=nothing,
    )


def _count_sorted(
    prepared: Prepared, rows: NDArray[np.int64], core: NDArray[Any], key: NDArray[Any]
) -> Counts:
    columns, extras = prepared.instructions, prepared.extras
    group = core.astype(np.int64) * (int(key.max()) + 1) + key
    start, end = columns.start[rows], columns.end[rows]
    order = np.lexsort((start, group))
    bounds = np.concatenate(([0], np.flatnonzero(np.diff(group[order])) + 1))

    def total(values: NDArray[Any]) -> NDArray[np.int64]:
        return np.add.reduceat(values.astype(np.int64)[order], bounds)

    def highest(values: NDArray[Any]) -> NDArray[np.int64]:
        return np.maximum.reduceat(values.astype(np.int64)[order], bounds)

    # the first execution is the one that is drawn first
    drawn, rank = prepared.drawn
    first = drawn[np.minimum.reduceat(rank[rows][order], bounds)]
    counted = columns.pipe[rows] != Pipe.USERMARK
    moved = np.where(counted, np.maximum(columns.process_bytes[rows], 0), 0)
    none = np.full(len(rows), -1)
    gpr = none if extras.gpr is None else np.where(counted, extras.gpr[rows], -1)
    fetch = np.zeros(len(rows), dtype=np.int64)
    decode = fetch
    if extras.fetched is not None and extras.decoded is not None:
        known = extras.fetched[rows] >= 0
        fetch = np.where(known, extras.decoded[rows] - extras.fetched[rows], 0)
        decode = np.where(known, start - extras.decoded[rows], 0)
    return Counts(
        core=core.astype(np.int64)[order][bounds],
        key=key.astype(np.int64)[order][bounds],
        first=first,
        executed=np.diff(np.append(bounds, len(order))),
        cycles=np.minimum(total(end - start), INT32_MAX),
        busy=np.add.reduceat(added(group[order], start[order], end[order]), bounds),
        gpr=highest(gpr),
        process_bytes=np.minimum(total(moved), INT32_MAX),
        read_conflict=highest(columns.read_conflict[rows]),
        write_conflict=highest(columns.write_conflict[rows]),
        utilisation=np.minimum.reduceat(columns.utilisation[rows][order], bounds),
        stalled=np.minimum(total(prepared.stood_still[rows]), INT32_MAX),
        fetching=np.minimum(total(fetch), INT32_MAX),
        decoding=np.minimum(total(decode), INT32_MAX),
    )


def _counted_rows(prepared: Prepared) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows that count (all but cache misses) and the place of their core among the cores by name."""
    columns = prepared.instructions
    rows = np.flatnonzero(columns.pipe != Pipe.CACHEMISS)
    place = np.zeros(len(columns.cores), dtype=np.int64)
    place[prepared.cores] = np.arange(len(prepared.cores))
    return rows, place[columns.core[rows]]


def count_addresses(prepared: Prepared) -> tuple[NDArray[np.uint64], Counts] | None:
    """Distinct addresses, and the counts whose `key` indexes them."""
    rows, core = _counted_rows(prepared)
    if len(rows) == 0:
        return None
    addresses, which = prepared.addresses
    present, key = numbered(which[rows])
    lists = np.zeros(len(which), np.int64)
    lists[rows] = key
    each = np.arange(len(present) + 1)
    return addresses[present], _count(prepared, rows, core, Keys(each, each[:-1], lists))


class Lines(Struct, frozen=True, eq=False):
    """Source lines that were executed, and which addresses belong to each."""

    codes: list[str]  # "file:line", sorted
    counts: Counts  # `key` indexes `codes`
    addresses: list[NDArray[np.uint64]]  # of each code, over all cores


def frames_of(stack: str) -> list[str]:
    """Frames of a stack that count, each once, without the toolkit's own."""
    frames = dict.fromkeys(frame for frame in stack.split("\n") if frame)
    return [frame for frame in frames if TOOLKIT not in frame and ":" in frame]


def count_lines(prepared: Prepared) -> Lines | None:
    """An execution counts for every frame of its stack. A user mark counts for the line where it starts."""
    columns = prepared.instructions
    frames = [frames_of(stack.partition("\n\n")[0]) for stack in columns.stacks]
    if not any(frames):
        return None
    rows, core = _counted_rows(prepared)
    depth = np.array([len(found) for found in frames])
    used = distinct(columns.stack[rows])
    codes = sorted({frame for stack in used.tolist() for frame in frames[stack]})
    if not codes:
        return None
    place = {code: number for number, code in enumerate(codes)}
    flat = np.array([place.get(frame, 0) for found in frames for frame in found], dtype=np.int64)
    offset = np.concatenate(([0], np.cumsum(depth)))
    keys = Keys(offset, flat, columns.stack.astype(np.int64))
    counts = _count(prepared, rows, core, keys)
    addresses, which = prepared.addresses
    pairs, _ = numbered(keys.list[rows] * len(addresses) + which[rows])  # each stack and address once
    stack, address = np.divmod(pairs, len(addresses))
    spread, key = _spread(np.arange(len(pairs)), Keys(offset, flat, stack))
    cells = distinct(key * len(addresses) + address[spread])
    owner = cells // len(addresses)
    bounds = np.searchsorted(owner, np.arange(len(codes) + 1))
    found = [addresses[cells[low:high] % len(addresses)] for low, high in itertools.pairwise(bounds)]
    return Lines(codes=codes, counts=counts, addresses=found)
