"""Records of the unified manifests and their forerunners (schemas A to M), put together to dispatches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from msgspec import UNSET, Struct, field
from msgspec.structs import replace

from insight_trace.dtypes import DType, dtype_named
from insight_trace.dump.checks import has_usable_payload
from insight_trace.dump.manifest_records import DispatchFacts, EmptyDispatch, Record, RecordKind, number
from insight_trace.dump.scalars import SLOT_MASK, bits_of_value
from insight_trace.errors import InputError
from insight_trace.model import (
    LOCAL_CONTEXT_SLOT,
    Argument,
    ContextArg,
    CoreType,
    Dispatch,
    Payload,
    Role,
    ScalarArg,
    Stage,
    TensorArg,
)

_CORE_OF_SUBTASK = {0: CoreType.AIC, 1: CoreType.AIV, 2: CoreType.AIV}


class Source(Struct, frozen=True):
    """Where records come from, and what was found wrong with them."""

    path: Path
    key: str
    bin_path: Path | None = None
    bin_bytes: int = 0  # how long that file is
    empty: dict[int, EmptyDispatch] = field(default_factory=dict)  # by dispatch id, from our own writer
    lists_scalars: bool = True  # False: schemas A to C

    def where(self, record: int, key: str) -> str:
        return f"{self.path}, {self.key}[{record}], key {key}"


def group_key(record: Record) -> int | str:
    """What records of one dispatch share: the id our writer gives, else the task."""
    return record.task_id if record.dispatch_id is UNSET else record.dispatch_id


def task_number(task_id: int | str, where: Callable[[], str]) -> int:
    """A task id as a number, from either of its forms."""
    try:
        task = number(task_id)
    except ValueError:
        raise InputError(f"{task_id!r} is not a task id", where=where()) from None
    if not 0 <= task <= SLOT_MASK:
        raise InputError(f"{task_id!r} does not fit into 64 bits", where=where())
    return task


def build(dispatch_id: int, indexed: Sequence[tuple[int, Record]], source: Source) -> Dispatch:
    """One dispatch from its records, each with its place in the manifest."""
    first_index, first = indexed[0]
    task_id = task_number(first.task_id, lambda: source.where(first_index, "task_id"))
    unique, blocks, inferred, missing = _fold_blocks(indexed)
    func_ids = _func_ids([record for _, record in unique])
    subtasks = sorted({r.subtask_id for _, r in unique if r.subtask_id is not UNSET})
    core_type = _core_type(func_ids, subtasks)
    if core_type is not None:
        inferred.append("core_type")
    arguments = _arguments(unique, source, missing)
    if not func_ids:
        missing.append("func_ids")
    if not source.lists_scalars:
        missing.append("scalars")
    if core_type is None:
        missing.append("core_type")
    missing += ["core_id", "block_idx"]
    dispatch = Dispatch(
        dispatch_id=dispatch_id,
        task_id=task_id,
        arguments=arguments,
        func_ids=func_ids,
        subtask_id=subtasks[0] if len(subtasks) == 1 else None,
        core_type=core_type,
        block_count=blocks,
        inferred=tuple(inferred),
        missing=tuple(missing),
    )
    return dispatch if first.dispatch is UNSET else with_facts(dispatch, first.dispatch)


def _fold_blocks(
    indexed: Sequence[tuple[int, Record]],
) -> tuple[list[tuple[int, Record]], int, list[str], list[str]]:
    """Keeps one record of each argument and stage; how often it was repeated is the number of blocks.

    An SPMD task's arguments are recorded once per block before dispatch. Scalars alone do not tell: the
    first unified schema repeats them once per member of a mix as well.
    """
    seen: dict[tuple[Stage, int, object, RecordKind], tuple[int, Record]] = {}
    repeats: Counter[tuple[Stage, int, object, RecordKind]] = Counter()
    for item in indexed:
        r = item[1]
        key = (r.stage, r.arg_index, r.func_id if isinstance(r.func_id, int) else None, r.kind)
        seen.setdefault(key, item)
        repeats[key] += 1
    tensors = [
        n for (stage, _, _, kind), n in repeats.items() if stage is Stage.BEFORE and kind is RecordKind.TENSOR
    ]
    inferred: list[str] = []
    missing: list[str] = []
    blocks = 1
    if tensors:
        blocks = max(tensors)
        if blocks > 1:
            inferred.append("block_count")
    else:
        scalars = [n for (_, _, _, kind), n in repeats.items() if kind is RecordKind.SCALAR]
        one_member = isinstance(indexed[0][1].func_id, tuple) and len(indexed[0][1].func_id) == 1
        if scalars and max(scalars) > 1:
            if one_member:
                blocks = max(scalars)
                inferred.append("block_count")
            else:
                missing.append("block_count")
    return list(seen.values()), blocks, inferred, missing


def _func_ids(records: Sequence[Record]) -> tuple[int, ...]:
    kinds = {r.func_id for r in records}
    if len(kinds) == 1:  # by far the most: nothing to put in order
        only = kinds.pop()
        return tuple(
            i for i in (only if isinstance(only, tuple) else (only,)) if isinstance(i, int) and i >= 0
        )
    lists = [r.func_id for r in records if isinstance(r.func_id, tuple)]
    if lists:
        longest = max(lists, key=len)
        return tuple(i for i in longest if i >= 0)
    ordered = sorted(records, key=lambda r: (0 if r.subtask_id is UNSET else r.subtask_id, r.arg_index))
    return tuple(dict.fromkeys(r.func_id for r in ordered if isinstance(r.func_id, int) and r.func_id >= 0))


def _core_type(func_ids: Sequence[int], subtasks: Sequence[int]) -> CoreType | None:
    if len(func_ids) > 1 or len(subtasks) > 1:
        return CoreType.MIX
    return _CORE_OF_SUBTASK.get(subtasks[0]) if subtasks else None


def _arguments(
    indexed: Iterable[tuple[int, Record]], source: Source, missing: list[str]
) -> tuple[Argument, ...]:
    slots: dict[int, Argument] = {}
    for index, record in indexed:
        slot = record.arg_index
        known = slots.get(slot)
        if slot >= LOCAL_CONTEXT_SLOT:
            slots[slot] = ContextArg(slot, _context_pointer(record), record.name)
        elif record.kind is RecordKind.SCALAR:
            if not isinstance(known, ScalarArg):
                slots[slot] = _scalar(index, record, source, missing)
        else:
            tensor = _tensor(record, source, missing)
            slots[slot] = _joined(known, tensor) if isinstance(known, TensorArg) else tensor
    return tuple(slots[slot] for slot in sorted(slots))


def _context_pointer(record: Record) -> int | None:
    for given in (record.pointer, record.bits, record.value):
        if isinstance(given, (int, str)) and given:
            return number(given)
    return None


def _scalar(index: int, record: Record, source: Source, missing: list[str]) -> ScalarArg:
    name = record.dtype if record.scalar_dtype is UNSET else record.scalar_dtype
    dtype = dtype_named(name) or dtype_named("UINT64")
    assert dtype is not None
    exact = record.exact
    try:
        if record.bits is not UNSET:
            bits = number(record.bits) & SLOT_MASK
        elif record.value is UNSET:
            bits, exact = 0, False
            missing.append(f"slot {record.arg_index} value")
        else:
            bits, certain = bits_of_value(record.value, dtype)
            exact = exact and certain
    except ValueError as error:
        raise InputError(str(error), where=source.where(index, "value")) from None
    return ScalarArg(record.arg_index, dtype, bits, exact, record.arg_index_ambiguous, record.name)


def _tensor(record: Record, source: Source, missing: list[str]) -> TensorArg:
    dtype = dtype_named(record.dtype) or plain_bytes(record)
    strides, start = _geometry(record)
    payload = None
    if record.overwritten:
        missing.append(f"slot {record.arg_index} payload, overwritten")
    elif source.bin_path is not None and has_usable_payload(record, source.bin_bytes):
        payload = Payload(source.bin_path, record.bin_offset, record.bin_size, record.truncated)
    before = payload if record.stage is Stage.BEFORE else None
    after = payload if record.stage is Stage.AFTER else None
    pointer = None if record.pointer is UNSET else number(record.pointer)
    size = None if record.buffer_size is UNSET else record.buffer_size
    return TensorArg(
        record.arg_index,
        dtype,
        record.shape,
        strides,
        start,
        record.role,
        before,
        after,
        pointer,
        size,
        record.name,
    )


def _geometry(record: Record) -> tuple[tuple[int, ...], int]:
    if record.strides is not UNSET:
        return record.strides, record.start_offset
    if record.raw_shape is UNSET:
        return row_major(record.shape), record.start_offset
    strides = row_major(record.raw_shape)
    offsets = record.offsets or ()
    return strides, sum(offset * stride for offset, stride in zip(offsets, strides, strict=True))


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a contiguous tensor, in elements."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    return tuple(strides)


def plain_bytes(record: Record) -> DType:
    """A stand-in for an element type nobody knows: as wide as the payload says, else one byte."""
    numel = 1
    for extent in record.shape:
        numel *= extent
    width = record.bin_size // numel if numel and record.bin_size and not record.truncated else 1
    return DType(record.dtype, 255, max(width, 1), f"V{max(width, 1)}", record.dtype.lower(), "", False)


def _joined(one: TensorArg, other: TensorArg) -> TensorArg:
    """Two records of one slot: two stages of it, or what two members of a mix say about it."""
    roles = {one.role, other.role} - {None}
    role = next(iter(roles)) if len(roles) == 1 else (Role.INOUT if roles else None)
    leading = one if one.before or not other.before else other
    return TensorArg(
        one.slot,
        leading.dtype,
        leading.shape,
        leading.strides,
        leading.start_offset,
        role,
        one.before or other.before,
        one.after or other.after,
        one.pointer if one.pointer is not None else other.pointer,
        one.buffer_size if one.buffer_size is not None else other.buffer_size,
        one.name or other.name,
    )


def bare(empty: EmptyDispatch, source: Source) -> Dispatch:
    """A dispatch that has no arguments at all, contexts apart."""
    task = task_number(empty.task_id, lambda: f"{source.path}, key empty_dispatches")
    ids = tuple(i for i in empty.func_id if i >= 0)
    return with_facts(Dispatch(empty.dispatch_id, task, (), ids), empty)


def with_facts(dispatch: Dispatch, facts: DispatchFacts) -> Dispatch:
    """The dispatch with what our writer noted about it."""
    contexts = tuple(
        ContextArg(c.arg_index, None if c.pointer is None else number(c.pointer), c.name)
        for c in facts.contexts
    )
    taken = {c.slot for c in contexts}
    arguments = tuple(a for a in dispatch.arguments if a.slot not in taken) + contexts
    return replace(
        dispatch,
        arguments=tuple(sorted(arguments, key=lambda a: a.slot)),
        subtask_id=facts.subtask_id,
        core_type=core_type_named(facts.core_type),
        core_id=facts.core_id,
        block_idx=facts.block_idx,
        block_count=facts.block_count,
        kernel=facts.kernel,
        inferred=facts.inferred,
        missing=facts.missing,
    )


def core_type_named(name: str | None) -> CoreType | None:
    """A core type in any case, or None for one that is not known."""
    try:
        return None if name is None else CoreType(name.casefold())
    except ValueError:
        return None
