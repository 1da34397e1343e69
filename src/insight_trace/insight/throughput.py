"""Throughput series between global memory and the cores, one point per microsecond."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from insight_trace.model import Counter, Instructions, Pipe

if TYPE_CHECKING:
    from numpy.typing import NDArray

SERIES = ("GM_TO_UB", "GM_TO_L1", "GM_TO_TOTAL", "UB_TO_GM", "L1_TO_GM", "TOTAL_TO_GM")
READS, WRITES = 2, 5  # places of the totals
# the vendor multiplies by a float32
MEGABYTES_PER_SECOND = float(np.float32(1e6) / np.float32(1024) / np.float32(1024))
LONGEST = 60_000_000  # microseconds


def counters_of(values: NDArray[np.float64]) -> tuple[Counter, ...]:
    """Series from a table of one row each, one column per microsecond from 0."""
    micros = np.arange(values.shape[1], dtype=np.int64)
    return tuple(Counter(name, micros, values[place]) for place, name in enumerate(SERIES))


def throughput_counters(instructions: Instructions, mhz: float) -> tuple[Counter, ...]:
    """Series from the bytes that instructions moved, each counted in the microsecond in which it ended.

    MTE2 reads global memory, into L1 on a cube core and into UB on a vector core; MTE3 writes UB (L1 on a
    cube core) and the fix pipe writes L0C, which has no series of its own and counts in the total.
    """
    columns = instructions
    moving = np.flatnonzero(columns.process_bytes > 0)
    micro = (columns.end[moving] / mhz).astype(np.int64)
    kept = micro <= LONGEST
    moving, micro = moving[kept], micro[kept]
    pipe = columns.pipe[moving]
    on_cube = np.array(["cubecore" in core for core in columns.cores], dtype=bool)[columns.core[moving]]
    series = np.full(len(moving), -1)
    series[pipe == Pipe.MTE2] = 0
    series[(pipe == Pipe.MTE2) & on_cube] = 1
    series[pipe == Pipe.MTE3] = 3
    series[(pipe == Pipe.MTE3) & on_cube] = 4
    series[pipe == Pipe.FIXP] = WRITES
    known = series >= 0
    if not known.any():
        return ()
    series, micro, size = series[known], micro[known], columns.process_bytes[moving][known]
    values = np.zeros((len(SERIES), int(micro.max()) + 2))
    np.add.at(values, (series, micro), size * MEGABYTES_PER_SECOND)
    values[READS] += values[0] + values[1]
    values[WRITES] += values[3] + values[4]
    return counters_of(values)
