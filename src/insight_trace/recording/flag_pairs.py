"""Flags: what a set or wait names, and which set let which wait go."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from insight_trace.model import Instructions
from insight_trace.recording.foreign import flag_of_text
from insight_trace.recording.kinds import Kind
from insight_trace.recording.operands import Form
from insight_trace.recording.pipes import PIPE_TEXT, named_pipe
from insight_trace.recording.stream import first_places, numbered

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Flag(NamedTuple):
    """What a flag instruction names, as operands spell it; a text that reads otherwise stands in `event` alone."""

    source: str
    target: str
    event: str

    @property
    def known(self) -> bool:
        return bool(self.source)

    @property
    def label(self) -> str:
        """`MTE2→VECTOR flag 0`."""
        if not self.known:
            return self.event.rstrip(",") or "flag"
        return f"{named_pipe(self.source)}→{named_pipe(self.target)} flag {self.event or '?'}"


def flag_at(instructions: Instructions, row: int) -> Flag:
    """What the flag instruction of one row names."""
    operands = instructions.operands
    if operands is None or operands.form[row] != Form.FLAG:
        detail = instructions.detail[row]
        return Flag(*(flag_of_text(detail) or ("", "", detail)))
    value = int(operands.value[row])
    return Flag(PIPE_TEXT[value & 0xFF], PIPE_TEXT[value >> 8 & 0xFF], str(value >> 16))


def flags_at(instructions: Instructions, rows: NDArray[np.int64]) -> list[Flag]:
    """The same for several rows."""
    flags, number = numbered_flags(instructions, rows)
    return [flags[i] for i in number.tolist()]


def numbered_flags(
    instructions: Instructions, rows: NDArray[np.int64]
) -> tuple[list[Flag], NDArray[np.int64]]:
    """The flags that rows name, each once, and which of them each row names. Each flag is looked at once."""
    import numpy as np

    operands = instructions.operands
    if operands is None:
        first, which = rows, np.arange(len(rows))
    else:
        values, value = numbered(operands.value[rows])
        present, which = numbered(operands.form[rows].astype(np.int64) * max(1, len(values)) + value)
        first = rows[first_places(which, len(present))]
    numbers: dict[Flag, int] = {}
    own = [numbers.setdefault(flag_at(instructions, row), len(numbers)) for row in first.tolist()]
    return list(numbers), np.array(own, np.int64)[which]


def in_turn(
    sets: NDArray[np.int64],
    set_keys: NDArray[np.int64],
    waits: NDArray[np.int64],
    wait_keys: NDArray[np.int64],
) -> NDArray[np.int64]:
    """For every wait the set of its key that has its turn, -1 for none; both in order within a key."""
    import numpy as np

    def turns(keys: NDArray[np.int64]) -> NDArray[np.int64]:
        order = np.argsort(keys, kind="stable")
        turn = np.empty(len(keys), np.int64)
        turn[order] = np.arange(len(keys)) - np.searchsorted(keys[order], keys[order])
        return keys * (max(len(sets), len(waits)) + 1) + turn

    found = np.full(len(waits), -1, np.int64)
    _, left, right = np.intersect1d(
        turns(set_keys), turns(wait_keys), assume_unique=True, return_indices=True
    )
    found[right] = sets[left]
    return found


def partners(instructions: Instructions, kind: NDArray[np.uint8]) -> NDArray[np.int64]:
    """For every row the set that ended its wait, -1 for none.

    A core whose trace does not say which set belongs to which wait (files without flow events) is paired
    first in, first out per flag, as the hardware's counters work. Where the trace does say, a flag without a
    partner stays alone.
    """
    import numpy as np

    count = len(instructions)
    known = (instructions.partner >= 0) & (instructions.partner < count) & (kind == Kind.WAIT)
    partner = np.where(known, instructions.partner, -1)
    says = np.zeros(max(1, len(instructions.cores)), bool)
    says[instructions.core[known]] = True
    flags = np.flatnonzero(((kind == Kind.SET) | (kind == Kind.WAIT)) & ~says[instructions.core])
    if not len(flags):
        return partner
    keys: dict[tuple[int, Flag], int] = {}
    named = zip(instructions.core[flags].tolist(), flags_at(instructions, flags), strict=True)
    number = np.array([keys.setdefault((core, _by_unit(flag)), len(keys)) for core, flag in named], np.int64)
    sides = []
    for side in (Kind.SET, Kind.WAIT):
        mine = kind[flags] == side
        rows, key = flags[mine], number[mine]
        order = np.lexsort((rows, instructions.start[rows]))
        sides.append((rows[order], key[order]))
    (sets, set_keys), (waits, wait_keys) = sides
    partner[waits] = in_turn(sets, set_keys, waits, wait_keys)
    return partner


def _by_unit(flag: Flag) -> Flag:
    """Set and wait may spell a pipe differently."""
    return Flag(named_pipe(flag.source), named_pipe(flag.target), flag.event)
