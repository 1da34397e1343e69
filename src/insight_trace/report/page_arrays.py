"""Columns as the page's script reads them: little-endian arrays end to end, each in the narrowest type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_TYPES = ("u1", "i2", "u2", "i4")


def bounds(values: NDArray[Any]) -> tuple[int, int]:
    return (int(values.min()), int(values.max())) if len(values) else (0, 0)


def narrowest(low: int, high: int) -> str:
    """The smallest type that holds all between; numbers beyond 31 bits are doubles, as in JavaScript."""
    import numpy as np

    fitting = (kind for kind in _TYPES if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)
    return next(fitting, "f8")


def end_to_end(columns: Mapping[str, NDArray[Any]], types: Mapping[str, str]) -> bytes:
    """Each column in its type, padded to eight bytes."""
    parts = []
    for name, column in columns.items():
        data = column.astype("<" + types[name]).tobytes()
        parts.append(data + b"\0" * (-len(data) % 8))
    return b"".join(parts)


def types_of(columns: Mapping[str, NDArray[Any]]) -> dict[str, str]:
    return {name: narrowest(*bounds(column)) for name, column in columns.items()}


def layout_of(types: Mapping[str, str]) -> list[dict[str, str]]:
    """Names and types in the order of the arrays; the script works out where each begins."""
    return [{"name": name, "type": kind} for name, kind in types.items()]


def differences(values: NDArray[Any]) -> NDArray[np.int64]:
    """From one value to the next, the first from 0: sorted numbers become small ones."""
    import numpy as np

    steps: NDArray[np.int64] = values.astype(np.int64)
    steps[1:] -= steps[:-1].copy()
    return steps
