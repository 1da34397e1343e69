"""Throughput series between global memory and the cores."""

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
FIRST_POINT = 0.001  # Insight drops points at time 0
STEPS = 100  # points of a short kernel; long ones have the vendor's, one per microsecond
SHORTEST_STEP = 0.01  # microseconds


def counters_of(values: NDArray[np.float64]) -> tuple[Counter, ...]:
    """Series from a table of one row each, one column per microsecond from 0."""
    micros = np.arange(values.shape[1], dtype=np.float64)
    return tuple(Counter(name, micros, values[place]) for place, name in enumerate(SERIES))


def throughput_counters(instructions: Instructions, mhz: float) -> tuple[Counter, ...]:
    """Series from the bytes that instructions moved, each spread over the time that it took.

    A point holds until the next; the last one, a zero, stands where the run ends. MTE2 reads global memory, into L1
    on a cube core and into UB on a vector core; MTE3 writes UB (L1 on a cube core) and the fix pipe writes L0C, which
    has no series of its own and counts in the total.
    """
    columns = instructions
    moving = np.flatnonzero(columns.process_bytes > 0)
    pipe = columns.pipe[moving]
    on_cube = np.array(["cubecore" in core for core in columns.cores], dtype=bool)[columns.core[moving]]
    series = np.full(len(moving), -1)
    series[pipe == Pipe.MTE2] = 0
    series[(pipe == Pipe.MTE2) & on_cube] = 1
    series[pipe == Pipe.MTE3] = 3
    series[(pipe == Pipe.MTE3) & on_cube] = 4
    series[pipe == Pipe.FIXP] = WRITES
    known = series >= 0
    total = float(columns.end.max()) / mhz if len(columns) else 0.0
    if not known.any() or not 0 < total <= LONGEST:
        return ()
    moving, series = moving[known], series[known]
    step = min(max(total / STEPS, SHORTEST_STEP), 1.0)
    points = max(1, int(np.ceil(total / step - 1e-6)))
    edges = np.append(np.arange(points) * step, total)
    values = np.zeros((len(SERIES), points + 1))
    for place in np.flatnonzero(np.bincount(series)).tolist():
        rows = moving[series == place]
        begin, end = columns.start[rows] / mhz, columns.end[rows] / mhz
        moved = _moved_before(edges, begin, end, columns.process_bytes[rows])
        values[place, :-1] = np.diff(moved) * (MEGABYTES_PER_SECOND / np.diff(edges))
    values[READS] += values[0] + values[1]
    values[WRITES] += values[3] + values[4]
    edges[0] = min(FIRST_POINT, total)
    # a series that is zero throughout would take a lane of its own, as high as six others
    return tuple(Counter(name, edges, row) for name, row in zip(SERIES, values, strict=True) if row.any())


def _moved_before(
    times: NDArray[np.float64],
    begin: NDArray[np.float64],
    end: NDArray[np.float64],
    moved: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Bytes that had moved at each of the times, every transfer at an even rate."""
    end = np.maximum(end, begin + 1e-6)
    rate = moved / (end - begin)
    # a sum of ramps: each rises from its begin and stops rising at its end
    at = np.concatenate((begin, end))
    slope = np.concatenate((rate, -rate))
    order = np.argsort(at, kind="stable")
    at, slope = at[order], slope[order]
    slopes = np.concatenate(([0.0], np.cumsum(slope)))
    offsets = np.concatenate(([0.0], np.cumsum(-slope * at)))
    place = np.searchsorted(at, times, "right")
    before: NDArray[np.float64] = slopes[place] * times + offsets[place]
    last = times >= at[-1]
    before[last] = float(moved.sum())
    return np.maximum.accumulate(np.maximum(before, 0.0))
