"""kernel_args_dump.json: one entry per dispatch, arguments in the layout that kernel_entry(args) reads."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

from msgspec import UNSET

from insight_trace.dtypes import DType, dtype_named
from insight_trace.dump.dispatches import core_type_named, row_major, task_number
from insight_trace.dump.manifest_records import KernelArg, KernelContext, KernelDispatch, PayloadRange, number
from insight_trace.dump.scalars import SLOT_MASK, bits_of_value
from insight_trace.errors import InputError
from insight_trace.model import (
    LOCAL_CONTEXT_SLOT,
    MAX_TENSOR_DIMS,
    Argument,
    ContextArg,
    Dispatch,
    Payload,
    ScalarArg,
    Stage,
    TensorArg,
)

Where = Callable[[str], str]  # the place of a key, for messages


class KernelArgsSource:
    """The file that the entries come from and the payload they point into."""

    def __init__(self, path: Path, bin_path: Path | None) -> None:
        self.path = path
        self.bin_path = bin_path
        self.bin_size = bin_path.stat().st_size if bin_path is not None else 0
        self.warnings: list[str] = []

    def where(self, index: int, key: str) -> str:
        return f"{self.path}, dispatches[{index}], key {key}"

    def where_in_arg(self, index: int, arg: int, key: str) -> str:
        return self.where(index, f"args[{arg}].{key}")


def build_kernel_dispatch(index: int, entry: KernelDispatch, source: KernelArgsSource) -> Dispatch:
    """One dispatch from its entry, checked."""
    if entry.stage != Stage.BEFORE.value:
        raise InputError(
            f"stage is {entry.stage!r}; arguments are recorded at {Stage.BEFORE.value}",
            where=source.where(index, "stage"),
        )
    dispatch_id = index
    if entry.dispatch_id is not None:
        dispatch_id = task_number(entry.dispatch_id, lambda: source.where(index, "dispatch_id"))
    slots: dict[int, Argument] = {}
    missing: list[str] = []
    for place, arg in enumerate(entry.args):
        if arg.arg_index in slots:
            raise InputError(
                f"slot {arg.arg_index} is there twice", where=source.where(index, f"args[{place}].arg_index")
            )
        slots[arg.arg_index] = _argument(arg, partial(source.where_in_arg, index, place), source, missing)
    for context in entry.contexts:
        slots[context.arg_index] = _context(context)
    func_ids = (entry.func_id,) if isinstance(entry.func_id, int) else entry.func_id or ()
    func_ids = tuple(i for i in func_ids if i >= 0)
    for name, value in (
        ("func_ids", func_ids or None),
        ("core_type", entry.core_type),
        ("core_id", entry.core_id),
        ("block_idx", entry.block_idx),
    ):
        if value is None:
            missing.append(name)
    return Dispatch(
        dispatch_id=dispatch_id,
        task_id=task_number(entry.task_id, lambda: source.where(index, "task_id")),
        arguments=tuple(slots[slot] for slot in sorted(slots)),
        func_ids=func_ids,
        subtask_id=entry.subtask_id,
        core_type=core_type_named(entry.core_type),
        core_id=entry.core_id,
        block_idx=entry.block_idx,
        block_count=entry.block_count or 1,
        kernel=entry.kernel,
        inferred=entry.inferred,
        missing=tuple(missing) if entry.missing is None else entry.missing,
    )


def _context(context: KernelContext) -> ContextArg:
    pointer = None if context.pointer is None else number(context.pointer)
    return ContextArg(context.arg_index, pointer, context.name)


def _argument(arg: KernelArg, where: Where, source: KernelArgsSource, missing: list[str]) -> Argument:
    kind = arg.kind.casefold()
    try:
        pointer = None if arg.pointer is None else number(arg.pointer)
    except ValueError:
        raise InputError(f"{arg.pointer!r} is not an address", where=where("pointer")) from None
    if "context" in kind or arg.arg_index >= LOCAL_CONTEXT_SLOT:
        return ContextArg(arg.arg_index, pointer, arg.name)
    if kind == "scalar":
        return _scalar(arg, where, missing)
    if kind == "tensor":
        return _tensor(arg, pointer, where, source)
    raise InputError(f"{arg.kind!r} is neither tensor, scalar nor context", where=where("kind"))


def _scalar(arg: KernelArg, where: Where, missing: list[str]) -> ScalarArg:
    dtype = dtype_named(arg.dtype)
    if dtype is None:
        raise InputError(f"dtype {arg.dtype!r} is not known", where=where("dtype"))
    raw = arg.pack_mode.casefold() == "bits" or arg.dtype.casefold().endswith("_bits")
    exact = arg.exact
    try:
        if arg.bits is not None:
            bits = number(arg.bits)
            if not 0 <= bits <= SLOT_MASK:
                raise ValueError(f"{arg.bits!r} does not fit into a slot of 64 bits")
        elif arg.value is UNSET:
            bits, exact = 0, False
            missing.append(f"slot {arg.arg_index} value")
        elif raw and isinstance(arg.value, (int, str)) and not isinstance(arg.value, bool):
            bits = number(arg.value) & SLOT_MASK
        else:
            # In this file a number is the value itself: 3 for a float means 3.0.
            value = arg.value
            if dtype.is_float and isinstance(value, int) and not isinstance(value, bool):
                value = float(value)
            bits, certain = bits_of_value(value, dtype)
            exact = exact and certain
    except (ValueError, OverflowError) as error:
        raise InputError(str(error), where=where("value")) from None
    return ScalarArg(arg.arg_index, dtype, bits, exact, arg.ambiguous, arg.name)


def _tensor(arg: KernelArg, pointer: int | None, where: Where, source: KernelArgsSource) -> TensorArg:
    strides = row_major(arg.shape) if arg.strides is UNSET else arg.strides
    if len(arg.shape) > MAX_TENSOR_DIMS or (arg.ndims is not None and arg.ndims != len(arg.shape)):
        raise InputError(
            f"{len(arg.shape)} extents for ndims {arg.ndims}; at most {MAX_TENSOR_DIMS} fit",
            where=where("shape"),
        )
    if len(strides) != len(arg.shape):
        raise InputError(f"{len(strides)} strides for {len(arg.shape)} dimensions", where=where("strides"))
    numel = math.prod(arg.shape)
    dtype = dtype_named(arg.dtype)
    if dtype is None:
        source.warnings.append(
            f"{where('dtype')}: {arg.dtype!r} is not known: the tensor is kept as plain bytes"
        )
        held = arg.before or arg.after
        width = held.size // numel if held and numel and not held.truncated else 1
        dtype = DType(arg.dtype, 255, max(width, 1), f"V{max(width, 1)}", arg.dtype.lower(), "", False)
    if numel * dtype.size > 2**63 - 1:
        raise InputError(
            f"the product of {list(arg.shape)} is more bytes than a machine can address", where=where("shape")
        )
    expected = numel * dtype.size
    return TensorArg(
        arg.arg_index,
        dtype,
        arg.shape,
        strides,
        arg.start_offset,
        arg.role,
        _payload(arg.before, expected, "before", where, source),
        _payload(arg.after, expected, "after", where, source),
        pointer,
        arg.buffer_size,
        arg.name,
    )


def _payload(
    span: PayloadRange | None, expected: int, key: str, where: Where, source: KernelArgsSource
) -> Payload | None:
    if span is None or span.size == 0 or source.bin_path is None:
        return None
    if span.offset + span.size > source.bin_size:
        source.warnings.append(
            f"{where(key)}: its bytes lie outside the payload file: this payload is left aside"
        )
        return None
    if (span.size >= expected) if span.truncated else (span.size != expected):
        source.warnings.append(
            f"{where(key)}: {span.size} bytes of payload for a tensor of {expected}: it is left aside"
        )
        return None
    return Payload(source.bin_path, span.offset, span.size, span.truncated)
