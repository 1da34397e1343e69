"""Tiles by name over the on-chip memories, and when each holds something that is still to be read.

A life begins with a write and ends with the last read before the next tile op that begins with a write; an op that writes
all of the tile begins another even if nobody read it. One that is written over while it is still to be read is an overlap:
two values on the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from insight_trace.dtypes import DTYPES
from insight_trace.model import Instructions, Operands, Trace
from insight_trace.recording.frames import line_text, user_frames
from insight_trace.recording.operands import (
    MEMORIES,
    NONE,
    READS,
    WRITES,
    all_operands,
    instruction_of_operands,
    operands_of,
    touched_bytes,
)
from insight_trace.recording.stream import first_places, grouped, numbered

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# where a tile of `.pto` lies -> the memory's name
_PTO_MEMORIES = {"vec": "UB", "mat": "L1", "left": "L0A", "right": "L0B", "acc": "L0C", "bias": "BT"}
_ON_CHIP = MEMORIES[: MEMORIES.index("FB") + 1]
_NAMES_SHOWN = 3


class TileLife(Struct, frozen=True):
    """Bytes of one memory under the names that the kernel gives them."""

    name: str
    memory: str
    address: int
    bytes: int
    shape: str


class Lives(Struct, frozen=True, eq=False):
    """By core, then tile, then time."""

    tiles: tuple[TileLife, ...]
    core: NDArray[np.int64]
    tile: NDArray[np.int64]
    begin: NDArray[np.int64]  # cycles
    end: NDArray[np.int64]
    first: NDArray[np.int64]  # rows of the trace: the first access and the last
    last: NDArray[np.int64]
    written: NDArray[np.bool_]  # False: read only, a view of bytes that another tile wrote
    overlap: NDArray[np.int64]  # the tile that is written over it while it is alive; -1: none


def named_tiles(tiles: Iterable[Mapping[str, Any]]) -> dict[tuple[str, int], list[str]]:
    """Names of a PyPTO program's tiles (`about.tiles` of the recording) by memory and address."""
    found: dict[tuple[str, int], list[str]] = {}
    for tile in tiles:
        if not isinstance(tile, Mapping):
            continue
        memory = _PTO_MEMORIES.get(str(tile.get("memory")))
        if memory and isinstance(tile.get("address"), int):
            names = found.setdefault((memory, tile["address"]), [])
            if str(tile.get("name")) not in names:
                names.append(str(tile.get("name")))
    return found


def tile_lives(trace: Trace, known: Mapping[tuple[str, int], list[str]]) -> Lives | None:
    """None for a trace that has no operands."""
    import numpy as np

    columns, operands = trace.instructions, trace.instructions.operands
    if operands is None:
        return None
    place_of, tiles = _places(operands, tile_words(trace), known)
    size = np.array([max(1, tile.bytes) for tile in tiles] or [1], np.int64)
    footprints = operands.footprints
    on_chip = np.isin(footprints["memory"], [MEMORIES.index(name) for name in _ON_CHIP])
    of_footprint = (on_chip & (footprints["owner"] == 0), footprints["role"], touched_bytes(footprints))
    found = [
        _lives_of_core(columns, operands, core, rows, place_of, tiles, size, of_footprint)
        for core, rows in grouped(columns.core)
    ]
    whole: dict[str, NDArray[Any]] = {
        name: np.concatenate([np.zeros(0, np.int64), *(each[name] for each in found if each)])
        for name in ("core", "tile", "begin", "end", "first", "last", "written", "overlap")
    }
    whole["written"] = whole["written"].astype(bool)
    return Lives(tiles, **whole)


