"""How many processes run the blocks of one dispatch."""

from __future__ import annotations

import os

from insight_trace.errors import RequestError

_FEWEST_BLOCKS = 2
_MOST_SHARES = 8  # the first process puts the rows of all others behind its own
VARIABLE = "INSIGHT_TRACE_HOST_CORES"


def host_cores() -> int:
    """As INSIGHT_TRACE_HOST_CORES says, else as many as this process may use."""
    given = os.environ.get(VARIABLE)
    if given is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not given.isascii() or not given.isdigit() or not 1 <= int(given) <= 1024:
        raise RequestError(f"{VARIABLE} is {given[:40]!r}", hint="a number of cores, from 1 to 1024")
    return int(given)


def shares_of_blocks(blocks: int, cores: int | None) -> int:
    """Into how many processes the blocks of a dispatch go; 1 where that would not be worth it."""
    if blocks < _FEWEST_BLOCKS:
        return 1
    return max(1, min(host_cores() if cores is None else cores, blocks, _MOST_SHARES))
