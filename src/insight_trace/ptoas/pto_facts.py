"""What a walk over `.pto` finds: plain facts about arguments, each with its line."""

from __future__ import annotations

from dataclasses import dataclass, field

from insight_trace.ptoas.affine import Affine

Binding = int | tuple[int, int]


@dataclass(frozen=True, slots=True)
class Pointer:
    argument: str
    offset: Affine


@dataclass(frozen=True, slots=True)
class View:
    """What `make_tensor_view` declares: a shape over an argument's memory."""

    name: str
    argument: str
    offset: Affine
    shape: tuple[Affine, ...]
    strides: tuple[Affine, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Partition:
    """The part of a view that a load or a store touches."""

    view: View
    offsets: tuple[Affine, ...]
    sizes: tuple[Affine, ...]
    line: int
    guarded: bool  # inside a branch, so that its offsets may be narrower than their bounds


@dataclass(frozen=True, slots=True)
class Loop:
    lower: Affine
    upper: Affine
    step: Affine
    line: int

    @property
    def least_trips(self) -> int:
        """Iterations that certainly happen."""
        return self._trips(self.lower.high, self.upper.low)

    @property
    def most_trips(self) -> int | None:
        if self.lower.low is None or self.upper.high is None:
            return None
        return self._trips(self.lower.low, self.upper.high)

    def _trips(self, lower: int | None, upper: int | None) -> int:
        step = self.step.constant if self.step.is_number and self.step.constant > 0 else 1
        return 0 if lower is None or upper is None else max(0, -(-(upper - lower) // step))


@dataclass(frozen=True, slots=True)
class Length:
    """A valid size of a tile, with the size that the tile has."""

    value: Affine
    limit: int
    line: int


@dataclass(frozen=True, slots=True)
class Access:
    """Elements of an argument that are reached without a view: scalars, pipe slots."""

    argument: str
    elements: Affine | None  # one past the last element; None: `bytes_` counts
    bytes_: int
    line: int


@dataclass(frozen=True, slots=True)
class CoreWork:
    """Tile operations of one kind of core: how many stand in the text, how many run for certain."""

    written: int = 0
    certain: int = 0


NO_WORK = CoreWork()


@dataclass(slots=True)
class Facts:
    views: list[View] = field(default_factory=list)
    partitions: list[Partition] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)
    lengths: list[Length] = field(default_factory=list)
    accesses: list[Access] = field(default_factory=list)
    conditions: list[Affine] = field(default_factory=list)
    # (arguments, value): comparisons with a loop's counter, and with what value they hold in every turn
    guards: list[tuple[frozenset[str], int]] = field(default_factory=list)
    skipped: list[tuple[int, frozenset[str]]] = field(default_factory=list)  # (line, arguments): not taken
    indices: list[tuple[frozenset[str], int]] = field(default_factory=list)  # (arguments, limit)
    pipes: set[str] = field(default_factory=set)  # arguments that hold GM pipe slots
    ffts: set[str] = field(default_factory=set)
    opaque: dict[str, str] = field(default_factory=dict)  # argument -> operation whose use of it is not known
    operations: set[str] = field(default_factory=set)  # names of the tile operations
    loaded: set[str] = field(default_factory=set)
    read_as_scalar: set[str] = field(default_factory=set)
    stored: set[str] = field(default_factory=set)
    matrices: set[str] = field(default_factory=set)  # loaded into the cube's tiles
    places: set[str] = field(default_factory=set)  # tile locations: vec, mat, left, right, acc, bias
    sides: set[str] = field(default_factory=set)  # "cube", "vector" where the text says so
    cube: CoreWork = NO_WORK
    vector: CoreWork = NO_WORK
