"""Arguments from a dump: what was recorded of a dispatch becomes what its replay starts with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec.structs import replace

from insight_trace.arguments.slots import (
    Content,
    OtherRecord,
    Recorded,
    ReplayArguments,
    ReplayScalar,
    ReplaySlot,
    ReplayTensor,
    Zero,
    geometry_problem,
    make_tensor,
    view_extent,
)
from insight_trace.errors import InputError
from insight_trace.model import Dispatch, Payload, Role, ScalarArg, TensorArg, Tier

NO_SCALARS = "this dump holds no scalars, so the kernel reads 0 for each; --set-arg SLOT=TYPE:VALUE adds one"
# A dispatch and an address: the dispatches with a tensor there, from that one back to the first.
Earlier = Callable[[Dispatch, int], Iterable[Dispatch]]
_ROLES = {"IN": Role.INPUT, "OUT": Role.OUTPUT, "INOUT": Role.INOUT}


def from_dispatch(
    dispatch: Dispatch,
    *,
    signature: Sequence[str] | None = None,
    earlier: Earlier = lambda _dispatch, _pointer: (),
) -> ReplayArguments:
    """The arguments that repeat a recorded dispatch.

    `signature` (the kernel's, by slot) says what a tensor is for where the dump does not. `earlier` (a dump's)
    serves to find a buffer's content in another record. Context pointers are left out: replay builds its own.
    """
    slots: list[ReplaySlot] = []
    notes: list[str] = []
    for argument in dispatch.arguments:
        if isinstance(argument, TensorArg):
            slots.append(_tensor(argument, _role(argument, signature), dispatch, earlier))
        elif isinstance(argument, ScalarArg):
            slots.append(_scalar(argument))
            if argument.ambiguous:
                notes.append(f"slot {argument.slot}: the dump marks this scalar as possibly another slot's")
    if "scalars" in dispatch.missing:
        notes.append(NO_SCALARS)
    present = {argument.slot for argument in dispatch.arguments}
    notes += [
        f"slot {slot}: the kernel declares {kind}, the dump has nothing for it; it is 0 in this replay"
        for slot, kind in enumerate(signature or ())
        if slot not in present
    ]
    arguments = ReplayArguments(tuple(slots), dispatch.block_count, tuple(notes))
    return _with_shared_buffers(arguments, dispatch)


def _role(argument: TensorArg, signature: Sequence[str] | None) -> Role | None:
    if argument.role is not None:
        return argument.role
    if signature is not None and argument.slot < len(signature):
        return _ROLES.get(signature[argument.slot])
    return None


def _scalar(argument: ScalarArg) -> ReplayScalar:
    tier = Tier.EXACT if argument.exact else Tier.RECONSTRUCTED
    origin = "recorded" if argument.exact else "from a printed decimal"
    return ReplayScalar(argument.slot, argument.dtype, argument.bits, tier, argument.name, origin)


def _tensor(argument: TensorArg, role: Role | None, dispatch: Dispatch, earlier: Earlier) -> ReplayTensor:
    where = f"dispatch {dispatch.dispatch_id} (task {dispatch.task_id:#018x}), slot {argument.slot}"
    problem = geometry_problem(argument.dtype, argument.shape, argument.strides, argument.start_offset)
    if problem:
        raise InputError(problem, where=where)
    for payload in (argument.before, argument.after):
        _check_size(argument, payload, where)
    content, tier, origin = _content(argument, role, dispatch, earlier)
    size = argument.buffer_size
    if isinstance(content, OtherRecord):  # its buffer reaches at least as far as that record
        reach = view_extent(content.shape, content.strides, content.start_offset) * content.dtype.size
        size = max(size or 0, reach)
    return make_tensor(
        argument.slot,
        argument.dtype,
        argument.shape,
        content,
        tier,
        strides=argument.strides,
        start_offset=argument.start_offset,
        role=role,
        recorded_size=size,
        expected=argument.after,
        name=argument.name,
        origin=origin,
    )


def _check_size(argument: TensorArg, payload: Payload | None, where: str) -> None:
    if payload is None:
        return
    needed = argument.numel * argument.dtype.size
    if payload.size > needed or (payload.size < needed and not payload.truncated):
        raise InputError(
            f"the payload has {payload.size} bytes, but {argument.dtype.name} {list(argument.shape)} "
            f"has {needed}",
            where=where,
            hint="the dump is damaged; capture it again",
        )


def _content(
    argument: TensorArg, role: Role | None, dispatch: Dispatch, earlier: Earlier
) -> tuple[Content, Tier, str]:
    before = argument.before
    if before is not None and not before.truncated:
        return Recorded(before), Tier.EXACT, "before dispatch"
    other = None if role is Role.OUTPUT else _other_record(argument, dispatch, earlier)
    if other is not None:
        return other[0], Tier.RECONSTRUCTED, other[1]
    if before is not None:
        needed = argument.numel * argument.dtype.size
        return Recorded(before), Tier.SYNTHETIC, f"first {before.size} of {needed} bytes recorded, then zero"
    if role is Role.OUTPUT or (role is None and argument.after is not None):
        return Zero(), Tier.OUTPUT, "output"
    return Zero(), Tier.SYNTHETIC, "zero, no payload recorded"


def _other_record(
    argument: TensorArg, dispatch: Dispatch, earlier: Earlier
) -> tuple[OtherRecord, str] | None:
    """The last complete record of the same bytes before this dispatch ran."""
    if not argument.pointer:
        return None
    for other in earlier(dispatch, argument.pointer):
        here = other.dispatch_id == dispatch.dispatch_id and other.task_id == dispatch.task_id
        for record, payload, stage in reversed([*_records(other, after=not here)]):
            if _covers(record, argument) and not payload.truncated:
                origin = f"from slot {record.slot} of dispatch {other.dispatch_id}, {stage}"
                geometry = (record.dtype, record.shape, record.strides, record.start_offset)
                return OtherRecord(payload, *geometry), origin
    return None


def _records(dispatch: Dispatch, *, after: bool) -> Iterator[tuple[TensorArg, Payload, str]]:
    tensors = [argument for argument in dispatch.arguments if isinstance(argument, TensorArg)]
    for tensor in tensors:
        if tensor.before is not None:
            yield tensor, tensor.before, "before dispatch"
    for tensor in tensors:
        if after and tensor.after is not None:
            yield tensor, tensor.after, "after completion"


def _covers(record: TensorArg, wanted: TensorArg) -> bool:
    if record.pointer != wanted.pointer or record.dtype != wanted.dtype:
        return False
    same = (record.shape, record.strides, record.start_offset)
    if same == (wanted.shape, wanted.strides, wanted.start_offset):
        return True
    dense = record.extent - record.start_offset == record.numel  # no holes between its elements
    return dense and record.start_offset <= wanted.start_offset and wanted.extent <= record.extent


def _with_shared_buffers(arguments: ReplayArguments, dispatch: Dispatch) -> ReplayArguments:
    """Slots that had one address get one buffer, so that a kernel working in place does so again."""
    pointers = {a.slot: a.pointer for a in dispatch.arguments if isinstance(a, TensorArg) and a.pointer}
    owners: dict[int, int] = {}
    sharing = []
    for tensor in arguments.tensors:
        pointer = pointers.get(tensor.slot)
        if pointer is None:
            continue
        owner = owners.setdefault(pointer, tensor.slot)
        if owner != tensor.slot:
            sharing.append(replace(tensor, shares=owner))
    return arguments.replaced(*sharing)
