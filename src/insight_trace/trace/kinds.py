"""What a row of an instruction stream is: work on a pipe, a flag, a barrier, or noise beside them."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from insight_trace.model import Instructions, Pipe

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Kind(enum.IntEnum):
    """The part that a row plays."""

    WORK = 0  # an instruction that a pipe executes
    SCALAR = 1  # the same on the scalar unit
    SET = 2  # raises a flag
    WAIT = 3  # waits for one
    BARRIER = 4
    MISS = 5  # an instruction-cache miss
    CONTROL = 6  # flow control and whatever stands on no pipe of its own
    MARK = 7  # a span that the kernel's author named


# Mnemonics as the vendor's simulator prints them; the second row of each is 950 and cross-core.
SETS = frozenset(
    {"SET_FLAG", "set_event", "SET_INTRA_BLOCK", "SET_INTRA_BLOCKI", "SET_CROSS_CORE", "FFTS_CROSS_CORE_SYNC"}
)
WAITS = frozenset(
    {"WAIT_FLAG", "wait_event", "WAIT_INTRA_BLOCK", "WAIT_INTRA_BLOCKI", "WAIT_FLAG_DEV", "WAIT_FLAG_DEVI"}
)
BARRIERS = frozenset({"BAR", "PIPE_BARRIER", "BARRIER"})

_BY_PIPE = {
    Pipe.SCALAR: Kind.SCALAR,
    Pipe.SCALARLDST: Kind.SCALAR,
    Pipe.FLOWCTRL: Kind.CONTROL,
    Pipe.ALL: Kind.CONTROL,
    Pipe.CACHEMISS: Kind.MISS,
    Pipe.USERMARK: Kind.MARK,
    Pipe.SET_FLAG: Kind.SET,
    Pipe.set_event: Kind.SET,
    Pipe.WAIT_FLAG: Kind.WAIT,
    Pipe.wait_event: Kind.WAIT,
}


def kinds(instructions: Instructions) -> NDArray[np.uint8]:
    """The kind of every row: its name decides where it says something, else its pipe."""
    import numpy as np

    by_pipe = np.zeros(256, np.uint8)
    for pipe, kind in _BY_PIPE.items():
        by_pipe[pipe] = kind
    by_name = np.full(max(1, len(instructions.names)), 255, np.uint8)
    for index, name in enumerate(instructions.names):
        if name in SETS:
            by_name[index] = Kind.SET
        elif name in WAITS:
            by_name[index] = Kind.WAIT
        elif name in BARRIERS:
            by_name[index] = Kind.BARRIER
    named = by_name[instructions.name]
    return np.where(named == 255, by_pipe[instructions.pipe], named)


def finish(instructions: Instructions) -> NDArray[np.int64]:
    """The end of every row, never before its start (foreign files hold negative durations)."""
    import numpy as np

    return np.maximum(instructions.start, instructions.end)
