"""How much work was done: bytes by path, multiply-adds, elements; from columns and operands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from insight_trace.chips import Roofs
from insight_trace.model import Instructions, Pipe
from insight_trace.recording.cache_use import cache_use
from insight_trace.recording.detail import type_text
from insight_trace.recording.foreign import element_of_text, elements_of_text, products_of_text
from insight_trace.recording.intervals import union
from insight_trace.recording.kinds import Kind, finish
from insight_trace.recording.operands import NONE
from insight_trace.recording.pipes import VECTOR_ARITHMETIC
from insight_trace.recording.stream import details_of, distinct, grouped, numbered

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Traffic(Struct, frozen=True):
    """Bytes over one path between a core and global memory."""

    path: str
    bytes: int
    transfers: int
    cycles: int  # in which at least one transfer ran, summed over cores
    gb_per_s: float  # while running
    roof_gb_per_s: float | None
    requests: int | None = None  # of 128 bytes each, that L2 was asked for; None where the trace does not say
    missed: int | None = None  # of them, not in L2


class Arithmetic(Struct, frozen=True):
    """Operations, and where they stand against the roofs of the cores that ran."""

    unit: str  # cube or vector
    operations: int
    bytes: int
    intensity: float  # operations per byte of global memory
    giga_per_s: float  # achieved over the whole run
    roof_giga_per_s: float  # of the unit, all cores that ran it
    reachable_giga_per_s: float  # at this intensity
    bound: str  # memory or compute: which roof is lower here


def path_of(core: str, pipe: int, name: str) -> str:
    """GM_TO_UB, UB_TO_GM, …: by the pipe, and on a cube core by what the pipe moves there."""
    upper = name.upper()
    if "OUT_TO_L1" in upper or (pipe == Pipe.MTE2 and "cube" in core):
        return "GM_TO_L1"
    if pipe == Pipe.MTE2:
        return "GM_TO_UB"
    if pipe == Pipe.FIXP:
        return "L0C_TO_UB" if "TO_UB" in upper else "L0C_TO_L1" if "TO_L1" in upper else "L0C_TO_GM"
    if pipe == Pipe.MTE3:
        return "L1_TO_GM" if "cube" in core else "UB_TO_GM"
    return "OTHER"


def traffic(
    instructions: Instructions, kind: NDArray[np.uint8], mhz: float, roofs: Roofs
) -> tuple[Traffic, ...]:
    """By path, in the order of the roofs."""
    import numpy as np

    moved = np.flatnonzero((instructions.process_bytes > 0) & (kind == Kind.WORK))
    if not len(moved):
        return ()
    key = instructions.core[moved].astype(np.int64) * 2**24
    key += instructions.pipe[moved].astype(np.int64) * 2**16 + instructions.name[moved]
    present, which = numbered(key)
    paths = [
        path_of(instructions.cores[k >> 24], (k >> 16) & 255, instructions.names[k & 0xFFFF])
        for k in present.tolist()
    ]
    names = list(dict.fromkeys([*(path for path in roofs.bandwidth if path in paths), *sorted(paths)]))
    path = np.array([names.index(name) for name in paths])[which]
    start, end = instructions.start[moved], finish(instructions)[moved]
    core, moves = instructions.core[moved], instructions.process_bytes[moved]
    use = cache_use(instructions)
    result = []
    for index, name in enumerate(names):
        here = np.flatnonzero(path == index)
        rows = moved[here]
        cycles = sum(union(start[here[mine]], end[here[mine]]).length for _, mine in grouped(core[here]))
        total = int(moves[here].sum())
        rate = total * mhz * 1e6 / cycles / 1e9 if cycles else 0.0
        of_l2 = (
            (None, None) if use is None or not len(use.rows) else (int(each.sum()) for each in use.of(rows))
        )
        result.append(Traffic(name, total, len(rows), cycles, rate, roofs.bandwidth.get(name), *of_l2))
    return tuple(result)


def _amount(instructions: Instructions, rows: NDArray[np.int64], unit: str) -> tuple[float, str]:
    """Operations of one unit, and the element type that it works on; 0 where operands do not say."""
    import numpy as np

    operands = instructions.operands
    if operands is None:
        return _amount_of_texts(instructions, rows, unit)
    index = operands.geometry[rows]
    index = index[index != NONE]
    if not len(index):
        return 0.0, ""
    shapes = operands.geometries
    each = shapes["elements"].astype(np.int64)
    if unit == "cube":
        each = 2 * shapes["m"].astype(np.int64) * shapes["k"] * shapes["n"]
    return float(each[index].sum()), type_text(int(shapes["type"][index[0]]))


def _amount_of_texts(instructions: Instructions, rows: NDArray[np.int64], unit: str) -> tuple[float, str]:
    lanes = instructions.utilisation[rows]
    share = [used / 100.0 if used >= 0 else 1.0 for used in lanes.tolist()]
    operations, element = 0.0, ""
    for detail, used in zip(details_of(instructions.detail, rows), share, strict=True):
        element = element or element_of_text(detail)
        if unit == "cube":
            operations += 2 * products_of_text(detail) * used
        else:
            # elements are those in use already, repeats are all lanes of them
            count, active = elements_of_text(detail)
            operations += count if active else count * used
    return operations, element


def arithmetic(
    instructions: Instructions,
    kind: NDArray[np.uint8],
    moved: tuple[Traffic, ...],
    roofs: Roofs,
    mhz: float,
    total: int,
) -> tuple[Arithmetic, ...]:
    """Cube and vector against their roofs; a unit whose operands do not say how much it did is left out."""
    import numpy as np

    result = []
    total_bytes = sum(item.bytes for item in moved)
    bandwidth = _mixed_bandwidth(moved, total_bytes)
    for unit, lanes_of_unit in (("cube", (Pipe.CUBE,)), ("vector", VECTOR_ARITHMETIC)):
        rows = np.flatnonzero(np.isin(instructions.pipe, lanes_of_unit) & (kind == Kind.WORK))
        operations, element = _amount(instructions, rows, unit)
        if not operations or not total or not total_bytes:
            continue
        cores = len(distinct(instructions.core[rows]))
        element = element or "F16"
        if unit == "cube":
            per_cycle = float(roofs.cube_flop_per_cycle.get(element, roofs.cube_flop_per_cycle["F16"]))
        else:
            bits = int("".join(filter(str.isdigit, element)) or 32)
            per_cycle = roofs.vector_bytes_per_cycle * 8 / bits
        roof = per_cycle * mhz / 1e3 * cores
        intensity = operations / total_bytes
        memory_roof = intensity * bandwidth * cores
        result.append(
            Arithmetic(
                unit=unit,
                operations=round(operations),
                bytes=total_bytes,
                intensity=intensity,
                giga_per_s=operations * mhz / 1e3 / total,
                roof_giga_per_s=roof,
                reachable_giga_per_s=min(roof, memory_roof),
                bound="memory" if memory_roof < roof else "compute",
            )
        )
    return tuple(result)


def _mixed_bandwidth(moved: tuple[Traffic, ...], total_bytes: int) -> float:
    """GB/s of one core when every path carries its share: loads and stores run side by side."""
    slowest = max((item.bytes / item.roof_gb_per_s for item in moved if item.roof_gb_per_s), default=0.0)
    return total_bytes / slowest if slowest else 0.0
