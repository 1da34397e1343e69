"""Hits and misses of every line of L2 that a run touched, for Insight's Cache page.

A recording has them by transfer. Where a sector misses at its first touch and hits ever after, as in an L2 that starts
empty and is large enough, that says them by line, too; where the sums by transfer do not come out as they were
recorded, nothing is said. A run that touched more lines than the page has cells is folded as the vendor's own model
folds it: one cell for each set of L2.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from insight_trace.insight.details_page import CacheLine, CacheLines, LineUse
from insight_trace.model import Instructions, Operands
from insight_trace.recording.cache_use import REQUEST, CacheUse, cache_use
from insight_trace.recording.operands import MEMORIES, byte_ranges
from insight_trace.recording.stream import distinct

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LINE = 512  # bytes
ROW = 128  # cells of one row of the map
SETS = ROW * ROW  # of the vendor's model of the 910B1's L2 (msopprof l2cache): 16384, 24 ways of 512 bytes
_MOST_SECTORS = 1 << 23
_GM = MEMORIES.index("GM")


def cache_lines(instructions: Instructions) -> tuple[CacheLines | None, str]:
    """One record for every line or set, in the order of addresses, filled up to whole rows; or why there is none."""
    import numpy as np

    use = cache_use(instructions)
    if use is None or instructions.operands is None or not len(use.rows):
        return None, ""  # nothing was asked of L2, or nobody counted
    if int(use.asked.sum()) > _MOST_SECTORS:
        return (
            None,
            f"{int(use.asked.sum()):,} requests to L2 are more than it is made for ({_MOST_SECTORS:,})",
        )
    found = _sectors(instructions, instructions.operands, use)
    if found is None:
        return None, (
            "L2 was warm, lost lines or shared a fetch in flight, so that hits are known by transfer and not by line"
        )
    transfer, sector, missed = found
    line = sector // (LINE // REQUEST)
    if len(distinct(line)) > SETS:
        lines, line = np.arange(SETS), line % SETS  # every set, so that a cell stands at its number
    else:
        lines, line = np.unique(line, return_inverse=True)
    counts = np.bincount(line * 2 + missed, minlength=2 * len(lines)).reshape(-1, 2)
    ranges = _addresses(instructions.pc[use.rows][transfer], line, missed)
    records = []
    for place, (hits, misses) in enumerate(counts.tolist()):
        parts = [
            LineUse((count, count / max(1, hits + misses)), ranges.get((place, bool(side)), []))
            for side, count in enumerate((hits, misses))
        ]
        records.append(CacheLine(int(lines[place]), *parts))
    empty = LineUse((0, 0.0), [])
    records += [CacheLine(-1, empty, empty)] * (-len(records) % ROW)
    return CacheLines(records), ""


def _sectors(
    instructions: Instructions, operands: Operands, use: CacheUse
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]] | None:
    """Every request: its transfer, its sector, and whether it missed; None unless the sums are those that were recorded."""
    import numpy as np

    # of transfers that start in one cycle those that fetched came first: whoever follows finds the lines
    order = np.lexsort((-use.missed.astype(np.int64), instructions.start[use.rows]))
    rows = use.rows[order]
    count = operands.count[rows].astype(np.int64)
    owner = np.repeat(np.arange(len(rows)), count)
    places = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    places += np.repeat(operands.first[rows].astype(np.int64), count)
    of_memory = operands.footprints["memory"][operands.rows["footprint"][places]] == _GM
    places, owner = places[of_memory], owner[of_memory]
    touched = byte_ranges(operands, places)
    begin = touched.begin.astype(np.int64) // REQUEST
    length = (touched.end.astype(np.int64) - 1) // REQUEST - begin + 1
    if int(length.sum()) != int(use.asked.sum()):
        return None
    sector = np.repeat(begin - (np.cumsum(length) - length), length) + np.arange(int(length.sum()))
    transfer = np.repeat(owner[touched.operand], length)
    missed = np.zeros(len(sector), bool)
    missed[np.unique(sector, return_index=True)[1]] = True
    asked = np.bincount(transfer, minlength=len(rows))
    misses = np.bincount(transfer[missed], minlength=len(rows))
    if (asked != use.asked[order]).any() or (misses != use.missed[order]).any():
        return None
    return order[transfer], sector, missed


def _addresses(
    pc: NDArray[np.uint64], line: NDArray[np.int64], missed: NDArray[np.bool_]
) -> dict[tuple[int, bool], list[tuple[str, str]]]:
    """Which instructions hit and which missed each line."""
    import numpy as np

    addresses, index = np.unique(pc, return_inverse=True)
    key = distinct((line * 2 + missed) * len(addresses) + index)
    found: dict[tuple[int, bool], list[tuple[str, str]]] = defaultdict(list)
    for each in key.tolist():
        cell, number = divmod(each, len(addresses))
        text = f"0x{int(addresses[number]):x}"
        found[cell // 2, bool(cell & 1)].append((text, text))
    return found
