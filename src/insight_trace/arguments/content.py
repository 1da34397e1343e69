"""What a replayed tensor starts with. Nothing is read or made until a buffer is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from insight_trace.dtypes import DType
from insight_trace.model import Payload

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Zero:
    """Every byte zero."""


@dataclass(frozen=True, slots=True)
class Fill:
    """One value in every element of the view."""

    value: int | float | bool


@dataclass(frozen=True, slots=True)
class Random:
    """Numbers from a seed: floats from -1 to 1, integers from 0 to 7. Each slot draws its own."""

    seed: int


@dataclass(frozen=True, slots=True)
class Recorded:
    """A payload of the dump: the view's logical elements, row by row. May be a prefix if it was cut off."""

    payload: Payload


@dataclass(frozen=True, slots=True)
class FromFile:
    """A file the user gave: raw little-endian elements, or .npy."""

    path: Path


@dataclass(frozen=True, slots=True)
class OtherRecord:
    """A payload that was recorded for another view of the same buffer."""

    payload: Payload
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    start_offset: int


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """An array that the caller holds, in the view's shape."""

    array: NDArray[Any]


Content = Zero | Fill | Random | Recorded | FromFile | OtherRecord | Given
