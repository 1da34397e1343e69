"""Operands of instructions: the types of their tables, and which bytes an operand touches."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from insight_trace.dtypes import DTYPES
from insight_trace.limits import OPERAND_PIECES
from insight_trace.model import Instructions, Operands
from insight_trace.recording.stream import numbered

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NONE = 0xFFFFFFFF
MEMORIES = ("UB", "L1", "L0A", "L0B", "L0C", "BT", "FB", "L0A scale", "L0B scale", "control", "GM")
READS, WRITES = 1, 2
DST, SRC0, SRC1, FURTHER = range(4)


class Form(enum.IntEnum):
    """What an instruction is made of (engine/record.hpp)."""

    PLAIN = 0  # value
    FLAG = 1  # value: source pipe, target pipe, event
    BARRIER = 2  # value: pipe
    VECTOR = 3  # strides, repeat, mask, active elements
    TRANSFER = 4  # repeat: bursts; burst_bytes, gm_step, bytes
    LOCAL = 5  # repeat, bytes
    MULTIPLY = 6  # m, k, n
    SCALAR = 7  # value: an address or a register's content
    FUNCTION = 8  # value: loops, and above them rows


# Tables of engine/record.hpp, byte for byte.
OPERAND_FIELDS = [("address", "<u8"), ("footprint", "<u4"), ("tile", "<u4")]
CALL_FIELDS = [("op", "<u2"), ("core", "<u2"), ("tiles", "<u4")]
GEOMETRY_FIELDS = [  # reserved: a store that adds; reserved2: a unit flag; reserved3: a load of words that cores look at
    ("form", "u1"), ("type", "u1"), ("counted", "u1"), ("reserved", "u1"), ("block_stride", "<u2", (3,)),
    ("repeat_stride", "<u2", (3,)), ("repeat", "<u4"), ("elements", "<u4"), ("mask", "<u8", (2,)), ("bytes", "<i8"),
    ("m", "<u4"), ("k", "<u4"), ("n", "<u4"), ("reserved2", "<u2"), ("reserved3", "<u2"), ("burst_bytes", "<i8"),
    ("gm_step", "<i8"),
]  # fmt: skip
FOOTPRINT_FIELDS = [
    ("memory", "u1"), ("role", "u1"), ("type", "u1"), ("which", "u1"), ("exact", "u1"), ("owner", "u1"),
    ("reserved", "u1", (2,)), ("offset", "<i8"), ("step", "<i8", (4,)), ("count", "<u4", (4,)), ("run", "<u4"),
    ("lead", "<u4"), ("total", "<u4"), ("reserved2", "<u4"), ("mask", "<u8", (2,)),
]  # fmt: skip
TILE_FIELDS = [
    ("address", "<u8"), ("rows", "<i4"), ("cols", "<i4"), ("valid_rows", "<i4"), ("valid_cols", "<i4"),
    ("memory", "u1"), ("type", "u1"), ("row_major", "u1"), ("inner", "u1"), ("compact", "u1"), ("layout", "u1"),
    ("reserved", "u1", (2,)), ("fractal", "<i4"), ("reserved2", "<i4"), ("shape", "<i8", (5,)), ("stride", "<i8", (5,)),
]  # fmt: skip


class ByteRanges(Struct, frozen=True, eq=False):
    """Half-open ranges of bytes, those of one operand together, in order and not touching each other."""

    operand: NDArray[np.int64]  # place in the list that was asked for
    begin: NDArray[np.uint64]
    end: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.begin)


def operand_rows(operands: Operands, row: int) -> range:
    """The operand rows of one instruction."""
    first = int(operands.first[row])
    return range(first, first + int(operands.count[row]))


def instruction_of_operands(operands: Operands) -> NDArray[np.int64]:
    """For every operand, in the order of `all_operands`, the instruction it belongs to."""
    import numpy as np

    return np.repeat(np.arange(len(operands.count), dtype=np.int64), operands.count)


def all_operands(operands: Operands) -> NDArray[np.int64]:
    """Operand rows of all instructions of the stream, instruction by instruction."""
    import numpy as np

    first, count = operands.first, operands.count.astype(np.int64)
    if len(first) and (first[1:] == first[:-1] + operands.count[:-1]).all():  # one behind the other
        return np.arange(int(first[0]), int(first[-1]) + int(count[-1]), dtype=np.int64)
    before = np.cumsum(count) - count
    places = np.arange(int(count.sum()), dtype=np.int64)
    places += np.repeat(operands.first.astype(np.int64) - before, count)
    return places


def has_endless_operand(footprints: NDArray[Any]) -> bool:
    """Whether one has more pieces than an on-chip memory has bytes: whoever asks for them makes room for all."""
    import numpy as np

    pieces = footprints["count"].astype(np.float64).prod(axis=1)
    masked = pieces * footprints["run"] * footprints["mask"].any(axis=1)
    return bool((np.maximum(pieces, masked) > OPERAND_PIECES).any())


def byte_ranges(operands: Operands, rows: Any) -> ByteRanges:
    """The bytes that operands touch: `rows` are rows of `operands.rows`, as a number, a list or an array.

    Addresses are those of the operand's memory (`footprints["memory"]`). An operand whose footprint is not
    `exact` touches some of these bytes, and the data decide which.
    """
    import numpy as np

    rows = np.atleast_1d(np.asarray(rows, np.int64))
    footprint = operands.rows["footprint"][rows]
    kinds, kind = numbered(footprint)
    relative = [relative_ranges(operands.footprints[number]) for number in kinds.tolist()]
    sizes = np.array([len(begin) for begin, _ in relative] or [0], np.int64)
    offsets = np.cumsum(sizes) - sizes
    begins = np.concatenate([begin for begin, _ in relative] or [np.zeros(0, np.int64)])
    ends = np.concatenate([end for _, end in relative] or [np.zeros(0, np.int64)])
    count = sizes[kind] if len(rows) else np.zeros(0, np.int64)
    operand = np.repeat(np.arange(len(rows), dtype=np.int64), count)
    before = np.cumsum(count) - count
    place = np.arange(len(operand)) + np.repeat((offsets[kind] if len(rows) else count) - before, count)
    base = operands.rows["address"][rows].astype(np.int64)[operand]
    return ByteRanges(
        operand, (base + begins[place]).astype(np.uint64), (base + ends[place]).astype(np.uint64)
    )


def relative_ranges(footprint: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Begin and end of the bytes of one footprint, from the operand's address on; merged and in order."""
    import numpy as np

    run = int(footprint["run"])
    counts = [int(each) for each in footprint["count"]]
    if not run or not all(counts):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    begin = np.array([int(footprint["offset"])], np.int64)
    for count, step in zip(counts, footprint["step"].tolist(), strict=True):
        begin = (begin[:, None] + np.arange(count, dtype=np.int64) * step).reshape(-1)
    length = np.full(len(begin), run, np.int64)
    inner = counts[1] * counts[2] * counts[3]
    if lead := int(footprint["lead"]):
        done = np.arange(inner, dtype=np.int64) * run
        length = np.tile(np.clip(lead - done, 0, run), counts[0])
    if total := int(footprint["total"]):
        length = np.minimum(length, np.clip(total - np.arange(len(begin), dtype=np.int64) * run, 0, run))
    mask = int(footprint["mask"][0]) | int(footprint["mask"][1]) << 64
    if mask:
        begin, length = _masked(begin, length, mask, inner, run, _type_size(int(footprint["type"])))
    return _merged(begin, begin + length)


