"""Faults that the tiles of a recording show: tiles of one op that overlap in part, scratch over a tile that is still to be
read, columns that an earlier pass left in a tile, outputs of which a part is never written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from insight_trace.dtypes import DTYPES
from insight_trace.finding import Finding, Place, Severity
from insight_trace.model import Instructions, Operands
from insight_trace.recording.intervals import union
from insight_trace.recording.operands import (
    MEMORIES,
    NONE,
    READS,
    WRITES,
    all_operands,
    byte_ranges,
    instruction_of_operands,
    operand_rows,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

_GM = MEMORIES.index("GM")
_MOST_ROWS = (
    400_000  # of a longer run the first ones: what is wrong in a loop is wrong from its first round on
)


class _Tile:
    """Bytes of an on-chip memory under one name."""

    def __init__(self, row: Any) -> None:
        size = max(1, DTYPES[int(row["type"])].size) if int(row["type"]) < len(DTYPES) else 1
        rows, cols = int(row["valid_rows"]), int(row["valid_cols"])
        if not row["row_major"]:
            rows, cols = cols, rows
        width = int(row["cols"] if row["row_major"] else row["rows"])
        elements = (max(1, rows) - 1) * width + max(1, cols)
        if row["inner"]:
            elements = int(row["rows"]) * int(row["cols"])
        self.valid = int(row["valid_rows"]), int(row["valid_cols"])
        self.memory = int(row["memory"])
        self.begin = int(row["address"])
        self.end = self.begin + elements * size

    def overlaps(self, other: _Tile) -> bool:
        return self.memory == other.memory and self.begin < other.end and other.begin < self.end

    def partly(self, other: _Tile) -> bool:
        """They share bytes, and each has bytes of its own."""
        inside = self.begin >= other.begin and self.end <= other.end
        around = self.begin <= other.begin and self.end >= other.end
        return self.overlaps(other) and not inside and not around

    @property
    def text(self) -> str:
        return f"{MEMORIES[self.memory]} 0x{self.begin:x}..0x{self.end:x}"


def tile_faults(instructions: Instructions, place_of: Callable[[int], Place]) -> tuple[Finding, ...]:
    """Each once for the lines that it is about."""
    operands = instructions.operands
    if operands is None or not len(operands.calls):
        return ()
    tiles: dict[int, _Tile] = {}

    def tile(number: int) -> _Tile:
        if number not in tiles:
            tiles[number] = _Tile(operands.tiles[number])
        return tiles[number]

    found: dict[tuple[str, int, int], Finding] = {}
    for core in range(len(instructions.cores)):
        # by tile that was written: the row that did, and the row whose scratch went over it since
        written: dict[int, int] = {}
        spoiled: dict[int, tuple[int, int]] = {}
        passes = _Passes(tile)
        for rows in _calls(instructions, operands, core):
            own = _tiles_of(operands, int(operands.call[rows[0]]))
            own = [number for number in own if operands.tiles[number]["memory"] != _GM]
            _look_at_overlap(rows[0], own, tile, place_of, found, operands)
            reads, writes = _used(operands, rows)
            for number in reads & spoiled.keys():
                over, scratch = spoiled.pop(number)
                first, second = place_of(over), place_of(rows[0])
                key = "scratch-overlap", first.line, second.line
                found.setdefault(key, _scratch_fault(first, second, tile(number), tile(scratch)))
            for number, full, part in passes.stale(reads):
                places = place_of(full), place_of(part), place_of(rows[0])
                key = "stale-read", places[1].line, places[2].line
                found.setdefault(key, _stale_fault(places, tile(number), passes.last(number)))
            for number in writes:
                passes.write(number, int(instructions.stack[rows[0]]), rows[0], reads)
                spoiled.pop(number, None)
                if own and number != own[0]:  # beside its result: scratch
                    for other in written:
                        apart = tile(other).begin != tile(number).begin and other != number
                        if apart and other not in own and tile(number).overlaps(tile(other)):
                            spoiled[other] = rows[0], number
                written[number] = rows[0]
    return tuple(found.values())


class _Passes:
    """What passes of a loop leave in a tile: by place, the last write, and a larger one of the same line before it."""

    def __init__(self, tile: Callable[[int], _Tile]) -> None:
        self.tile = tile
        self.written: dict[tuple[int, int], tuple[int, int, int]] = {}  # tile, line, row
        self.before: dict[tuple[int, int], tuple[int, int]] = {}  # tile and row of the larger write

    def _place(self, number: int) -> tuple[int, int]:
        return self.tile(number).memory, self.tile(number).begin

    def write(self, number: int, line: int, row: int, reads: set[int]) -> None:
        place = self._place(number)
        # an op that reads what it writes, as a sum does, keeps the rest of the tile on purpose
        in_place = any(self._place(other) == place for other in reads)
        old = self.written.get(place)
        self.before.pop(place, None)
        if old is not None and old[1] == line and not in_place and self._larger(old[0], number):
            self.before[place] = old[0], old[2]
        self.written[place] = number, line, row

    def stale(self, reads: set[int]) -> Iterator[tuple[int, int, int]]:
        """Tiles that are read beyond what the last pass wrote: the tile, the row of the larger write, that of the last."""
        for number in sorted(reads):
            place = self._place(number)
            if place in self.before and self._larger(number, self.written[place][0]):
                yield number, self.before[place][1], self.written[place][2]

    def last(self, number: int) -> _Tile:
        return self.tile(self.written[self._place(number)][0])

    def _larger(self, one: int, other: int) -> bool:
        return any(a > b for a, b in zip(self.tile(one).valid, self.tile(other).valid, strict=True))


def _calls(instructions: Instructions, operands: Operands, core: int) -> Iterator[list[int]]:
    """Rows of each tile op that a core executed, in its order."""
    import numpy as np

    rows = np.flatnonzero((instructions.core == core) & (operands.call != NONE))[:_MOST_ROWS]
    last = -1
    group: list[int] = []
    for row, call in zip(rows.tolist(), operands.call[rows].tolist(), strict=True):
        if call != last and group:
            yield group
            group = []
        last = call
        group.append(row)
    if group:
        yield group


def _tiles_of(operands: Operands, call: int) -> list[int]:
    at = int(operands.calls[call]["tiles"])
    if at == NONE or at >= len(operands.lists):
        return []
    return [int(number) for number in operands.lists[at + 1 : at + 1 + int(operands.lists[at])]]


def _used(operands: Operands, rows: Iterable[int]) -> tuple[set[int], set[int]]:
    """Tiles that an op reads before it writes them, and those that it writes."""
    reads, writes = set(), set()
    for row in rows:
        for write in (False, True):
            for operand in operand_rows(operands, row):
                number = int(operands.rows["tile"][operand])
                footprint = operands.footprints[operands.rows["footprint"][operand]]
                if number == NONE or footprint["memory"] == _GM:
                    continue
                if write and footprint["role"] & WRITES:
                    writes.add(number)
                elif not write and footprint["role"] & READS and number not in writes:
                    reads.add(number)
    return reads, writes


def _look_at_overlap(
    row: int,
    own: Sequence[int],
    tile: Callable[[int], _Tile],
    place_of: Callable[[int], Place],
    found: dict[tuple[str, int, int], Finding],
    operands: Operands,
) -> None:
    for number in own[1:]:
        if not tile(own[0]).partly(tile(number)):
            continue
        place = place_of(row)
        op = operands.ops[int(operands.calls[int(operands.call[row])]["op"])]
        found.setdefault(
            ("tile-overlap", place.line, place.line),
            Finding(
                category="tile-overlap",
                severity=Severity.ERROR,
                message=f"the result of {op} (line {place.line}) lies at {tile(own[0]).text} and an operand at "
                f"{tile(number).text}: they overlap in part, so what is still to be read is written over",
                fix="place the two tiles apart, or both at the same address",
                places=(place,),
                memory=MEMORIES[tile(number).memory],
                begin=max(tile(own[0]).begin, tile(number).begin),
                end=min(tile(own[0]).end, tile(number).end),
            ),
        )


def _scratch_fault(first: Place, second: Place, victim: _Tile, scratch: _Tile) -> Finding:
    return Finding(
        category="scratch-overlap",
        severity=Severity.ERROR,
        message=f"{second.instruction} (line {second.line}) reads the tile at {victim.text} after the scratch of line "
        f"{first.line} at {scratch.text} was written over it",
        fix="place the scratch where no tile lies that is still to be read",
        places=(first, second),
        memory=MEMORIES[victim.memory],
        begin=max(victim.begin, scratch.begin),
        end=min(victim.end, scratch.end),
    )


def _stale_fault(places: tuple[Place, Place, Place], read: _Tile, written: _Tile) -> Finding:
    full, part, reader = places
    shape, wrote = ("x".join(map(str, one.valid)) for one in (read, written))
    return Finding(
        category="stale-read",
        severity=Severity.WARNING,
        message=f"{reader.instruction} (line {reader.line}) reads {shape} of the tile at {read.text}, of which the last "
        f"pass of line {part.line} wrote {wrote}: the rest is what an earlier pass left there",
        fix="give the reader the valid size of this pass, or pad the tile before it (TFILLPAD)",
        places=(full, part, reader),
        memory=MEMORIES[read.memory],
        begin=read.begin,
        end=read.end,
    )


def unwritten_parts(instructions: Instructions, name: str, address: int, size: int) -> Finding | None:
    """Of an output of which something is written: what never is."""
    import numpy as np

    operands = instructions.operands
    if operands is None or size <= 0:
        return None
    chosen = all_operands(operands)
    footprint = operands.rows["footprint"][chosen]
    of_output = (operands.footprints["memory"][footprint] == _GM) & (
        operands.footprints["role"][footprint] & WRITES > 0
    )
    where = operands.rows["address"][chosen]
    of_output &= (where >= address) & (where < address + size)
    rows = instruction_of_operands(operands)[of_output]
    if not len(rows):
        return None
    ranges = byte_ranges(operands, chosen[of_output])
    begin, end = ranges.begin.astype(np.int64) - address, ranges.end.astype(np.int64) - address
    spans = union(np.clip(begin, 0, size), np.clip(end, 0, size))
    missing = size - spans.length
    if not missing:
        return None
    gaps = _gaps(spans.begin, spans.end, size)
    first = ", ".join(f"0x{low:x}..0x{high:x}" for low, high in gaps[:3])
    more = f" and {len(gaps) - 3} more" if len(gaps) > 3 else ""
    return Finding(
        category="output-unwritten",
        severity=Severity.WARNING,
        message=f"{name} is an output, and {missing:,} of its {size:,} bytes are never written: {first}{more}",
        fix="store all rows and columns, or declare the argument as one that keeps what is in it",
        memory="GM",
        begin=gaps[0][0],
        end=gaps[0][1],
    )


def _gaps(begin: NDArray[Any], end: NDArray[Any], size: int) -> list[tuple[int, int]]:
    starts = [0, *end.tolist()]
    ends = [*begin.tolist(), size]
    return [(low, high) for low, high in zip(starts, ends, strict=True) if high > low]
