"""Which bytes of an output a replay wrote, as its own instructions say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from insight_trace.arguments.slots import ReplayTensor
from insight_trace.outcome import Simulation

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MOST_BYTES = 1 << 28  # of a buffer that is looked through


def written_bytes(simulation: Simulation, tensor: ReplayTensor) -> NDArray[np.uint8] | None:
    """The tensor's buffer with 255 in every byte that an instruction wrote; None where that is not known."""
    import numpy as np

    from insight_trace.recording.intervals import union
    from insight_trace.recording.operands import MEMORIES, WRITES, byte_ranges

    operands = simulation.instructions.operands
    name = f"slot {tensor.slot if tensor.shares is None else tensor.shares}"
    region = next((r for r in simulation.regions if r[0] == name), None)
    if operands is None or region is None or region[3] > _MOST_BYTES:
        return None
    address, size = region[1], region[3]
    footprint = operands.footprints[operands.rows["footprint"]]
    stores = (footprint["memory"] == MEMORIES.index("GM")) & (footprint["role"] & WRITES > 0)
    ranges = byte_ranges(operands, np.flatnonzero(stores))
    begin = np.clip(ranges.begin.astype(np.int64) - address, 0, size)
    end = np.clip(ranges.end.astype(np.int64) - address, 0, size)
    inside = end > begin
    spans = union(begin[inside], end[inside])
    written = np.zeros(size, np.uint8)
    for first, last in zip(spans.begin.tolist(), spans.end.tolist(), strict=True):
        written[first:last] = 255
    return written