def _masked(
    begin: NDArray[np.int64], length: NDArray[np.int64], mask: int, inner: int, run: int, size: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Element by element: only those whose bit is set."""
    import numpy as np

    each = max(1, run // size)
    bits = np.array([mask >> lane & 1 for lane in range(inner * each)], bool)
    starts = (begin[:, None] + np.arange(each, dtype=np.int64) * size).reshape(-1)
    taken = np.tile(bits, len(begin) // inner) & np.repeat(length > 0, each)
    return starts[taken], np.full(int(taken.sum()), size, np.int64)


def _merged(begin: NDArray[np.int64], end: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    import numpy as np

    from insight_trace.recording.intervals import union

    proper = end > begin
    spans = union(begin[proper], end[proper])
    return np.asarray(spans.begin), np.asarray(spans.end)


def _type_size(code: int) -> int:
    return max(1, DTYPES[code].size) if code < len(DTYPES) else 1


def touched_bytes(footprints: NDArray[Any]) -> NDArray[np.int64]:
    """How many bytes each footprint touches; masks of single lanes are not counted out."""
    import numpy as np

    counts = footprints["count"].astype(np.int64)
    each_first = np.where(
        footprints["lead"] > 0,
        np.minimum(footprints["lead"], counts[:, 1:].prod(axis=1) * footprints["run"]),
        counts[:, 1:].prod(axis=1) * footprints["run"],
    )
    touched: NDArray[np.int64] = (counts[:, 0] * each_first).astype(np.int64)
    total = footprints["total"].astype(np.int64)
    return np.where(total > 0, np.minimum(total, touched), touched)


def element_types(instructions: Instructions) -> NDArray[np.uint8]:
    """The element type of every row that has one; 0, the first type, elsewhere."""
    import numpy as np

    operands = instructions.operands
    if operands is None:
        return np.zeros(len(instructions), np.uint8)
    types = np.append(operands.geometries["type"], np.uint8(0))
    return types[np.minimum(operands.geometry, len(types) - 1)].astype(np.uint8)


def operands_of(instructions: Instructions) -> Operands:
    """The stream's operands; an error where a foreign trace has none."""
    from insight_trace.errors import InputError

    if instructions.operands is None:
        raise InputError(
            "this trace has no operands: only recordings of our own runs keep them",
            hint="replay the dispatch again, and give the folder that replay names",
        )
    return instructions.operands
