"""The file behind Insight's On-Chip Memory page, `*memory_info.json`: what lies in UB, L1 and L0 from when to when.

Insight imports it by itself, not with a bin. The page is made for a compiler's plan: its time axis counts cycles here,
and a life is what a tile holds from its first write to the last read of that. Insight packs the values anew, first
fit; the address that they have is an attribute.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from insight_trace.errors import InputError
from insight_trace.insight.rules import Broken
from insight_trace.limits import TABLE_BYTES
from insight_trace.model import Trace
from insight_trace.reading import prepared, read_regular
from insight_trace.recording.frames import short_frame, split_frame, user_frames
from insight_trace.recording.store import Recording
from insight_trace.recording.tile_lives import Lives, named_tiles, tile_lives
from insight_trace.storage import whole_file

MEMORY_INFO = "memory_info.json"  # with which the name of such a file ends
MOST_LIVES = (
    5000  # of one memory of one core: Insight compares each value with all others before it draws them
)
_ENTRY: dict[str, type | tuple[type, ...]] = {
    "alloc_time_in_ir": int,
    "buffer": str,
    "extent": int,
    "is_tmpbuf": bool,
    "life_time_in_ir": list,
    "offset": list,
    "source_location": str,
}


class Header(Struct, frozen=True, rename={"kernel_name": "KernelName"}):
    kernel_name: str


class Life(Struct, frozen=True):
    """One value; Insight needs every field."""

    alloc_time_in_ir: int  # shown as `allocLine`: the line of its first write
    buffer: str
    extent: int  # bits
    is_tmpbuf: bool
    life_time_in_ir: list[int]  # first cycle and last
    offset: list[int]  # bytes
    source_location: str


class MemoryScope(Struct, frozen=True):
    """One memory of one core."""

    scope: str
    status: str
    memory_info_array: list[Life]


class MemoryPage(Struct, frozen=True, rename={"header": "Header", "scopes": "Record"}):
    header: Header
    scopes: list[MemoryScope]


def memory_page(recording: Recording) -> MemoryPage | None:
    """Of the block that ends last, every core's memories; None for a kernel that names no tile."""
    trace = recording.trace
    lives = tile_lives(trace, named_tiles(recording.about.get("tiles") or ()))
    if lives is None or not lives.written.any():
        return None
    names = ", ".join(dict.fromkeys(str(kernel.get("name")) for kernel in recording.kernels))
    return MemoryPage(Header(names), list(_scopes(trace, lives)))


def _scopes(trace: Trace, lives: Lives) -> Iterator[MemoryScope]:
    columns = trace.instructions
    blocks = [core.partition(".")[0] for core in columns.cores]
    last = blocks[int(columns.core[int(np.argmax(columns.end))])]
    frames = user_frames(columns.stacks)
    origin = int(columns.start.min())
    memory_of = np.array([tile.memory for tile in lives.tiles])[lives.tile]
    for core in sorted((c for c, block in enumerate(blocks) if block == last), key=columns.cores.__getitem__):
        here = lives.written & (lives.core == core)
        for memory in dict.fromkeys(tile.memory for tile in lives.tiles):
            rows = np.flatnonzero(here & (memory_of == memory))
            if not len(rows):
                continue
            name = f"{memory} {columns.cores[core]}"
            if len(rows) > MOST_LIVES:
                name += f" (the first {MOST_LIVES:,} of {len(rows):,} values)"
                rows = rows[np.argsort(lives.begin[rows], kind="stable")][:MOST_LIVES]
            found = [_life(trace, lives, frames, origin, row) for row in rows.tolist()]
            # Insight prints the status as an error message, and anything but "fail" is a success
            yield MemoryScope(name, "", found)


def _life(trace: Trace, lives: Lives, frames: list[str], origin: int, row: int) -> Life:
    tile = lives.tiles[int(lives.tile[row])]
    frame = frames[int(trace.instructions.stack[int(lives.first[row])])]
    return Life(
        alloc_time_in_ir=split_frame(frame)[1],
        buffer=tile.name if tile.shape in tile.name else f"{tile.name} {tile.shape}",
        extent=8 * tile.bytes,
        is_tmpbuf=False,
        life_time_in_ir=[int(lives.begin[row]) - origin, int(lives.end[row]) - origin],
        offset=[tile.address],
        source_location=short_frame(frame),
    )


def encode_memory_page(page: MemoryPage) -> bytes:
    return msgspec.json.encode(page)


def write_memory_page(recording: Recording, folder: Path, label: str) -> None:
    """`<label>_memory_info.json`, where the kernel names tiles."""
    page = memory_page(recording)
    if page is not None:
        with whole_file(folder / f"{label}_{MEMORY_INFO}") as file:
            file.write(encode_memory_page(page))


def read_memory_page(path: Path) -> MemoryPage:
    """The page as it was written; compilers' files, too."""
    try:
        return msgspec.json.decode(read_regular(path, most=TABLE_BYTES), type=prepared(MemoryPage))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"no file of the On-Chip Memory page: {error}", where=str(path)) from None


def check_memory_page(path: Path) -> list[Broken]:
    """Every rule that is broken: a key that is missing empties the page without a word, a negative size ends the server."""
    try:
        table = msgspec.json.decode(read_regular(path, most=TABLE_BYTES))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return [Broken("memory-page", str(path), f"not JSON: {error}")]
    return [Broken("memory-page", f"{path} {where}", what) for where, what in _wrong(table)]


def _wrong(table: Any) -> Iterator[tuple[str, str]]:
    header = table.get("Header") if isinstance(table, dict) else None
    if not isinstance(header, dict) or not isinstance(header.get("KernelName"), str):
        yield "Header", "has no KernelName, so nothing is read"
        return
    records = table.get("Record")
    if not isinstance(records, list):
        yield "Record", "is no list, so nothing is read"
        return
    scopes: set[str] = set()
    for number, record in enumerate(records):
        where = f"Record[{number}]"
        if not isinstance(record, dict) or not all(
            isinstance(record.get(key), kind)
            for key, kind in (("scope", str), ("status", str), ("memory_info_array", list))
        ):
            yield where, "needs scope, status and memory_info_array, or nothing is read"
            continue
        if record["scope"] in scopes:
            yield where, f"{record['scope']!r} comes twice and replaces the first"
        scopes.add(record["scope"])
        for place, entry in enumerate(record["memory_info_array"]):
            yield from _wrong_entry(f"{where} memory_info_array[{place}]", entry)


def _wrong_entry(where: str, entry: Any) -> Iterator[tuple[str, str]]:
    missing = [
        key
        for key, kind in _ENTRY.items()
        if not isinstance(entry, dict)
        or not isinstance(entry.get(key), kind)
        or (kind is int and isinstance(entry[key], bool))
    ]
    if missing:
        yield where, f"needs {', '.join(missing)}, or nothing is read"
        return
    counts = [entry["extent"], *entry["offset"], *entry["life_time_in_ir"]]
    if not all(type(count) is int and 0 <= count < 1 << 63 for count in counts):
        yield (
            where,
            "extent, offset or life_time_in_ir holds something else than counts, which ends the server",
        )
    elif len(entry["life_time_in_ir"]) != 2 or entry["life_time_in_ir"][0] > entry["life_time_in_ir"][1]:
        yield where, "life_time_in_ir is not from one cycle to a later one and is drawn at 0"
    elif not entry["extent"] or entry["extent"] % 8 or not entry["offset"]:
        yield where, "extent is no number of whole bytes, or offset is empty: nothing is drawn"