def _lives_of_core(
    columns: Instructions,
    operands: Operands,
    core: int,
    rows: NDArray[np.int64],
    place_of: NDArray[np.int64],
    tiles: tuple[TileLife, ...],
    size: NDArray[np.int64],
    of_footprint: tuple[NDArray[Any], ...],
) -> dict[str, NDArray[Any]]:
    import numpy as np

    mine = replace(operands, first=operands.first[rows], count=operands.count[rows])
    uses = operands.rows[all_operands(mine)]
    counts, roles, touched = of_footprint
    worth = np.flatnonzero(counts[uses["footprint"]] & (uses["tile"] != NONE))
    if not len(worth):
        return {}
    footprint = uses["footprint"][worth]
    instruction = rows[instruction_of_operands(mine)[worth]]
    place, role = place_of[uses["tile"][worth]], roles[footprint]
    # instructions of one tile op count together: it may go over its scratch many times
    call = operands.call[instruction].astype(np.int64)
    step = np.where(call == NONE, len(operands.calls) + instruction, call)
    small = place.astype(np.uint16) if len(tiles) < 1 << 16 else place
    order = np.argsort(small, kind="stable")  # instructions are in their order already
    place, instruction, role, step = (each[order] for each in (place, instruction, role, step))
    filled = np.where(role & WRITES, touched[footprint[order]], 0) / size[place]
    # an instruction that names a tile as result and as source reads it first
    each = np.flatnonzero(_changes(place, instruction))
    role = np.bitwise_or.reduceat(role, each)
    filled = np.add.reduceat(filled, each)
    place, instruction, step = place[each], instruction[each], step[each]
    changes = _changes(place)
    steps = np.flatnonzero(changes | _changes(step))
    done = np.bitwise_or.reduceat(role, steps)
    reads, writes = done & READS > 0, done & WRITES > 0
    fresh = (role[steps] & READS) == 0
    whole = np.add.reduceat(filled, steps) >= 1
    fresh[1:] &= reads[:-1] | whole[1:]
    fresh |= changes[steps]
    lives = np.flatnonzero(fresh)
    at = steps[lives]
    past = np.append(at[1:], len(place))
    start, end = columns.start[instruction], columns.end[instruction]
    found = {
        "core": np.full(len(at), core, np.int64),
        "tile": place[at],
        "begin": np.minimum.reduceat(start, at),
        "end": np.maximum.reduceat(np.maximum(start, end), at),
        "first": instruction[at],
        "last": instruction[past - 1],
        "written": np.add.reduceat(writes.astype(np.int64), lives) > 0,
    }
    last_read = np.maximum.reduceat(np.where(role & READS, instruction, -1), at)
    found["overlap"] = _overlaps(tiles, found, last_read)
    return found


def _changes(*keys: NDArray[np.int64]) -> NDArray[np.bool_]:
    import numpy as np

    changed = np.zeros(len(keys[0]), bool)
    for key in keys:
        changed[1:] |= key[1:] != key[:-1]
    changed[0] = True
    return changed


def _places(
    operands: Operands, names: Mapping[int, list[str]], known: Mapping[tuple[str, int], list[str]]
) -> tuple[NDArray[np.int64], tuple[TileLife, ...]]:
    """Of every row of `tiles` the place that it lies in; tiles on the same bytes are one place."""
    import numpy as np

    numbers: dict[tuple[str, int, int], int] = {}
    place_of = np.zeros(len(operands.tiles), np.int64)
    called: list[list[str]] = []
    shapes: list[str] = []
    on_chip = [MEMORIES.index(name) for name in _ON_CHIP]
    for row in np.flatnonzero(np.isin(operands.tiles["memory"], on_chip)).tolist():
        tile = operands.tiles[row]
        memory = MEMORIES[tile["memory"]]
        code = int(tile["type"])
        size = max(1, DTYPES[code].size) if code < len(DTYPES) else 1
        count = int(tile["rows"]) * int(tile["cols"]) * size
        key = (memory, int(tile["address"]), count)
        if key not in numbers:
            numbers[key] = len(numbers)
            called.append(list(known.get(key[:2], ())))
            kind = DTYPES[code].short if code < len(DTYPES) else "?"
            shapes.append(f"{tile['rows']}×{tile['cols']} {kind}")
        place_of[row] = numbers[key]
        if key[:2] not in known:
            mine = called[numbers[key]]
            mine += [name for name in names.get(row, ()) if name not in mine]
    tiles = []
    for (memory, address, count), texts, shape in zip(numbers, called, shapes, strict=True):
        name = " / ".join(texts[:_NAMES_SHOWN]) + (" …" if len(texts) > _NAMES_SHOWN else "")
        tiles.append(TileLife(name or shape, memory, address, count, shape))
    return place_of, tuple(tiles)


