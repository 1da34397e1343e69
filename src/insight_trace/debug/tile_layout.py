"""Where the elements of a tile or a tensor lie in memory, and its bytes as the matrix that it is."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from insight_trace.dtypes import DTYPES, TILE_ONLY_TYPES

_SHORT = [d.short for d in DTYPES] + list(TILE_ONLY_TYPES)
_NIBBLES = {"f4e2m1", "f4e1m2", "i4"}


def type_name(code: int) -> str:
    return _SHORT[code] if code < len(_SHORT) else f"type {code}"


def element_size(code: int) -> int:
    return DTYPES[code].size if code < len(DTYPES) else 1


@lru_cache(maxsize=64)
def numpy_type(code: int) -> np.dtype[Any]:
    """How NumPy holds an element; types that it has none for come as their bytes."""
    if code < len(DTYPES) and DTYPES[code].short not in _NIBBLES:
        return DTYPES[code].numpy
    if type_name(code) == "f8e5m2":
        import ml_dtypes

        narrow: np.dtype[Any] = np.dtype(ml_dtypes.float8_e5m2)
        return narrow
    return np.dtype(np.uint8)


def is_number(code: int) -> bool:
    """Whether NumPy can read the elements as numbers."""
    return type_name(code) not in _NIBBLES | {"hif8"}


def as_double(values: NDArray[Any]) -> NDArray[np.float64]:
    """Any element type in double."""
    if values.dtype.kind in "fiub":
        return values.astype(np.float64)
    return values.astype(np.float32).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Tile:
    """A tile or a matrix in global memory, as an op names it."""

    memory: int
    address: int
    rows: int
    cols: int
    valid_rows: int
    valid_cols: int
    type: int
    row_major: bool = True
    inner: int = 0
    compact: int = 0
    fractal: int = 512
    shape: tuple[int, ...] = ()  # of a tensor in global memory
    stride: tuple[int, ...] = ()
    layout: int = 0

    @property
    def in_global(self) -> bool:
        return bool(self.shape)

    def offsets(self) -> NDArray[np.int64]:
        """Byte offset of every element from the address, in the shape of the matrix."""
        return _offsets_of(self)

    def place_elements(self) -> NDArray[np.int64]:
        """The same, worked out."""
        size = element_size(self.type)
        if self.in_global:
            offset = np.zeros((1,), np.int64)
            for extent, stride in zip(self.shape, self.stride, strict=True):
                offset = (offset[:, None] + np.arange(extent, dtype=np.int64) * stride).reshape(-1)
            return offset.reshape(-1, self.shape[-1]) * size
        r, c = np.meshgrid(np.arange(self.rows), np.arange(self.cols), indexing="ij")
        if self.inner == 0:
            return (r * self.cols + c if self.row_major else c * self.rows + r) * size
        rows_of_box, cols_of_box = self.box
        rows, cols = self.rows, self.cols
        if self.compact == 1:
            rows = -(-self.valid_rows // rows_of_box) * rows_of_box
            cols = -(-self.valid_cols // cols_of_box) * cols_of_box
        box = rows_of_box * cols_of_box
        br, bc, ir, ic = r // rows_of_box, c // cols_of_box, r % rows_of_box, c % cols_of_box
        outer = br * cols * rows_of_box + bc * box if self.row_major else bc * rows * cols_of_box + br * box
        return (outer + (ir * cols_of_box + ic if self.inner == 1 else ic * rows_of_box + ir)) * size

    @property
    def plain(self) -> bool:
        """Rows one after the other, on chip."""
        return self.inner == 0 and self.row_major and not self.shape

    @property
    def box(self) -> tuple[int, int]:
        """Rows and columns of an inner box (engine/elements.hpp)."""
        if self.fractal == 1024:
            return 16, 16
        if self.fractal == 32:
            return (16, 2) if self.inner == 1 else (2, 16)
        line = 32 // element_size(self.type)
        return (16, line) if self.inner == 1 else (line, 16)

    @property
    def valid(self) -> tuple[int, int]:
        if self.in_global:
            count = int(np.prod(self.shape[:-1]))
            return count, self.shape[-1]
        return self.valid_rows, self.valid_cols


@lru_cache(maxsize=1 << 16)
def _offsets_of(tile: Tile) -> NDArray[np.int64]:
    # the same for every tile of that form, wherever it lies
    return _offsets(dataclasses.replace(tile, address=0))


@lru_cache(maxsize=1024)
def _offsets(tile: Tile) -> NDArray[np.int64]:
    found = tile.place_elements()
    found.flags.writeable = False
    return found


def is_float(code: int) -> bool:
    """Whether elements are floating-point numbers that NumPy can read."""
    return is_number(code) and numpy_type(code).kind not in "iub"


@lru_cache(maxsize=64)
def largest(code: int) -> float:
    """The largest finite number of an element type."""
    kind = numpy_type(code)
    if kind.kind in "iub":
        return 1.0 if kind.kind == "b" else float(np.iinfo(kind).max)
    return float(_limits(kind).max)


@lru_cache(maxsize=64)
def smallest(code: int) -> float:
    """The smallest normal number of a floating-point type; 0 for others."""
    kind = numpy_type(code)
    return 0.0 if kind.kind in "iub" else float(_limits(kind).smallest_normal)


def _limits(kind: np.dtype[Any]) -> Any:
    if kind.kind == "f":
        return np.finfo(kind)
    import ml_dtypes

    return ml_dtypes.finfo(kind)  # type: ignore[no-untyped-call]


def tile_on_chip(row: Any) -> Tile:
    """A tile as a row of the recording's `tiles`, or an operand of the journal, describes it."""
    return Tile(
        int(row["memory"]),
        int(row["address"]),
        int(row["rows"]),
        int(row["cols"]),
        int(row["valid_rows"]),
        int(row["valid_cols"]),
        int(row["type"]),
        bool(row["row_major"]),
        int(row["inner"]),
        int(row["compact"]),
        int(row["fractal"]),
    )


def tile_of(row: Any, gm: int) -> Tile:
    """A row of the recording's `tiles`."""
    tile = tile_on_chip(row)
    if tile.memory != gm:
        return dataclasses.replace(tile, layout=int(row["layout"]))
    shape, stride = (tuple(int(n) for n in row[name]) for name in ("shape", "stride"))
    return dataclasses.replace(tile, shape=shape, stride=stride, layout=int(row["layout"]))


def matrix(content: NDArray[np.uint8], tile: Tile) -> NDArray[Any]:
    """The elements of a tile from the bytes that begin at its address."""
    size = element_size(tile.type)
    offsets = tile.offsets()
    raw = content[offsets[..., None] + np.arange(size)]
    return np.ascontiguousarray(raw).view(numpy_type(tile.type))[..., 0]
