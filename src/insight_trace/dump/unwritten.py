"""Content that no recorded dispatch wrote: memory of an output that was never filled.

A run hands its output buffer to every dispatch as inout, and what lies in it before the last one writes it is
whatever the memory held. Two runs differ there without any kernel being different. Such an element keeps its
first value through every dispatch until it is written; an element that does anything else is compared.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from insight_trace.dump.recorded_bytes import payload_bytes
from insight_trace.model import Payload, Stage, TensorArg

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(slots=True)
class _Chain:
    left: NDArray[Any]  # the first content on either side, a row of bytes per element
    right: NDArray[Any]
    unwritten: NDArray[np.bool_]


class UnwrittenContent:
    """Follows inout tensors of two dumps from dispatch to dispatch."""

    def __init__(self) -> None:
        self._chains: dict[Hashable, _Chain | None] = {}

    def of(self, key: Hashable, left: TensorArg, right: TensorArg) -> dict[Stage, NDArray[np.bool_]]:
        """The elements of each stage that nobody wrote on either side; empty where there are none."""
        payloads = [p for p in (left.before, left.after, right.before, right.after) if p is not None]
        if len(payloads) < 4 or any(p.truncated for p in payloads):
            return {}
        before, after, other_before, other_after = (_rows(p, left.dtype.size) for p in payloads)
        if key not in self._chains:
            different = (before != other_before).any(axis=1)
            if not different.any():
                self._chains[key] = None
                return {}
            untouched = (before == after).all(axis=1) & (other_before == other_after).all(axis=1)
            mask = different & untouched
            self._chains[key] = _Chain(before, other_before, mask)
            return {Stage.BEFORE: mask, Stage.AFTER: mask}
        chain = self._chains[key]
        if chain is None:
            return {}
        kept = chain.unwritten & _same(before, chain.left) & _same(other_before, chain.right)
        chain.unwritten = kept & _same(after, chain.left) & _same(other_after, chain.right)
        return {Stage.BEFORE: kept, Stage.AFTER: chain.unwritten}


def _rows(payload: Payload, width: int) -> NDArray[Any]:
    import numpy as np

    return np.frombuffer(payload_bytes(payload), dtype=np.uint8).reshape(-1, width)


def _same(one: NDArray[Any], other: NDArray[Any]) -> NDArray[np.bool_]:
    result: NDArray[np.bool_] = (one == other).all(axis=1)
    return result