_CALL = r"\b{op}\s*(?:<[^;()]*>)?\s*\((.*)"
_NAME = re.compile(r"[A-Za-z_]\w*(?:\[[^\]]*\])?(?:\.[A-Za-z_]\w*)*")


def tile_words(trace: Trace) -> dict[int, list[str]]:
    """What the kernel's own lines call the tiles that a tile op takes, by row of `tiles`."""
    import numpy as np

    operands = operands_of(trace.instructions)

    issued = np.flatnonzero(operands.call != NONE)
    calls, call = numbered(operands.call[issued])
    stack = trace.instructions.stack[issued[first_places(call, len(calls))]]
    frames = user_frames(trace.instructions.stacks)
    lists = operands.lists
    # one line calls one op with the same words every time: each pair of line, op and tiles is looked at once
    seen: set[tuple[Any, ...]] = set()
    words: dict[tuple[int, int], list[str]] = {}
    found: dict[int, list[str]] = {}
    ops, places = operands.calls["op"][calls], operands.calls["tiles"][calls]
    key = numbered(stack.astype(np.int64) * (int(ops.max(initial=0)) + 1) + ops)[1]
    key = numbered(key * (len(lists) + 1) + places)[1]
    once = np.sort(first_places(key, int(key.max(initial=-1)) + 1))
    for number, op, place in zip(*(each[once].tolist() for each in (stack, ops, places)), strict=True):
        tiles = tuple(lists[place + 1 : place + 1 + int(lists[place])].tolist())
        if (number, op, tiles) in seen:
            continue
        seen.add((number, op, tiles))
        if (number, op) not in words:
            line = line_text(trace.sources, frames[number])
            words[number, op] = _arguments(line, operands.ops[op])
        for tile, word in zip(tiles, words[number, op], strict=False):
            if word and word not in found.setdefault(tile, []):
                found[tile].append(word)
    return found


def _arguments(line: str, op: str) -> list[str]:
    """The arguments of a call on one line; "" for what is no plain name."""
    match = re.search(_CALL.format(op=re.escape(op)), line)
    if not match:
        return []
    depth, words, word = 0, [], ""
    for letter in match[1]:
        if letter in "([{<":
            depth += 1
        elif letter in ")]}>":
            depth -= 1
            if depth < 0:
                break
        if letter == "," and depth == 0:
            words.append(word)
            word = ""
        else:
            word += letter
    words.append(word)
    return [text.strip() if _NAME.fullmatch(text.strip()) else "" for text in words]


def _overlaps(
    tiles: tuple[TileLife, ...], found: Mapping[str, NDArray[Any]], last_read: NDArray[np.int64]
) -> NDArray[np.int64]:
    """For each life the tile whose write falls between its first access and its last read."""
    import numpy as np

    result = np.full(len(last_read), -1, np.int64)
    here = np.flatnonzero(found["written"])
    by_tile = {tile: here[mine] for tile, mine in grouped(found["tile"][here])}
    for a, mine in by_tile.items():
        for b, others in by_tile.items():
            if a == b or not _touch(tiles[a], tiles[b]):
                continue
            begins = found["first"][others]
            after = np.searchsorted(begins, found["first"][mine], "right")
            before = np.searchsorted(begins, last_read[mine], "left")
            result[mine[after < before]] = b
    return result


def _touch(a: TileLife, b: TileLife) -> bool:
    same = a.memory == b.memory
    return same and a.address < b.address + b.bytes and b.address < a.address + a.bytes
