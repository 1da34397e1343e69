"""Single tile ops on the modelled core, without a kernel and without a compiler run.

The runner has an interpreter of tile ops (engine/op_script.cpp); this packs what it reads.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from insight_trace.dtypes import DType
from insight_trace.errors import JobError, RequestError
from insight_trace.outcome import Simulation
from insight_trace.simulate.embedded.core_plan import CorePlan, core_line
from insight_trace.simulate.embedded.job_files import job_directory
from insight_trace.simulate.embedded.memory import Buffer, GlobalMemory
from insight_trace.simulate.embedded.records import load_instructions, op_names
from insight_trace.simulate.embedded.runner import run_job
from insight_trace.simulate.embedded.simulator import EmbeddedOptions, chip_of, job_options
from insight_trace.simulate.embedded.toolchain import Toolchain

if TYPE_CHECKING:
    from numpy.typing import NDArray

SPACES = ("ub", "l1", "l0a", "l0b", "l0c", "bias", "scaling", "scale_left", "scale_right")
_LAYOUTS = {  # name -> outer row major, inner order
    "ND": (1, 0),
    "DN": (0, 0),
    "NZ": (0, 1),
    "ZN": (1, 2),
    "ZZ": (1, 1),
    "NN": (0, 2),
}
_TILE = struct.Struct("<I4i6B2xiQ")
_GLOBAL = struct.Struct("<Q5q5qBB6x")
_OPERANDS = 8
_OPERAND_SIZE = 104
_STEP = struct.Struct("<IIHB5xQQQ")
STEP_SIZE = _STEP.size + _OPERANDS * _OPERAND_SIZE
_CUBE_SPACES = frozenset({"l1", "l0a", "l0b", "l0c", "bias"})


@dataclass(frozen=True)
class TileSpec:
    """A tile somewhere in a core's memory, and what it holds."""

    dtype: DType
    rows: int
    cols: int
    address: int = 0
    space: str = "ub"
    layout: str = "ND"
    valid_rows: int | None = None
    valid_cols: int | None = None
    fractal: int = 512
    pad: int = 0
    compact: int = 0
    dynamic: int = 0  # valid size known only at run time: 1 rows, 2 columns
    data: NDArray[Any] | None = None  # raw elements in memory order, rows*cols of them

    @property
    def size(self) -> int:
        return self.rows * self.cols * self.dtype.size


@dataclass(frozen=True)
class GlobalSpec:
    """A view of global memory; the array holds the whole buffer."""

    data: NDArray[Any]
    dtype: DType
    shape: tuple[int, int, int, int, int]
    strides: tuple[int, int, int, int, int]
    layout: int = 0  # pto::Layout: 0 ND, 1 DN, 2 NZ
    offset: int = 0  # elements


@dataclass(frozen=True)
class ScalarSpec:
    dtype: DType
    bits: int


@dataclass(frozen=True)
class Option:
    """An enumerator or index operand."""

    value: int


Spec = TileSpec | GlobalSpec | ScalarSpec | Option


@dataclass(frozen=True, eq=False)
class OpRun:
    """What one op left behind: every tile's and global's bytes afterwards, in the order of the operands."""

    simulation: Simulation
    contents: list[NDArray[Any] | None]


def op_numbers() -> dict[str, int]:
    """Tile ops by name."""
    return {name: number for number, name in enumerate(op_names())}


def run_op(
    name: str,
    operands: Sequence[Spec],
    options: EmbeddedOptions | None = None,
    toolchain: Toolchain | None = None,
) -> OpRun:
    """Runs one tile op on the given operands."""
    options = options or EmbeddedOptions()
    toolchain = toolchain or Toolchain.find()
    numbers = op_numbers()
    if name not in numbers:
        raise RequestError(f"there is no tile op '{name}'", hint=f"known: {', '.join(sorted(numbers))}")
    soc = chip_of(options)
    script = Script([(numbers[name], operands)])
    core = script.core
    with job_directory() as directory:
        image = directory / "gm"
        script.fill(image)
        lines = [
            *job_options(soc, options, directory, usual_l2="warm"),
            *script.memory.job_lines(image),
            "kernel\tbuiltin:op_script\top_script",
            core_line(core, script.args.address, 1),
        ]
        result = run_job(toolchain.runner(), directory, lines, options.seconds)
        if not result.told:
            raise JobError(str(result.failure))
        instructions = load_instructions(directory / "records", result.sites, (core.name,), soc.target)
        simulation = Simulation(
            outputs={},
            instructions=instructions,
            mhz=soc.mhz,
            soc_version=soc.name,
            failure=result.failure,
            printed=result.printed,
            memory=result.memory,
        )
        return OpRun(simulation, script.contents())


