"""What the tests of element-wise ops share: tiles that hypothesis chooses, and how they are checked."""

import re
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import strategies as st

from insight_trace.simulate.embedded.op_script import TileSpec
from tests.simulate.op_harness import Result, dtype, held, run_tile_op, tile

FLOATS = ("float32", "float16", "bfloat16")
INTEGERS = ("int32", "int16", "uint32", "uint16", "int8", "uint8", "int64", "uint64")
NUMBERS = FLOATS + INTEGERS
# three tiles of this many bytes fit beside each other
ROOM = 0xA000
SCRATCH = 3 * ROOM
SEEDS = st.integers(0, 2**32 - 1)


@dataclass(frozen=True)
class Shape:
    rows: int
    cols: int
    valid: tuple[int, int]
    layout: str
    dynamic: int

    @property
    def part(self) -> tuple[slice, slice]:
        return slice(self.valid[0]), slice(self.valid[1])

    @property
    def line(self) -> tuple[int, int, int]:
        """Valid lines, valid elements of one, elements from one to the next."""
        if self.layout == "ND":
            return self.valid[0], self.valid[1], self.cols
        return self.valid[1], self.valid[0], self.rows

    @property
    def fills_in_a_run(self) -> bool:
        """a2a3's library fills lines x width elements from the first on where the width is part of the tile's type."""
        lines, width, pitch = self.line
        return not self.dynamic and lines > 1 and width < pitch


def line_width(size: int) -> st.SearchStrategy[int]:
    """Elements of a line: whole blocks of 32 bytes, around and beyond one repeat of 256."""
    return st.sampled_from([1, 2, 3, 7, 8, 9, 16, 17, 24]).map(lambda blocks: blocks * 32 // size)


@st.composite
def shapes(draw: st.DrawFn, kind: str, layouts: tuple[str, ...] = ("ND", "ND", "DN")) -> Shape:
    size = dtype(kind).size
    layout = draw(st.sampled_from(layouts))
    width = draw(line_width(size))
    # tiles of the widest other type must fit into their room, too
    lines = draw(st.sampled_from([n for n in (1, 2, 3, 5, 16, 33) if n * width * 8 <= ROOM]))
    rows, cols = (lines, width) if layout == "ND" else (width, lines)
    valid = draw(st.tuples(st.integers(1, rows), st.integers(1, cols)) | st.just((rows, cols)))
    return Shape(rows, cols, valid, layout, draw(st.sampled_from([0, 3])))


def values(rng: np.random.Generator, kind: str, shape: tuple[int, int], special: bool = True) -> np.ndarray:
    """Numbers of every size; for floats with zeros, infinities and NaN among them."""
    numpy_type = dtype(kind).numpy
    if np.issubdtype(numpy_type, np.integer):
        info = np.iinfo(numpy_type)
        wide = rng.integers(info.min, info.max, shape, numpy_type, endpoint=True)
        small = rng.integers(0, 20, shape).astype(numpy_type)
        return np.where(rng.random(shape) < 0.5, wide, small)
    found = rng.normal(size=shape) * 10.0 ** rng.integers(-3, 3, shape)
    if special:
        odd = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 65504.0, 6e-8])
        found = np.where(rng.random(shape) < 0.1, rng.choice(odd, shape), found)
    with np.errstate(over="ignore"):
        return found.astype(numpy_type)


def place(matrix: np.ndarray, number: int, kind: str, shape: Shape) -> TileSpec:
    spec = tile(matrix, number * ROOM, dtype_name=kind, layout=shape.layout, valid=shape.valid)
    return replace(spec, dynamic=shape.dynamic)


def in_float(body: Any, target: str = "a2a3") -> Any:
    """A NumPy function as the vector unit computes it: 16-bit floats in float32, rounded once and `held`."""

    def computed(*arrays: np.ndarray) -> np.ndarray:
        kind = arrays[0].dtype
        narrow = kind in (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))
        with np.errstate(all="ignore"):
            found = body(*(a.astype(np.float32) for a in arrays)) if narrow else body(*arrays)
            return held(np.asarray(found).astype(kind), target)

    return computed


def check(result: Result, shape: Shape, before: np.ndarray, expected: np.ndarray, index: int = 0) -> None:
    """The valid part is what is expected, bit for bit but for the sign of NaN; the rest is as it was."""
    found = result.matrix(index)
    wanted = before.copy()
    wanted[shape.part] = expected
    if not np.issubdtype(found.dtype, np.integer):
        found, wanted = found.astype(np.float32), wanted.astype(np.float32)
    np.testing.assert_array_equal(found, wanted)


def check_in_pairs(
    op: str, operands: list[Any], shape: Shape, before: np.ndarray, expected: np.ndarray
) -> None:
    """As `check`, of an op that handles bytes two by two on a2a3: behind an odd line one more is written there."""
    if dtype_size(before) > 1 or shape.line[1] % 2 == 0:
        return check(run_tile_op(op, *operands), shape, before, expected)
    check(run_tile_op(op, *operands, target="a5"), shape, before, expected)
    np.testing.assert_array_equal(run_tile_op(op, *operands, target="a2a3").matrix(0)[shape.part], expected)


def dtype_size(matrix: np.ndarray) -> int:
    return int(matrix.dtype.itemsize)


def vector_instructions(result: Result) -> list[tuple[str, int]]:
    """(mnemonic, repeats; 0 where it has none) of everything but register writes, in program order."""
    columns = result.simulation.instructions
    found = []
    for name, detail in zip(columns.name, columns.detail, strict=True):
        repeats = re.search(r"repeat:(\d+)", detail)
        if columns.names[name] not in ("MOV_SPR_XN", "END"):
            found.append((columns.names[name], int(repeats[1]) if repeats else 0))
    return found


def drawn(
    data: st.DataObject, kind: str, count: int, layouts: tuple[str, ...] = ("ND", "DN"), special: bool = True
) -> tuple[Shape, np.random.Generator, list[np.ndarray]]:
    """A shape, and `count` matrices for it."""
    shape = data.draw(shapes(kind, layouts))
    rng = np.random.default_rng(data.draw(SEEDS))
    return shape, rng, [values(rng, kind, (shape.rows, shape.cols), special) for _ in range(count)]


def names(result: Result) -> list[str]:
    return [name for name, _ in vector_instructions(result)]
