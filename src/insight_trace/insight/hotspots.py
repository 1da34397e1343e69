"""Executions counted by address and by source line: what the CSV files and the API tables show."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from insight_trace.insight.prepared import Prepared
from insight_trace.model import Pipe
from insight_trace.recording.frames import TOOLKIT
from insight_trace.recording.intervals import added
from insight_trace.recording.stream import distinct

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


def _count(prepared: Prepared, rows: NDArray[np.int64], core: NDArray[Any], key: NDArray[Any]) -> Counts:
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
    addresses, key = np.unique(prepared.instructions.pc[rows], return_inverse=True)
    return addresses, _count(prepared, rows, core, key)


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
    repeats = depth[columns.stack[rows]]
    spread = np.repeat(np.arange(len(rows)), repeats)
    within = np.arange(len(spread)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    key = flat[offset[columns.stack[rows]][spread] + within]
    counts = _count(prepared, rows[spread], core[spread], key)
    addresses, which = np.unique(columns.pc[rows], return_inverse=True)
    cells = distinct(key * len(addresses) + which[spread])
    owner = cells // len(addresses)
    bounds = np.searchsorted(owner, np.arange(len(codes) + 1))
    found = [addresses[cells[low:high] % len(addresses)] for low, high in itertools.pairwise(bounds)]
    return Lines(codes=codes, counts=counts, addresses=found)
