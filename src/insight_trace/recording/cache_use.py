"""What transfers asked of L2, and how much of it was there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from insight_trace.model import Instructions, Pipe
from insight_trace.recording.operands import Form

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

REQUEST = 128  # bytes: one sector, what the chip's counters count


class CacheUse(Struct, frozen=True, eq=False):
    """Transfers to and from global memory, in requests of 128 bytes."""

    rows: NDArray[np.int64]  # of the stream
    asked: NDArray[np.int64]
    missed: NDArray[np.int64]
    writes: NDArray[np.bool_]

    def of(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """What each of some rows asked for, and what was not there; 0 for one that is no transfer."""
        import numpy as np

        place = np.minimum(np.searchsorted(self.rows, rows), max(0, len(self.rows) - 1))
        if not len(self.rows):
            return np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
        known = self.rows[place] == rows
        return np.where(known, self.asked[place], 0), np.where(known, self.missed[place], 0)

    @property
    def hits(self) -> NDArray[np.int64]:
        return self.asked - self.missed


def cache_use(instructions: Instructions) -> CacheUse | None:
    """One entry per transfer; None for a trace that does not say, as those of others."""
    import numpy as np

    operands = instructions.operands
    if operands is None:
        return None
    rows = np.flatnonzero((operands.form == Form.TRANSFER) & (operands.value > 0))
    value = operands.value[rows]
    asked, missed = (value & 0xFFFFFFFF).astype(np.int64), (value >> np.uint64(32)).astype(np.int64)
    return CacheUse(rows, asked, missed, instructions.pipe[rows] != Pipe.MTE2)
