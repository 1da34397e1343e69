"""What one replay hands to its kernel: a tensor or a scalar per slot, with where each came from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from insight_trace.dtypes import DType, scalar_value
from insight_trace.errors import RequestError
from insight_trace.model import ARG_SLOTS, LOCAL_CONTEXT_SLOT, MAX_TENSOR_DIMS, Payload, Role, Tier

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Kernels load whole tiles, so they read past a view that covers only part of one, and no dump says where the
# buffer really ends. A vector tile cannot be larger than the unified buffer, which no chip has above 256 KiB.
TILE_MARGIN = 256 * 1024

_U32 = 2**32 - 1
_BUFFER_LIMIT = 2**48  # no device addresses more


class ReplayTensor(Struct, frozen=True):
    """A tensor for one slot: the view that the kernel gets, its buffer, and what the buffer starts with."""

    slot: int
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # elements
    content: Content
    tier: Tier
    declared_size: int  # bytes of the buffer as its descriptor states them
    buffer_size: int  # bytes to allocate: declared_size and a margin for whole tiles
    start_offset: int = 0  # elements
    role: Role | None = None
    expected: Payload | None = None  # what the recorded run left in it
    name: str = ""
    origin: str = ""  # where the content comes from, as people read it
    shares: int | None = None  # the lower slot whose buffer this one also uses
    address: int | None = None  # where its buffer has to lie, as other buffers hold pointers to it

    @property
    def numel(self) -> int:
        return element_count(self.shape)

    @property
    def extent(self) -> int:
        """Elements from the buffer's start to the end of the view."""
        return view_extent(self.shape, self.strides, self.start_offset)

    @property
    def is_contiguous(self) -> bool:
        return self.strides == row_major(self.shape)

    @property
    def is_input(self) -> bool:
        return self.role is not Role.OUTPUT

    @property
    def is_output(self) -> bool:
        return self.role in (Role.OUTPUT, Role.INOUT) or (self.role is None and self.expected is not None)

    @property
    def is_control(self) -> bool:
        """Whole numbers that a kernel reads usually steer it: lengths, indices, tables."""
        return self.is_input and not self.dtype.is_float


class ReplayScalar(Struct, frozen=True):
    """A scalar for one slot, as the 64 bits that the kernel reads."""

    slot: int
    dtype: DType
    bits: int
    tier: Tier
    name: str = ""
    origin: str = ""

    @property
    def value(self) -> int | float | bool:
        return scalar_value(self.dtype, self.bits)


ReplaySlot = ReplayTensor | ReplayScalar


class ReplayArguments(Struct, frozen=True):
    """The arguments of one replay by slot. Holding one means that its slots are valid and unique."""

    slots: tuple[ReplaySlot, ...]
    block_count: int = 1
    notes: tuple[str, ...] = ()  # what a source found odd

    def __post_init__(self) -> None:
        problems = slot_problems([item.slot for item in self.slots])
        if problems:
            raise RequestError("; ".join(problems), hint=f"a kernel has slots 0 to {LOCAL_CONTEXT_SLOT - 1}")
        if self.block_count < 1:
            raise RequestError(f"a replay needs at least one block, not {self.block_count}")
        force_setattr(self, "slots", tuple(sorted(self.slots, key=lambda item: item.slot)))

    @property
    def tensors(self) -> tuple[ReplayTensor, ...]:
        return tuple(item for item in self.slots if isinstance(item, ReplayTensor))

    @property
    def scalars(self) -> tuple[ReplayScalar, ...]:
        return tuple(item for item in self.slots if isinstance(item, ReplayScalar))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to tell before a run: the notes, and the slots whose made-up content may mislead it."""
        return (*self.notes, *(text for item in self.slots for text in _slot_warnings(item)))

    @property
    def suspects(self) -> tuple[int, ...]:
        """Where to look when a replay did almost nothing: made-up control tensors, then made-up data."""
        made_up = [tensor for tensor in self.tensors if tensor.tier is Tier.SYNTHETIC and tensor.is_input]
        return tuple(tensor.slot for tensor in sorted(made_up, key=lambda t: (not t.is_control, t.slot)))

    def at(self, slot: int) -> ReplaySlot | None:
        return next((item for item in self.slots if item.slot == slot), None)

    def added(self, *items: ReplaySlot) -> ReplayArguments:
        """The same arguments with more slots."""
        return replace(self, slots=(*self.slots, *items))

    def replaced(self, *items: ReplaySlot, notes: Iterable[str] = ()) -> ReplayArguments:
        """The same arguments with these slots in place of what was there."""
        new = {item.slot: item for item in items}
        return replace(
            self,
            slots=tuple(new.get(item.slot, item) for item in self.slots),
            notes=(*self.notes, *notes),
        )


def _slot_warnings(item: ReplaySlot) -> Iterator[str]:
    if isinstance(item, ReplayScalar) and item.tier is Tier.RECONSTRUCTED:
        yield (
            f"slot {item.slot}: this {item.dtype.name} comes {item.origin}, its bits may not be the run's; "
            f"--set-arg {item.slot}=0x… gives them exactly"
        )
    if isinstance(item, ReplayTensor) and item.is_control and item.tier is Tier.SYNTHETIC:
        yield (
            f"slot {item.slot}: {item.dtype.short} {list(item.shape)} may steer the kernel and is made up "
            f"({item.origin}), so loops may run no times; --set-arg {item.slot}=VALUE fills it"
        )


def slot_problems(slots: Iterable[int]) -> list[str]:
    """What is wrong with these slot numbers, each named; empty if nothing is."""
    problems: list[str] = []
    seen: set[int] = set()
    for slot in slots:
        if slot < 0:
            problems.append(f"slot {slot} is negative")
        elif slot >= ARG_SLOTS:
            problems.append(f"slot {slot} is outside the {ARG_SLOTS} slots")
        elif slot >= LOCAL_CONTEXT_SLOT:
            problems.append(f"slot {slot} belongs to the context pointers, which replay builds itself")
        elif slot in seen:
            problems.append(f"slot {slot} is given twice")
        seen.add(slot)
    return problems


def element_count(shape: Iterable[int]) -> int:
    product = 1
    for extent in shape:
        product *= extent
    return product


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of a dense tensor, in elements."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def view_extent(shape: tuple[int, ...], strides: tuple[int, ...], start_offset: int) -> int:
    """Elements from the buffer's start to the end of the view."""
    if element_count(shape) == 0:
        return start_offset
    return start_offset + 1 + sum((size - 1) * step for size, step in zip(shape, strides, strict=True))


