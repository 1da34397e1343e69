"""What a profile run will do: kernels, and for each argument its size, its value, and why."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path

from insight_trace.arguments.slots import ReplayArguments
from insight_trace.dtypes import DType
from insight_trace.model import CoreType, Dispatch, Kernel, Role, Scene
from insight_trace.ptoas.cpp_signature import CppFunction
from insight_trace.ptoas.pto_facts import NO_WORK, CoreWork


class Content(enum.StrEnum):
    """How a buffer is filled before the kernel runs."""

    RANDOM = "random"  # floats, by the seed
    CONSTANT = "constant"  # every element is `low`
    INDEX = "index"  # integers from `low` to `high`, by the seed
    ZERO = "zero"
    FILE = "file"


class Purpose(enum.StrEnum):
    TENSOR = "tensor"
    PIPE = "gm-pipe"  # slots between the cube and the vector cores
    FFTS = "ffts"  # the base that cross-core flags count from; a launcher takes it from the runtime
    WORKSPACE = "workspace"  # memory of the runtime's own


@dataclass(frozen=True, slots=True)
class BufferArg:
    """A pointer argument: GM memory of `elements` elements."""

    position: int
    name: str  # as the C++ says it
    label: str  # as the `.pto` or the user's program says it
    dtype: DType
    elements: int
    content: Content
    why: str  # how content and size were decided
    role: Role | None = None  # None: the `.pto` does not show
    purpose: Purpose = Purpose.TENSOR
    low: int = 0
    high: int = 0
    file: Path | None = None
    positive: bool = False  # random floats stay above zero: the kernel divides or takes roots

    @property
    def nbytes(self) -> int:
        return self.elements * self.dtype.size


@dataclass(frozen=True, slots=True)
class ValueArg:
    """A scalar argument."""

    position: int
    name: str
    label: str
    cpp_type: str
    value: int | float | tuple[int, ...]  # a tuple: the members of a structure
    why: str
    per_lane: bool = False  # the index of the vector core that runs, whatever `value` says

    @property
    def literal(self) -> str:
        """The value as a C++ expression of the parameter's type."""
        if isinstance(self.value, tuple):
            return f"{self.cpp_type}{{{', '.join(map(str, self.value))}}}"
        if self.cpp_type == "bool":
            return "true" if self.value else "false"
        if isinstance(self.value, float):
            return f"static_cast<{self.cpp_type}>({self.value!r}f)"
        suffix = "ULL" if self.value > 0x7FFF_FFFF_FFFF_FFFF else "LL"
        return f"static_cast<{self.cpp_type}>({self.value}{suffix})"


KernelArg = BufferArg | ValueArg


@dataclass(frozen=True, slots=True, eq=False)
class Workload:
    """A dispatch of the build's own run: the kernels as they were dispatched, and what they started with."""

    kernels: tuple[Kernel, ...]
    arguments: ReplayArguments
    dispatch_id: int
    number: int  # among the dispatches of this kernel
    count: int  # how many there are
    golden: bool | None  # whether the run gave what its golden says; None: it has none
    scene: Scene | None = None
    dispatch: Dispatch | None = None


@dataclass(frozen=True, slots=True)
class ProfileKernel:
    """One kernel of a build, ready to run."""

    name: str  # unique in the run; names directories
    entry: str  # the C++ function, or the base of an _aic/_aiv pair
    kind: CoreType
    arch: str  # "a2a3" or "a5"
    source: Path
    pto: Path
    functions: tuple[CppFunction, ...]  # one, or the cube and the vector half
    arguments: tuple[KernelArg, ...]  # by position
    cube: CoreWork = NO_WORK  # tile operations that the `.pto` asks of each kind of core
    vector: CoreWork = NO_WORK
    seed: int = 0
    warnings: tuple[str, ...] = ()
    workload: Workload | None = None  # None: the arguments above are made up
    synthetic_because: str = ""
    has_operations: bool = True  # False: its `.pto` has no tile operation at all

    @property
    def has_given(self) -> bool:
        """Whether the user gave one of its arguments."""
        given = (a.why for a in self.arguments)
        return any(why == "given" or why.startswith("given;") for why in given)

    @property
    def moves_only(self) -> bool:
        """Whether the kernel computes nothing: it loads, moves and stores."""
        return not self.cube.written and not self.vector.written

    def arguments_of(self, function: CppFunction) -> tuple[KernelArg, ...]:
        """What one half takes: the first of the kernel's arguments."""
        return self.arguments[: len(function.parameters)]

    @property
    def buffers(self) -> tuple[BufferArg, ...]:
        return tuple(a for a in self.arguments if isinstance(a, BufferArg))

    @property
    def values(self) -> tuple[ValueArg, ...]:
        return tuple(a for a in self.arguments if isinstance(a, ValueArg))


@dataclass(frozen=True, slots=True)
class BrokenKernel:
    """A kernel that was found but cannot run, with the reason."""

    name: str
    source: Path
    problem: str
    kind: str = "?"
    arch: str = "?"
    arguments: tuple[KernelArg, ...] = ()  # as far as its `.pto` tells them


PlannedKernel = ProfileKernel | BrokenKernel
