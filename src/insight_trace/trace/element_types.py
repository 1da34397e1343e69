"""What the units of a core worked on: instructions, cycles and bank conflicts by element type, in the vendor's words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from insight_trace.dtypes import DTYPES
from insight_trace.model import Instructions, Pipe
from insight_trace.recording.operands import NONE, Form
from insight_trace.recording.pipes import VECTOR_ARITHMETIC

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Names of the rows of msopprof's compute tables (basic_op_and_pmu.h).
_VECTOR = {"FLOAT32": "FP32", "FLOAT16": "FP16", "INT32": "S32", "INT16": "S16"}
_NAMES = ("Cube FP", "Cube INT", "Vector S32", "Vector FP32", "Vector FP16", "Vector S16", "Vector Misc")


class TypeUse(Struct, frozen=True):
    """One element type on one core."""

    name: str  # Cube FP, Vector FP32, …
    instructions: int
    cycles: int  # each instruction's own, which may overlap
    conflicts: int  # cycles in UB's banks


def type_use(instructions: Instructions) -> dict[str, tuple[TypeUse, ...]]:
    """By core, in the vendor's order; empty where operands are not known."""
    import numpy as np

    operands = instructions.operands
    if operands is None or not len(instructions):
        return {}
    vector = np.isin(instructions.pipe, VECTOR_ARITHMETIC) & (operands.form == Form.VECTOR)
    cube = (instructions.pipe == Pipe.CUBE) & (operands.form == Form.MULTIPLY)
    rows = np.flatnonzero((vector | cube) & (operands.geometry != NONE))
    if not len(rows):
        return {}
    kinds = operands.geometries["type"][operands.geometry[rows]]
    place = _places(cube[rows], kinds)
    key = instructions.core[rows].astype(np.int64) * len(_NAMES) + place
    length = instructions.end[rows] - instructions.start[rows]
    lost = np.maximum(0, instructions.read_conflict[rows]) + np.maximum(0, instructions.write_conflict[rows])
    found: dict[str, list[TypeUse]] = {}
    counts, cycles, conflicts = (np.bincount(key, weights=each) for each in (None, length, lost))
    for each in np.flatnonzero(counts).tolist():
        core = instructions.cores[each // len(_NAMES)]
        sums = int(counts[each]), int(cycles[each]), int(conflicts[each])
        found.setdefault(core, []).append(TypeUse(_NAMES[each % len(_NAMES)], *sums))
    return {core: tuple(uses) for core, uses in found.items()}


def _places(cube: NDArray[np.bool_], kinds: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Of every instruction, which of the names it counts under."""
    import numpy as np

    of_vector, of_cube = np.zeros((2, 256), np.int64)
    of_vector[:] = _NAMES.index("Vector Misc")
    for code, dtype in enumerate(DTYPES):
        of_cube[code] = 0 if dtype.is_float else 1
        if dtype.name in _VECTOR:
            of_vector[code] = _NAMES.index(f"Vector {_VECTOR[dtype.name]}")
    result: NDArray[np.int64] = np.where(cube, of_cube[kinds], of_vector[kinds])
    return result