class Script:
    """Tile ops one after the other, each by its number and with its operands; bytes are steps that are packed already."""

    def __init__(self, items: Sequence[tuple[int, Sequence[Spec]] | bytes]) -> None:
        self.items = items
        self.operands = [spec for item in items if not isinstance(item, bytes) for spec in item[1]]
        self.cube = any(isinstance(o, TileSpec) and o.space in _CUBE_SPACES for o in self.operands)
        self.memory = GlobalMemory()
        self.args = self.memory.reserve("the args array", 64)
        steps = sum(isinstance(o, TileSpec) for o in self.operands) * 2 + len(items)
        self.script = self.memory.reserve("the op script", 8 + steps * STEP_SIZE)
        self.buffers: list[Buffer | None] = []
        for i, operand in enumerate(self.operands):
            size = operand.size if isinstance(operand, TileSpec) else 0
            if isinstance(operand, GlobalSpec):
                size = operand.data.nbytes
            self.buffers.append(self.memory.reserve(f"operand {i}", size) if size else None)

    @property
    def core(self) -> CorePlan:
        name = "core0.cubecore0" if self.cube else "core0.veccore0"
        return CorePlan(0, self.cube, 0, 0, name)

    def fill(self, path: Path, offset: int = 0) -> None:
        """With the content of tiles and tensors."""
        import numpy as np

        self.memory.create(path, offset)
        before, after = [], []
        for operand, buffer in zip(self.operands, self.buffers, strict=True):
            if isinstance(operand, TileSpec) and buffer:
                copy = (SPACES.index(operand.space), buffer.address, operand.address, operand.size)
                if operand.data is not None:
                    raw = np.ascontiguousarray(operand.data).view(np.uint8).reshape(-1)
                    self.memory.view(buffer)[: raw.size] = raw
                    before.append(pack_step(0, *copy))
                after.append(pack_step(1, *copy))
            elif isinstance(operand, GlobalSpec) and buffer:
                raw = np.ascontiguousarray(operand.data).view(np.uint8).reshape(-1)
                self.memory.view(buffer)[: raw.size] = raw
        self._write([*before, *self._ops(), *after])

    def fill_for_times(self, path: Path, offset: int = 0) -> None:
        """The ops alone: their content changes no times."""
        self.memory.create(path, offset)
        self._write(self._ops())

    def _ops(self) -> list[bytes]:
        packed, place = [], 0
        for item in self.items:
            if isinstance(item, bytes):
                packed.append(item)
                continue
            number, operands = item
            buffers = self.buffers[place : place + len(operands)]
            place += len(operands)
            body = [_operand(operand, buffer) for operand, buffer in zip(operands, buffers, strict=True)]
            packed.append(pack_step(2, 0, 0, 0, 0, number, body))
        return packed

    def _write(self, steps: Sequence[bytes]) -> None:
        self.memory.write(self.args, 0, struct.pack("<Q", self.script.address))
        self.memory.write(self.script, 0, struct.pack("<Q", len(steps)) + b"".join(steps))

    def contents(self) -> list[NDArray[Any] | None]:
        found: list[NDArray[Any] | None] = []
        for operand, buffer in zip(self.operands, self.buffers, strict=True):
            if buffer is None or not isinstance(operand, TileSpec | GlobalSpec):
                found.append(None)
                continue
            count = buffer.size // operand.dtype.size * operand.dtype.size
            found.append(self.memory.view(buffer)[:count].copy().view(operand.dtype.numpy))
        return found


def pack_step(
    kind: int, space: int, gm: int, local: int, size: int, op: int = 0, operands: Sequence[bytes] = ()
) -> bytes:
    head = _STEP.pack(kind, len(operands), op, space, gm, local, size)
    return (head + b"".join(operands)).ljust(STEP_SIZE, b"\0")


def _operand(operand: Spec, buffer: Buffer | None) -> bytes:
    if isinstance(operand, TileSpec):
        row_major, inner = _LAYOUTS[operand.layout]
        valid_rows = operand.rows if operand.valid_rows is None else operand.valid_rows
        valid_cols = operand.cols if operand.valid_cols is None else operand.valid_cols
        kind, body = 1, _TILE.pack(
            operand.address, operand.rows, operand.cols, valid_rows, valid_cols,
            SPACES.index(operand.space), operand.dtype.code, row_major, inner, operand.compact,
            operand.dynamic, operand.fractal, operand.pad,
        )  # fmt: skip
    elif isinstance(operand, GlobalSpec):
        address = (buffer.address if buffer else 0) + operand.offset * operand.dtype.size
        kind = 2
        body = _GLOBAL.pack(address, *operand.shape, *operand.strides, operand.dtype.code, operand.layout)
    elif isinstance(operand, ScalarSpec):
        kind, body = 3, struct.pack("<QB7x", operand.bits, operand.dtype.code)
    else:
        kind, body = 4, struct.pack("<q", operand.value)
    return (struct.pack("<B7x", kind) + body).ljust(_OPERAND_SIZE, b"\0")
