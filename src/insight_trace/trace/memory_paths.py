"""Bytes over every path of every core: to and from global memory, and between the memories and units of a core."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from insight_trace.dtypes import DTYPES
from insight_trace.model import Instructions, Pipe
from insight_trace.recording.cache_use import cache_use
from insight_trace.recording.kinds import Kind
from insight_trace.recording.operands import (
    MEMORIES,
    READS,
    WRITES,
    all_operands,
    instruction_of_operands,
    touched_bytes,
)
from insight_trace.recording.pipes import VECTOR_LANES
from insight_trace.recording.stream import numbered, pieces
from insight_trace.trace.work import path_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class CorePath(Struct, frozen=True):
    """What one core moved over one path."""

    core: str
    path: str  # GM_TO_UB, L1_TO_L0A, UB_TO_VEC, CUBE_TO_L0C, …
    bytes: int
    instructions: int
    requests: int | None = (
        None  # of 128 bytes, to L2; None for a path inside the core, or where nobody counted
    )
    missed: int | None = None  # of them, not in L2


# Whose memory a pipe reads when it writes another: what it moves is counted where it arrives.
_SOURCE = {Pipe.MTE1: "L1", Pipe.FIXP: "L0C", Pipe.MTE3: "UB"}
_GM = MEMORIES.index("GM")


def memory_paths(instructions: Instructions, kind: NDArray[np.uint8]) -> tuple[CorePath, ...]:
    """By core and path, in the order of both; paths inside a core only where operands are known."""
    sums: dict[tuple[int, str], list[int]] = {}
    _global(instructions, kind, sums)
    if instructions.operands is not None and len(instructions):
        sizes = touched(instructions.operands.footprints)
        for _, part in pieces(instructions):
            _local(part, sizes, sums)
    counted = cache_use(instructions) is not None
    found = []
    for core, path in sorted(sums):
        moved, count, asked, missed = sums[core, path]
        of_l2 = (asked, missed) if counted and "GM" in path else (None, None)
        found.append(CorePath(instructions.cores[core], path, moved, count, *of_l2))
    return tuple(found)


def _add(sums: dict[tuple[int, str], list[int]], core: int, path: str, *amounts: int) -> None:
    entry = sums.setdefault((core, path), [0, 0, 0, 0])
    for place, amount in enumerate(amounts):
        entry[place] += amount


def _global(
    instructions: Instructions, kind: NDArray[np.uint8], sums: dict[tuple[int, str], list[int]]
) -> None:
    """Paths of the transfers that say how many bytes of global memory they moved, as `traffic` counts them."""
    import numpy as np

    moved = np.flatnonzero((instructions.process_bytes > 0) & (kind == Kind.WORK))
    if not len(moved):
        return
    use = cache_use(instructions)
    nothing = np.zeros(len(moved), np.int64)
    asked, missed = use.of(moved) if use is not None else (nothing, nothing)
    key = instructions.core[moved].astype(np.int64) * 2**24
    key += instructions.pipe[moved].astype(np.int64) * 2**16 + instructions.name[moved]
    present, which = numbered(key)
    columns = (instructions.process_bytes[moved], np.ones(len(moved)), asked, missed)
    totals = [np.bincount(which, weights=column, minlength=len(present)) for column in columns]
    for place, number in enumerate(present.tolist()):
        core = number >> 24
        path = path_of(instructions.cores[core], (number >> 16) & 255, instructions.names[number & 0xFFFF])
        _add(sums, core, path, *(int(total[place]) for total in totals))


def touched(footprints: NDArray[Any]) -> NDArray[np.int64]:
    """Bytes that one use of each footprint reads or writes; bytes that are read again count again."""
    import numpy as np

    sizes = np.array([max(1, dtype.size) for dtype in DTYPES] + [1] * (256 - len(DTYPES)))
    bits = np.unpackbits(np.ascontiguousarray(footprints["mask"]).view(np.uint8), axis=-1)
    lanes = bits.reshape(len(footprints), bits.size // max(1, len(footprints))).sum(axis=1).astype(np.int64)
    masked = footprints["count"][:, 0].astype(np.int64) * lanes * sizes[footprints["type"]]
    whole = touched_bytes(footprints)
    size: NDArray[np.int64] = np.where(masked > 0, np.minimum(masked, whole), whole)
    return size


def _local(
    instructions: Instructions, sizes: NDArray[np.int64], sums: dict[tuple[int, str], list[int]]
) -> None:
    import numpy as np

    operands = instructions.operands
    assert operands is not None
    rows = all_operands(operands)
    if not len(rows):
        return
    footprints = operands.footprints
    footprint = operands.rows["footprint"][rows]
    worth = np.flatnonzero(((footprints["memory"] != _GM) & (sizes > 0))[footprint])
    if not len(worth):
        return
    footprint = footprint[worth]
    owner = instruction_of_operands(operands)[worth]
    unit = instructions.core.astype(np.int64) * 2**16 + instructions.pipe.astype(np.int64) * 2**8
    size, key = sizes[footprint], (footprints["memory"].astype(np.int64) * 4 + footprints["role"])[footprint]
    key += unit[owner]
    # results stand before sources, so that operands of one kind are neighbours: an instruction counts once for each
    begins = np.ones(len(key), bool)
    begins[1:] = (key[1:] != key[:-1]) | (owner[1:] != owner[:-1])
    present = np.flatnonzero(np.bincount(key))
    totals = np.bincount(key, weights=size)[present]
    counts = np.bincount(key[begins], minlength=int(present[-1]) + 1)[present]
    for number, total, count in zip(present.tolist(), totals.tolist(), counts.tolist(), strict=True):
        core, lane, of, how = number >> 16, (number >> 8) & 255, MEMORIES[(number & 255) >> 2], number & 3
        for path in _paths(lane, of, how):
            _add(sums, core, path, int(total), int(count))


def _paths(pipe: int, memory: str, role: int) -> list[str]:
    """The paths that a pipe uses when it reads or writes a memory."""
    if pipe == Pipe.CUBE:
        unit = "CUBE"
    elif pipe == Pipe.VECTOR or pipe in VECTOR_LANES:
        unit = "VEC"
    else:
        source = _SOURCE.get(Pipe(pipe), "")
        return [f"{source}_TO_{memory}"] if source and role & WRITES and memory != source else []
    found = [f"{memory}_TO_{unit}"] if role & READS else []
    return found + ([f"{unit}_TO_{memory}"] if role & WRITES else [])
