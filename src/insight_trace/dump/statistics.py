"""What a tensor holds, in a few numbers, computed piece by piece so that size does not matter."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PIECE = 1 << 20
_ENDS = 4


@dataclass(frozen=True, slots=True)
class Statistics:
    """Least, greatest and mean of the finite elements, counts of the others, and both ends of the data."""

    count: int
    minimum: float | int | None
    maximum: float | int | None
    mean: float | None
    nan: int
    infinite: int
    first: tuple[float | int | bool | str, ...]
    last: tuple[float | int | bool | str, ...]


def statistics(array: NDArray[Any]) -> Statistics:
    """Statistics of an array of any element type; plain bytes have ends only."""
    import numpy as np

    flat = array.reshape(-1)
    first, last = elements(flat[:_ENDS]), elements(flat[-_ENDS:] if len(flat) > _ENDS else flat[:0])
    if flat.dtype.kind == "V" and flat.dtype.name.startswith("void"):
        return Statistics(len(flat), None, None, None, 0, 0, first, last)
    lows: list[Any] = []
    highs: list[Any] = []
    sums: list[float] = []
    nan = infinite = 0
    for start in range(0, len(flat), _PIECE):
        piece = flat[start : start + _PIECE]
        if piece.dtype.kind not in "iub":
            piece = piece.astype(np.float64)
            nan += int(np.isnan(piece).sum())
            infinite += int(np.isinf(piece).sum())
            piece = piece[np.isfinite(piece)]
        if len(piece):
            lows.append(piece.min().item())
            highs.append(piece.max().item())
            sums.append(float(piece.sum(dtype=np.float64)))
    finite = len(flat) - nan - infinite
    return Statistics(
        len(flat),
        min(lows, default=None),
        max(highs, default=None),
        math.fsum(sums) / finite if finite else None,
        nan,
        infinite,
        first,
        last,
    )


def elements(array: NDArray[Any]) -> tuple[float | int | bool | str, ...]:
    """Elements as plain numbers, or as hexadecimal text where the type is not known."""
    import numpy as np

    if array.dtype.kind in "iub":
        return tuple(array.tolist())
    if array.dtype.name.startswith("void"):
        return tuple("0x" + bytes(item)[::-1].hex() for item in array)
    return tuple(array.astype(np.float64).tolist())


def element_text(value: float | int | bool | str, digits: int) -> str:
    """One element for a person: floats with as many digits as their type carries."""
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


# Decimal digits that tell two neighbouring values of a type apart.
DIGITS = {"FLOAT32": 9, "FLOAT16": 5, "BFLOAT16": 4}
