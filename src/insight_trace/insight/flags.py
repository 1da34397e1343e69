"""Flags: which SET ended which WAIT, the ids of the pairs, and where a WAIT begins when it is drawn."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from insight_trace.insight.columns import Prepared, details_of, distinct

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class FlagPairs:
    """The pairs of one core in the order of their ids; -1 stands for a missing partner."""

    sets: NDArray[np.int64]
    waits: NDArray[np.int64]


def pair_flags(prepared: Prepared) -> dict[int, FlagPairs]:
    """Pairs by core of the WAIT (an unpaired SET: by its own core).

    Where the simulator recorded no partner, SET and WAIT with the same detail are paired first in, first out.
    A SET can end one WAIT only, since an id that occurs twice draws no arrow.
    """
    columns = prepared.instructions
    recorded = bool((columns.partner[prepared.is_wait] >= 0).any())
    flags: dict[int, tuple[dict[str, list[int]], dict[str, deque[int]]]] = {}
    for core in prepared.cores:
        rows = prepared.ordered[core]
        waits: dict[str, list[int]] = {}
        sets: dict[str, deque[int]] = {}
        chosen = rows[prepared.is_wait[rows]]
        for row, detail in zip(chosen.tolist(), details_of(columns.detail, chosen), strict=True):
            waits.setdefault(detail, []).append(row)
        chosen = rows[prepared.is_set[rows]]
        for row, detail in zip(chosen.tolist(), details_of(columns.detail, chosen), strict=True):
            sets.setdefault(detail, deque()).append(row)
        flags[core] = waits, sets

    claimed: set[int] = set()
    pairs: dict[int, list[tuple[int, int]]] = {core: [] for core in prepared.cores}
    for core, (waits, sets) in flags.items():
        for detail in sorted(waits):
            for wait in waits[detail]:
                found = -1
                if recorded:
                    partner = int(columns.partner[wait])
                    if partner >= 0 and prepared.is_set[partner] and partner not in claimed:
                        found = partner
                elif sets.get(detail):
                    found = sets[detail].popleft()
                if found >= 0:
                    claimed.add(found)
                pairs[core].append((found, wait))
    for core, (_, sets) in flags.items():
        for detail in sorted(sets):
            pairs[core] += [(row, -1) for row in sets[detail] if row not in claimed]
    return {core: _columns(found) for core, found in pairs.items()}


def _columns(pairs: list[tuple[int, int]]) -> FlagPairs:
    table = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return FlagPairs(sets=table[:, 0], waits=table[:, 1])


def drawn_wait_starts(
    prepared: Prepared, rows: NDArray[np.int64], lane: NDArray[np.int64], counts: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Starts of `rows` (ordered by end) where a WAIT begins at the end of the work before it on its lane.

    `counts` tells which rows are that work.
    """
    columns = prepared.instructions
    start = columns.start[rows].copy()
    waiting = prepared.is_wait[rows]
    if not waiting.any():
        return start
    end = columns.end[rows]
    for pipe in distinct(lane[waiting]).tolist():
        here = np.flatnonzero(lane == pipe)
        busy = np.maximum.accumulate(np.where(counts[here], end[here], -1))
        before = np.concatenate(([-1], busy[:-1]))
        clipped = waiting[here] & (start[here] < before) & (before < end[here])
        start[here[clipped]] = before[clipped]
    return start