def geometry_problem(
    dtype: DType, shape: tuple[int, ...], strides: tuple[int, ...], start_offset: int
) -> str | None:
    """Why no kernel can be given this view, or None."""
    if len(shape) > MAX_TENSOR_DIMS:
        return f"{len(shape)} dimensions, at most {MAX_TENSOR_DIMS} are possible"
    if len(strides) != len(shape):
        return f"{len(strides)} strides for {len(shape)} dimensions"
    if any(not 0 <= extent <= _U32 for extent in shape):
        return f"shape {list(shape)} has an extent outside 0 to {_U32}"
    if any(not 0 <= step <= _U32 for step in strides):
        return f"strides {list(strides)} have a value outside 0 to {_U32}"
    if start_offset < 0:
        return f"start offset {start_offset} is negative"
    if view_extent(shape, strides, start_offset) * dtype.size > _BUFFER_LIMIT:
        return (
            f"view {list(shape)} with strides {list(strides)} at {start_offset} ends past any device memory"
        )
    return None


def buffer_sizes(
    dtype: DType,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    start_offset: int,
    recorded: int | None = None,
) -> tuple[int, int]:
    """Bytes of the buffer to declare and to allocate.

    Where the real size was not recorded, the view's rows are taken to be whole: a [16, 1] view with
    strides [16, 1] lies in a buffer of 16 x 16 elements.
    """
    extent = view_extent(shape, strides, start_offset)
    rows = max((size * step for size, step in zip(shape, strides, strict=True)), default=0)
    needed = extent * dtype.size
    declared = max(needed, (start_offset + rows) * dtype.size)
    if recorded is not None and recorded >= needed:
        declared = recorded
    aligned = -(-max(declared, 1) // 512) * 512
    return declared, aligned + TILE_MARGIN


def make_tensor(
    slot: int,
    dtype: DType,
    shape: tuple[int, ...],
    content: Content,
    tier: Tier,
    *,
    strides: tuple[int, ...] | None = None,
    start_offset: int = 0,
    role: Role | None = None,
    recorded_size: int | None = None,
    expected: Payload | None = None,
    name: str = "",
    origin: str = "",
) -> ReplayTensor:
    """A tensor with its buffer sizes worked out; a view that no kernel can be given is refused."""
    strides = row_major(shape) if strides is None else strides
    problem = geometry_problem(dtype, shape, strides, start_offset)
    if problem:
        raise RequestError(f"slot {slot}: {problem}")
    declared, allocated = buffer_sizes(dtype, shape, strides, start_offset, recorded_size)
    return ReplayTensor(
        slot=slot,
        dtype=dtype,
        shape=shape,
        strides=strides,
        content=content,
        tier=tier,
        declared_size=declared,
        buffer_size=allocated,
        start_offset=start_offset,
        role=role,
        expected=expected,
        name=name,
        origin=origin,
    )


# --- what a replayed tensor starts with. Nothing is read or made until a buffer is asked for


class Zero(Struct, frozen=True, tag="zero", tag_field="kind"):
    """Every byte zero."""


class Fill(Struct, frozen=True):
    """One value in every element of the view."""

    value: int | float | bool


class Random(Struct, frozen=True, tag="random", tag_field="kind"):
    """Numbers from a seed: floats from -1 to 1, integers from 0 to 7. Each slot draws its own."""

    seed: int


class Recorded(Struct, frozen=True, tag="recorded", tag_field="kind"):
    """A payload of the dump: the view's logical elements, row by row. May be a prefix if it was cut off."""

    payload: Payload


class FromFile(Struct, frozen=True, tag="file", tag_field="kind"):
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
