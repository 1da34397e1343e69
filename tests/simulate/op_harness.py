"""Runs one tile op on NumPy arrays: tiles are placed in any layout, and come back as logical matrices."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np

from insight_trace.dtypes import DType, dtype_named
from insight_trace.model import Pipe
from insight_trace.outcome import Failure, Simulation
from insight_trace.simulate.embedded.op_script import (
    GlobalSpec,
    OpRun,
    Option,
    ScalarSpec,
    TileSpec,
    run_op,
)
from insight_trace.simulate.embedded.simulator import EmbeddedOptions
from insight_trace.simulate.embedded.toolchain import Toolchain

__all__ = [
    "TARGETS",
    "Option",
    "Result",
    "dtype",
    "element_offsets",
    "failure_of",
    "glob",
    "held",
    "run_tile_op",
    "scalar",
    "tile",
]  # fmt: skip

TARGETS = ("a2a3", "a5")
FOUR_BITS = (14, 17)  # codes of floats that lie two in a byte
# What the 950's vector unit has instead of one pipe: nothing runs on that pipe, and masks are no registers.
_SYNC = frozenset({"SET_FLAG", "WAIT_FLAG", "BAR"})
_A5_VECTOR = frozenset({Pipe.PUSHQ, Pipe.RVECLD, Pipe.RVECEX, Pipe.RVECST})


def dtype(name: str) -> DType:
    found = dtype_named(name)
    assert found is not None, name
    return found


def element_offsets(spec: TileSpec) -> np.ndarray:
    """Element offset of every (row, column), as the hardware lays the tile out."""
    r, c = np.meshgrid(np.arange(spec.rows), np.arange(spec.cols), indexing="ij")
    if spec.layout == "ND":
        return r * spec.cols + c
    if spec.layout == "DN":
        return c * spec.rows + r
    block = 64 if spec.dtype.code in FOUR_BITS else 32 // spec.dtype.size
    # layouts are named outer then inner: NZ is boxes column by column, each row by row
    rows_inside, cols_inside = (block, 16) if spec.layout[1] == "N" else (16, block)
    if spec.fractal == 1024:
        rows_inside = cols_inside = 16
    elif spec.fractal == 32:  # scales of groups
        rows_inside, cols_inside = (2, 16) if spec.layout[1] == "N" else (16, 2)
    box = rows_inside * cols_inside
    br, ir, bc, ic = r // rows_inside, r % rows_inside, c // cols_inside, c % cols_inside
    if spec.layout[0] == "Z":  # boxes row by row
        outer = br * spec.cols * rows_inside + bc * box
    else:
        outer = bc * spec.rows * cols_inside + br * box
    inner = ir * cols_inside + ic if spec.layout[1] == "Z" else ic * rows_inside + ir
    return outer + inner


def tile(
    matrix: Any,
    address: int = 0,
    *,
    dtype_name: str | None = None,
    layout: str = "ND",
    space: str = "ub",
    valid: tuple[int, int] | None = None,
    pad: int = 0,
    fractal: int = 512,
    dynamic: int = 0,
) -> TileSpec:
    """A tile that holds `matrix` (all of it; `valid` limits what ops may touch)."""
    matrix = np.asarray(matrix)
    kind = dtype(dtype_name or matrix.dtype.name)
    matrix = matrix.astype(kind.numpy)
    rows, cols = matrix.shape
    spec = TileSpec(
        kind,
        rows,
        cols,
        address,
        space,
        layout,
        *(valid or (rows, cols)),
        fractal=fractal,
        pad=pad,
        dynamic=dynamic,
    )
    flat = np.zeros(rows * cols, kind.numpy)
    flat[element_offsets(spec)] = matrix
    return replace(spec, data=flat)


def glob(
    data: Any,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    *,
    layout: int = 0,
    offset: int = 0,
    dtype_name: str | None = None,
) -> GlobalSpec:
    """A view of a global buffer; short shapes are filled up with 1 on the left."""
    data = np.asarray(data)
    kind = dtype(dtype_name or data.dtype.name)
    missing = 5 - len(shape)
    full_shape = (1,) * missing + tuple(shape)
    full_strides = (int(data.size),) * missing + tuple(strides)
    return GlobalSpec(data.astype(kind.numpy), kind, full_shape, full_strides, layout, offset)  # type: ignore[arg-type]


def scalar(value: float | int, dtype_name: str = "float") -> ScalarSpec:
    kind = dtype(dtype_name)
    raw = np.array([value]).astype(kind.numpy).tobytes().ljust(8, b"\0")
    return ScalarSpec(kind, int.from_bytes(raw, "little"))


@dataclass(frozen=True, eq=False)
class Result:
    run: OpRun
    operands: tuple[Any, ...]
    on_a5: "Result | None" = None  # the same op there, where it ran on both

    @property
    def simulation(self) -> Simulation:
        return self.run.simulation

    def matrix(self, index: int = 0) -> np.ndarray:
        """The whole tile of that operand after the op, as rows and columns."""
        spec, content = self.operands[index], self.run.contents[index]
        assert isinstance(spec, TileSpec)
        assert content is not None
        return content[element_offsets(spec)]

    def buffer(self, index: int = 0) -> np.ndarray:
        """The whole buffer of a global operand after the op."""
        content = self.run.contents[index]
        assert content is not None
        return content

    @property
    def instructions(self) -> list[str]:
        """Mnemonics in program order, without the closing END."""
        columns = self.simulation.instructions
        return [columns.names[i] for i in columns.name][:-1]

    @property
    def a5(self) -> "Result":
        assert self.on_a5 is not None, "this op ran on one family only"
        return self.on_a5


def run_tile_op(
    name: str,
    *operands: Any,
    timing_only: bool = False,
    target: str | None = None,
    l2: str | None = None,
    whole_blocks: bool = False,
) -> Result:
    """Runs the op; the run must end well (failure_of is for runs that should not).

    Without a target it runs on both families, which must leave the same bytes; with `whole_blocks` the same valid part,
    as a2a3 copies and gathers whole blocks of 32 bytes. The run on a2a3 comes back, with the one on the 950 in `a5`.
    """
    if target is not None:
        return Result(_run_on(target, name, operands, timing_only, l2), operands)
    there = Result(_run_on("a5", name, operands, timing_only, l2), operands)
    run = _run_on("a2a3", name, operands, timing_only, l2)
    if whole_blocks:
        part = slice(operands[0].valid_rows), slice(operands[0].valid_cols)
        here = Result(run, operands)
        assert here.matrix(0)[part].tobytes() == there.matrix(0)[part].tobytes(), f"{name}: families differ"
    else:
        _require_same(run, there.run, name, operands)
    return Result(run, operands, there)


def failure_of(name: str, *operands: Any, target: str | None = None) -> Failure:
    """How the op ends that must not end well: on both families with the same words, or on the one named."""
    found = []
    for one in (target,) if target else TARGETS:
        failure = run_op(name, operands, EmbeddedOptions(target=one), _toolchain()).simulation.failure
        assert failure is not None, f"{name} ended well on {one}"
        found.append(failure)
    assert len({(failure.fault, failure.message) for failure in found}) == 1, found
    return found[0]


@lru_cache(maxsize=1)
def _toolchain() -> Toolchain:
    """One for all: finding the compiler and hashing our sources takes longer than an op."""
    return Toolchain.find()


def _run_on(
    target: str, name: str, operands: tuple[Any, ...], timing_only: bool, l2: str | None = None
) -> OpRun:
    options = EmbeddedOptions(timing_only=timing_only, target=target, l2=l2)
    run = run_op(name, operands, options, _toolchain())
    assert run.simulation.failure is None, f"{target}: {run.simulation.failure}"
    _require_lanes_of(target, name, run.simulation)
    return run


def _require_lanes_of(target: str, name: str, simulation: Simulation) -> None:
    """Vector work is on the lanes that the family has, and on no other."""
    columns = simulation.instructions
    lanes = {Pipe(int(pipe)) for pipe in set(columns.pipe.tolist())}
    if target == "a2a3":
        assert not lanes & _A5_VECTOR, f"{name} on a2a3 uses {lanes & _A5_VECTOR}"
        return
    on_vector = {
        columns.names[n] for n, pipe in zip(columns.name, columns.pipe, strict=True) if pipe == Pipe.VECTOR
    } - _SYNC
    assert not on_vector, f"{name} on a5 has instructions of the other family: {on_vector}"


def held(numbers: np.ndarray, target: str = "a2a3") -> np.ndarray:
    """16-bit floats as ops leave them: on a2a3 infinities become the largest number and NaN 0; the 950 keeps both."""
    if target == "a5" or numbers.dtype not in (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)):
        return numbers
    most = float(ml_dtypes.finfo(numbers.dtype).max)
    wide = numbers.astype(np.float32)
    return np.where(np.isnan(wide), 0, np.clip(wide, -most, most)).astype(numbers.dtype)


def _bits(numbers: np.ndarray) -> np.ndarray:
    return numbers.view(f"u{numbers.dtype.itemsize}")


def _require_same(first: OpRun, second: OpRun, name: str, operands: tuple[Any, ...]) -> None:
    """The same bytes, but that the 950 leaves scratch and sources as they were, and keeps infinities and NaN."""
    for i, (one, other) in enumerate(zip(first.contents, second.contents, strict=True)):
        if one is not None and other is not None:
            before = getattr(operands[i], "data", None)
            untouched = np.zeros(1, np.uint8) if before is None else np.asarray(before)
            left = not other.any() if before is None else other.tobytes() == untouched.tobytes()
            same = bool(((_bits(one) == _bits(other)) | (_bits(one) == _bits(held(other)))).all()) or (
                i > 0 and left
            )
            assert same, f"{name}: operand {i} differs between a2a3 and a5"
