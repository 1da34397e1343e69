"""Flags: which SET ended which WAIT, the ids of the pairs, and where a WAIT begins when it is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from insight_trace.insight.prepared import Prepared
from insight_trace.recording.flag_pairs import in_turn
from insight_trace.recording.stream import PIECE, distinct, numbered_details

if TYPE_CHECKING:
    from numpy.typing import NDArray


class FlagPairs(Struct, frozen=True, eq=False):
    """The pairs of one core in the order of their ids; -1 stands for a missing partner."""

    sets: NDArray[np.int64]
    waits: NDArray[np.int64]


def pair_flags(prepared: Prepared) -> dict[int, FlagPairs]:
    """Pairs by core of the WAIT (an unpaired SET: by its own core).

    Where the simulator recorded no partner, SET and WAIT with the same detail are paired first in, first out.
    A SET can end one WAIT only, since an id that occurs twice draws no arrow.
    """
    columns = prepared.instructions
    waits, sets, rank = _by_detail(prepared)
    claimed = np.zeros(len(columns), dtype=bool)
    if bool((columns.partner[prepared.is_wait] >= 0).any()):
        every = np.concatenate([waits[core] for core in prepared.cores])
        found = _recorded(prepared, every)
        lengths = [len(waits[core]) for core in prepared.cores]
        found_by_core = dict(zip(prepared.cores, np.split(found, np.cumsum(lengths)[:-1]), strict=True))
    else:
        found_by_core = {
            core: in_turn(sets[core], rank[sets[core]], waits[core], rank[waits[core]])
            for core in prepared.cores
        }
    for found in found_by_core.values():
        claimed[found[found >= 0]] = True
    pairs = {}
    for core in prepared.cores:
        alone = sets[core][~claimed[sets[core]]]
        pairs[core] = FlagPairs(
            sets=np.concatenate((found_by_core[core], alone)),
            waits=np.concatenate((waits[core], np.full(len(alone), -1, dtype=np.int64))),
        )
    return pairs


def _by_detail(
    prepared: Prepared,
) -> tuple[dict[int, NDArray[np.int64]], dict[int, NDArray[np.int64]], NDArray[np.int64]]:
    """WAITs and SETs of each core by detail and then as drawn, and the place of each row's detail."""
    columns = prepared.instructions
    flagged = np.flatnonzero(prepared.is_wait | prepared.is_set)
    rank = np.zeros(len(columns), dtype=np.int64)
    texts: dict[str, int] = {}
    for begin in range(0, len(flagged), PIECE):
        rows = flagged[begin : begin + PIECE]
        spelled, which = numbered_details(columns.detail, rows, values=True)
        numbers = [texts.setdefault(text, len(texts)) for text in spelled]
        rank[rows] = np.array(numbers, dtype=np.int64)[which]
    place = np.zeros(max(1, len(texts)), dtype=np.int64)
    place[[texts[text] for text in sorted(texts)]] = np.arange(len(texts))
    rank[flagged] = place[rank[flagged]]
    found: list[dict[int, NDArray[np.int64]]] = []
    for mask in (prepared.is_wait, prepared.is_set):
        chosen = {core: rows[mask[rows]] for core, rows in prepared.ordered.items()}
        found.append({core: rows[np.argsort(rank[rows], kind="stable")] for core, rows in chosen.items()})
    return found[0], found[1], rank


def _recorded(prepared: Prepared, waits: NDArray[np.int64]) -> NDArray[np.int64]:
    """The SET that the simulator recorded for each WAIT; of several WAITs the first has it."""
    partner = prepared.instructions.partner[waits]
    usable = np.flatnonzero(partner >= 0)
    usable = usable[prepared.is_set[partner[usable]]]
    _, first = np.unique(partner[usable], return_index=True)
    chosen = usable[first]
    found = np.full(len(waits), -1, dtype=np.int64)
    found[chosen] = partner[chosen]
    return found


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
