"""Which set let which wait go, and how a flag is called."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from insight_trace.model import Instructions
from insight_trace.trace.kinds import Kind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Operands name some pipes otherwise than lanes do.
_PIPES = {"VEC": "VECTOR", "FIX": "FIXPIPE", "FIXP": "FIXPIPE", "M": "CUBE", "V": "VECTOR"}


def _fields(detail: str) -> dict[str, str]:
    return dict(part.split(":", 1) for part in detail.split(",") if ":" in part)


@functools.lru_cache(maxsize=65536)
def flag_key(detail: str) -> tuple[str, ...]:
    """Source pipe, target pipe and number in whatever order; the text itself where it reads otherwise."""
    fields = _fields(detail)
    source, target = fields.get("PIPE"), fields.get("TRIGGERPIPE")
    if source is None or target is None:
        return (detail,)
    return (_PIPES.get(source, source), _PIPES.get(target, target), fields.get("FLAGID", ""))


def flag_label(detail: str) -> str:
    """`MTE2→VECTOR flag 0` out of a flag's operand text."""
    key = flag_key(detail)
    if len(key) != 3:
        return detail.rstrip(",") or "flag"
    return f"{key[0]}→{key[1]} flag {key[2] or '?'}"


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
    keys: dict[tuple[int, tuple[str, ...]], int] = {}
    number = np.array(
        [
            keys.setdefault((core, flag_key(instructions.detail[row])), len(keys))
            for row, core in zip(flags.tolist(), instructions.core[flags].tolist(), strict=True)
        ],
        np.int64,
    )
    sides = []
    for side in (Kind.SET, Kind.WAIT):
        mine = kind[flags] == side
        rows, key = flags[mine], number[mine]
        order = np.lexsort((rows, instructions.start[rows], key))
        rows, key = rows[order], key[order]
        nth = np.arange(len(rows)) - np.searchsorted(key, key)
        sides.append((rows, key * (count + 1) + nth))
    (sets, set_keys), (waits, wait_keys) = sides
    _, left, right = np.intersect1d(set_keys, wait_keys, assume_unique=True, return_indices=True)
    partner[waits[right]] = sets[left]
    return partner
