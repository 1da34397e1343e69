"""What a replayed tensor starts with. Nothing is read or made until a buffer is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from insight_trace.dtypes import DType
from insight_trace.model import Payload

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Zero(Struct, frozen=True):
    """Every byte zero."""


class Fill(Struct, frozen=True):
    """One value in every element of the view."""

    value: int | float | bool


class Random(Struct, frozen=True):
    """Numbers from a seed: floats from -1 to 1, integers from 0 to 7. Each slot draws its own."""

    seed: int


class Recorded(Struct, frozen=True):
    """A payload of the dump: the view's logical elements, row by row. May be a prefix if it was cut off."""

    payload: Payload


class FromFile(Struct, frozen=True):
    """A file the user gave: raw little-endian elements, or .npy."""

    path: Path


class OtherRecord(Struct, frozen=True):
    """A payload that was recorded for another view of the same buffer."""

    payload: Payload
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    start_offset: int


class CallerArray(Struct, frozen=True, eq=False):
    """An array that the caller holds, in the view's shape."""

    array: NDArray[Any]


Content = Zero | Fill | Random | Recorded | FromFile | OtherRecord | CallerArray
