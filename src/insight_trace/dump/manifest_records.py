"""The JSON forms of a dump, typed: what msgspec decodes into, one struct per record.

Only keys that are used are listed; a key that is not listed is skipped without being decoded. Every
field that a schema may lack has a default that says "absent", so one struct serves schemas A to M.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from insight_trace.dtypes import DTYPES
from insight_trace.errors import InputError
from insight_trace.limits import cut
from insight_trace.model import ARG_SLOTS, Role, Stage


class _ElementName(enum.StrEnum):
    """Names of element types. The known ones are shared between records; others are kept as they are."""

    @classmethod
    def _missing_(cls, value: object) -> _ElementName | None:
        text = str(value)
        for member in cls:
            if member.value.casefold() == text.casefold():
                return member
        other = str.__new__(cls, text)
        other._name_ = other._value_ = text
        return other


if TYPE_CHECKING:
    ElementName = str
else:
    ElementName = _ElementName("ElementName", {d.name: d.name for d in DTYPES})


class RecordKind(enum.StrEnum):
    """What a record of the unified manifest describes."""

    TENSOR = "tensor"
    SCALAR = "scalar"


Natural = Annotated[int, Meta(ge=0)]
Slot = Annotated[int, Meta(ge=0, lt=ARG_SLOTS)]
# The tensor descriptor that kernels read holds shapes and strides as 32-bit numbers.
Extent = Annotated[int, Meta(ge=0, lt=2**32)]
Offset = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Value = int | float | bool | str | None
Id = int | str


class Record(Struct, gc=False, kw_only=True):
    """One argument at one stage, as the unified manifests and their forerunners list it.

    Fields stand in the order in which the newest writer emits them: the decoder looks for the next key there.
    """

    task_id: Id
    func_id: int | tuple[int, ...] | UnsetType = UNSET
    arg_index: Slot
    role: Role | None = None
    stage: Stage = Stage.BEFORE
    kind: RecordKind = RecordKind.TENSOR  # schemas A to C have no kind and list tensors only
    dtype: ElementName
    value: Value | UnsetType = UNSET
    is_contiguous: Any = None  # not used; a key that is expected is passed over faster than an unknown one
    shape: tuple[Extent, ...] = ()
    strides: tuple[Extent, ...] | UnsetType = UNSET
    start_offset: Offset = 0
    numel: Any = None  # not used
    bin_offset: Offset = 0
    bin_size: Offset = 0
    truncated: bool = False
    overwritten: bool = False
    arg_index_ambiguous: bool = False
    subtask_id: int | UnsetType = UNSET
    raw_shape: tuple[Extent, ...] | UnsetType = UNSET  # schemas A and B: the buffer's shape,
    offsets: tuple[Extent, ...] | UnsetType = UNSET  # and where the view begins in it
    # What our own writer adds so that nothing is lost; other readers skip it.
    dispatch_id: Natural | UnsetType = UNSET
    dispatch: DispatchFacts | UnsetType = UNSET  # on the first record of a dispatch
    bits: Id | UnsetType = UNSET
    exact: bool = True
    scalar_dtype: str | UnsetType = UNSET
    pointer: Id | UnsetType = UNSET
    buffer_size: Natural | UnsetType = UNSET
    name: str = ""


class DispatchFacts(Struct):
    """What our writer notes per dispatch where the unified manifest has no key for it."""

    subtask_id: int | None = None
    core_type: str | None = None
    core_id: int | None = None
    block_idx: int | None = None
    block_count: Annotated[int, Meta(ge=1)] = 1
    kernel: str = ""
    contexts: tuple[KernelContext, ...] = ()
    inferred: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


class EmptyDispatch(DispatchFacts, kw_only=True):
    """A dispatch that has no argument and so no record to hang its facts on."""

    task_id: Id
    dispatch_id: Natural
    func_id: tuple[int, ...] = ()


class PayloadRange(Struct):
    """Where in the .bin file a tensor's recorded bytes lie."""

    offset: Offset
    size: Offset
    truncated: bool = False


class KernelContext(Struct):
    """A context pointer of kernel_args_dump.json."""

    arg_index: Slot
    pointer: Id | None = None
    name: str = ""


class KernelArg(Struct):
    """One argument of kernel_args_dump.json."""

    arg_index: Slot
    kind: str
    dtype: str = "UINT64"
    ndims: Natural | None = None
    shape: tuple[Extent, ...] = ()
    strides: tuple[Extent, ...] | UnsetType = UNSET
    start_offset: Offset = 0
    role: Role | None = None
    pointer: Id | None = None
    value: Value | UnsetType = UNSET
    bits: Id | None = None
    pack_mode: str = ""  # "value" or "bits": what a bare `value` means
    ambiguous: bool = False
    exact: bool = True
    buffer_size: Natural | None = None
    before: PayloadRange | None = None
    after: PayloadRange | None = None
    name: str = ""


class KernelDispatch(Struct):
    """One dispatch of kernel_args_dump.json."""

    task_id: Id
    dispatch_id: Id | None = None
    func_id: int | tuple[int, ...] | None = None
    subtask_id: int | None = None
    core_type: str | None = None
    core_id: int | None = None
    block_idx: int | None = None
    block_count: Annotated[int, Meta(ge=1)] | None = None
    stage: str = Stage.BEFORE.value
    kernel: str = ""
    args: tuple[KernelArg, ...] = ()
    contexts: tuple[KernelContext, ...] = ()
    inferred: tuple[str, ...] = ()
    missing: tuple[str, ...] | None = None  # None: whoever wrote the file did not say


class NotANumberError(InputError, ValueError):
    """Text that stands where a number should."""


def number(text: int | str) -> int:
    """An id or address given as a number or as decimal or hexadecimal text; InputError if neither."""
    if isinstance(text, int):
        return text
    try:
        if len(text) > 40:
            raise ValueError(text)
        return _number(text)
    except ValueError:
        raise NotANumberError(f"{cut(text)} is neither a decimal nor a hexadecimal number") from None


def _number(text: str) -> int:
    return int(text, 16 if text[:2].lower() == "0x" else 10)
