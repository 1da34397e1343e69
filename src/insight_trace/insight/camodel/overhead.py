"""The overhead metric: when an instruction was fetched and when the control unit handed it on."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from insight_trace.insight.camodel.lines import parse_decode, parse_fetch

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PER_FETCH = 4
_WIDTH = 4


def fetch_and_decode(
    cache_lines: Iterable[str],
    decode_lines: Iterable[str],
    pcs: Sequence[int],
    starts: Sequence[int],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Ticks for executions ordered by address and start; -1 where they are not known."""
    fetched = np.full(len(pcs), -1, dtype=np.int64)
    decoded = fetched.copy()
    fetches: dict[int, set[int]] = {}
    for line in cache_lines:
        found = parse_fetch(line)
        if found is not None:
            for step in range(_PER_FETCH):
                fetches.setdefault(found[1] + step * _WIDTH, set()).add(found[0])
    decodes: dict[int, list[int]] = {}
    for line in decode_lines:
        found = parse_decode(line)
        if found is not None:
            decodes.setdefault(found[1], []).append(found[0])
    if not fetches or not decodes:
        return fetched, decoded
    known = {pc: _last_fetches(ticks, sorted(fetches.get(pc, ()))) for pc, ticks in decodes.items()}
    used: dict[int, int] = {}
    given_up: set[int] = set()
    for row, (pc, start) in enumerate(zip(pcs, starts, strict=True)):
        if pc in given_up or pc not in decodes:
            continue
        number = used.get(pc, 0)
        if number >= len(decodes[pc]) or decodes[pc][number] > start:
            given_up.add(pc)
            continue
        used[pc] = number + 1
        if known[pc][number] >= 0:
            fetched[row], decoded[row] = known[pc][number], decodes[pc][number]
    return fetched, decoded


def _last_fetches(decodes: list[int], fetches: list[int]) -> list[int]:
    """For each decode the last fetch before it; from the first one without on, none."""
    found = [-1] * len(decodes)
    for row, tick in enumerate(decodes):
        place = bisect.bisect_left(fetches, tick)
        if place == 0:
            break
        found[row] = fetches[place - 1]
    return found
