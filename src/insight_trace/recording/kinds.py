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


# Mnemonics as the vendor's simulator prints them: flags between the pipes of a core, then between cores.
SET_NAMES = frozenset({"SET_FLAG", "set_event"})
WAIT_NAMES = frozenset({"WAIT_FLAG", "wait_event"})
FLAG_NAMES = SET_NAMES | WAIT_NAMES
CROSS_CORE_SETS = {"SET_INTRA_BLOCK": "WAIT_INTRA_BLOCK", "SET_INTRA_BLOCKI": "WAIT_INTRA_BLOCKI"}
CROSS_CORE_NAMES = frozenset(CROSS_CORE_SETS) | frozenset(CROSS_CORE_SETS.values())
SETS = SET_NAMES | frozenset(CROSS_CORE_SETS) | {"SET_CROSS_CORE", "FFTS_CROSS_CORE_SYNC"}
WAITS = WAIT_NAMES | frozenset(CROSS_CORE_SETS.values()) | {"WAIT_FLAG_DEV", "WAIT_FLAG_DEVI"}
BARRIER = "BAR"
BARRIERS = frozenset({BARRIER, "PIPE_BARRIER", "BARRIER"})
# The last instruction of a core; it comes when every pipe has drained.
KERNEL_END = "END"
# Writes to registers of a pipe: they prepare work and are none.
SETTINGS = frozenset({"MOV_SPR_XN", "MOVEMASK"})

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


def kinds(instructions: Instructions, rows: NDArray[np.int64] | None = None) -> NDArray[np.uint8]:
    """The kind of every row, or of some: its name decides where it says something, else its pipe."""
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
    here = slice(None) if rows is None else rows
    found: NDArray[np.uint8] = by_name[instructions.name[here]]
    np.copyto(found, by_pipe[instructions.pipe[here]], where=found == 255)
    return found


def works(instructions: Instructions) -> NDArray[np.bool_]:
    """Rows that move or compute something. A stream without any shows a kernel that found nothing to do."""
    import numpy as np

    setting = np.array([name in SETTINGS for name in instructions.names] or [False], bool)
    chosen: NDArray[np.bool_] = (kinds(instructions) == Kind.WORK) & ~setting[instructions.name]
    return chosen


def finish(instructions: Instructions) -> NDArray[np.int64]:
    """The end of every row, never before its start (foreign files hold negative durations)."""
    import numpy as np

    start, end = instructions.start, instructions.end
    return end if not (end < start).any() else np.maximum(start, end)
