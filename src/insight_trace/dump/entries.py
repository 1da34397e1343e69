"""The rows of a dump as people look at it: one argument at one stage; and how rows are selected."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from insight_trace.dtypes import scalar_value
from insight_trace.model import Argument, ContextArg, Dispatch, Payload, Role, ScalarArg, Stage, TensorArg


class Entry(Struct, frozen=True):
    """One argument of one dispatch at one stage."""

    index: int  # among all entries of the dump
    dispatch: Dispatch
    argument: Argument
    stage: Stage

    @property
    def payload(self) -> Payload | None:
        if not isinstance(self.argument, TensorArg):
            return None
        return self.argument.before if self.stage is Stage.BEFORE else self.argument.after

    @property
    def label(self) -> str:
        """Names the entry in messages and file names."""
        return f"dispatch {self.dispatch.dispatch_id} slot {self.argument.slot} {self.stage.value}"


class EntryFilter(Struct, frozen=True):
    """Which entries are meant; None means any."""

    task_id: int | None = None
    func_id: int | None = None
    kernel: str | None = None
    dispatch_id: int | None = None
    stage: Stage | None = None
    role: Role | None = None
    slot: int | None = None
    index: int | None = None

    def has_dispatch(self, dispatch: Dispatch) -> bool:
        return (
            self.task_id in (None, dispatch.task_id)
            and self.has_kernel(dispatch.func_ids, dispatch.kernel)
            and self.dispatch_id in (None, dispatch.dispatch_id)
        )

    def has_kernel(self, func_ids: Sequence[int], name: str) -> bool:
        """Whether the filter leaves dispatches of that kernel, or of a mix with it."""
        folded = name.casefold()
        return (self.func_id is None or self.func_id in func_ids) and (
            self.kernel is None or self.kernel.casefold() in (folded, *folded.split("+"))
        )

    @property
    def names_dispatches(self) -> bool:
        """Whether some dispatches are asked for, not all."""
        return any(
            wanted is not None for wanted in (self.task_id, self.func_id, self.kernel, self.dispatch_id)
        )

    @property
    def selects_entries(self) -> bool:
        """Whether more than the dispatch is asked for."""
        return any(wanted is not None for wanted in (self.stage, self.role, self.slot, self.index))

    def has_entry(self, entry: Entry) -> bool:
        role = entry.argument.role if isinstance(entry.argument, TensorArg) else Role.INPUT
        return (
            self.has_dispatch(entry.dispatch)
            and self.stage in (None, entry.stage)
            and self.role in (None, role)
            and self.slot in (None, entry.argument.slot)
            and self.index in (None, entry.index)
        )

    def __str__(self) -> str:
        parts = {
            "task": None if self.task_id is None else f"0x{self.task_id:016x}",
            "func id": self.func_id,
            "kernel": self.kernel,
            "dispatch": self.dispatch_id,
            "stage": self.stage and self.stage.value,
            "role": self.role and self.role.value,
            "slot": self.slot,
            "index": self.index,
        }
        return ", ".join(f"{name} {value}" for name, value in parts.items() if value is not None)


def stages_of(argument: Argument) -> tuple[Stage, ...]:
    """At which stages an argument is recorded: inputs before, outputs after, both where both were taken."""
    if not isinstance(argument, TensorArg):
        return (Stage.BEFORE,)
    before = argument.before is not None or argument.role in (Role.INPUT, Role.INOUT, None)
    after = argument.after is not None or argument.role in (Role.OUTPUT, Role.INOUT)
    return (Stage.BEFORE,) * before + (Stage.AFTER,) * after


def recorded_bytes_of(dispatch: Dispatch) -> int:
    """How many bytes of payload a dispatch has, before it ran and after."""
    tensors = (argument for argument in dispatch.arguments if isinstance(argument, TensorArg))
    return sum(payload.size for t in tensors for payload in (t.before, t.after) if payload is not None)


def selected(
    dispatches: Iterable[Dispatch], selection: EntryFilter
) -> Iterator[tuple[Dispatch, list[Entry]]]:
    """Each selected dispatch with its selected entries: those before it ran, by slot, then those after."""
    by_entry = selection.selects_entries
    for index, dispatch in _with_first_entry(dispatches, selection):
        if not selection.has_dispatch(dispatch):
            continue
        staged = [(argument, stages_of(argument)) for argument in dispatch.arguments]
        entries = []
        for stage in (Stage.BEFORE, Stage.AFTER):
            for argument, stages in staged:
                if stage in stages:
                    entry = Entry(index, dispatch, argument, stage)
                    index += 1
                    if not by_entry or selection.has_entry(entry):
                        entries.append(entry)
        if entries or not by_entry:
            yield dispatch, entries


def _with_first_entry(
    dispatches: Iterable[Dispatch], selection: EntryFilter
) -> Iterator[tuple[int, Dispatch]]:
    """Dispatches that may be selected, each with the number of its first entry."""
    columns = getattr(dispatches, "columns", None)
    if columns is not None and isinstance(dispatches, Sequence):
        before = columns.entries.cumsum() - columns.entries
        for i in columns.selected(selection).tolist():
            yield int(before[i]), dispatches[i]
        return
    index = 0
    for dispatch in dispatches:
        yield index, dispatch
        index += sum(len(stages_of(argument)) for argument in dispatch.arguments)


LIST_HEADING = f"{'disp':>7}  {'task':<18}  {'func':<8}  {'kernel':<16}  {'blocks':>6}  {'args':>4}  {'payload bytes':>14}"


def dispatch_lines(dispatches: Iterable[Dispatch], selection: EntryFilter) -> Iterator[str]:
    """One aligned row of `dump list` for each selected dispatch."""
    import numpy as np

    columns = getattr(dispatches, "columns", None)
    if columns is None:
        for d in dispatches:
            if selection.has_dispatch(d):
                uncertain = "func_ids" in d.inferred
                yield (
                    f"{d.dispatch_id:>7}  0x{d.task_id:016x}  {_kernel_text(d.func_ids, d.kernel, uncertain)}  "
                    f"{d.block_count:>6}  {len(d.arguments):>4}  {recorded_bytes_of(d):>14,}"
                )
        return
    kernels = [_kernel_text(*kernel) for kernel in zip(columns.func_ids, columns.names, strict=True)]
    found = columns.selected(selection)
    # of a million rows few differ in more than their ids
    rest = np.stack([columns.kernels, columns.blocks, columns.arguments, columns.payload], axis=1)[found]
    kinds, kind_of = np.unique(rest, axis=0, return_inverse=True)
    texts = [
        f"{kernels[kernel]}  {blocks:>6}  {arguments:>4}  {payload:>14,}"
        for kernel, blocks, arguments, payload in kinds.tolist()
    ]
    rows = zip(
        columns.ids[found].tolist(), columns.tasks[found].tolist(), kind_of.ravel().tolist(), strict=True
    )
    for number, task, kind in rows:
        yield f"{number:>7}  0x{task:016x}  {texts[kind]}"


def _kernel_text(func_ids: Sequence[int], name: str, uncertain: bool = False) -> str:
    ids = (",".join(map(str, func_ids)) or "?") + "~" * uncertain
    return f"{ids:<8}  {name or '-':<16}"


def plain_number(value: int | float | bool) -> int | float | bool | str:
    """A number as JSON can hold it: NaN and infinities as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Inf" if value > 0 else "-Inf")
    return value


def dispatch_json(dispatch: Dispatch, arguments: Iterable[Argument] | None = None) -> dict[str, Any]:
    """A dispatch as `dump list --json` prints it."""
    shown = dispatch.arguments if arguments is None else arguments
    return {
        "dispatch_id": dispatch.dispatch_id,
        "task_id": f"0x{dispatch.task_id:016x}",
        "func_ids": list(dispatch.func_ids),
        "kernel": dispatch.kernel,
        "subtask_id": dispatch.subtask_id,
        "core_type": None if dispatch.core_type is None else dispatch.core_type.value,
        "core_id": dispatch.core_id,
        "block_idx": dispatch.block_idx,
        "block_count": dispatch.block_count,
        "stage": dispatch.stage.value,
        "args": [argument_json(argument) for argument in shown],
        "inferred": list(dispatch.inferred),
        "missing": list(dispatch.missing),
    }


def argument_json(argument: Argument) -> dict[str, Any]:
    """An argument as plain JSON data; keys that do not apply to its kind are null."""
    row: dict[str, Any] = {
        "slot": argument.slot,
        "kind": "tensor",
        "name": argument.name,
        "dtype": None,
        "shape": None,
        "strides": None,
        "start_offset": None,
        "role": None,
        "value": None,
        "bits": None,
        "pointer": None,
        "payload": {"before": False, "after": False},
    }
    if isinstance(argument, ContextArg):
        return row | {"kind": "context", "pointer": _hex(argument.pointer)}
    if isinstance(argument, ScalarArg):
        return row | {
            "kind": "scalar",
            "dtype": argument.dtype.name,
            "shape": [],
            "strides": [],
            "role": Role.INPUT.value,
            "value": plain_number(scalar_value(argument.dtype, argument.bits)),
            "bits": f"0x{argument.bits:016x}",
            "exact": argument.exact,
            "ambiguous": argument.ambiguous,
        }
    return row | {
        "dtype": argument.dtype.name,
        "shape": list(argument.shape),
        "strides": list(argument.strides),
        "start_offset": argument.start_offset,
        "role": None if argument.role is None else argument.role.value,
        "pointer": _hex(argument.pointer),
        "payload": {"before": argument.before is not None, "after": argument.after is not None},
        "truncated": any(p is not None and p.truncated for p in (argument.before, argument.after)),
    }


def _hex(number: int | None) -> str | None:
    return None if number is None else f"0x{number:x}"


HEADING = (
    f"{'index':>6}  {'disp':>5}  {'task':<18}  {'func':<6}  {'kernel':<10}  {'stage':<6}  {'role':<6}  "
    f"{'slot':>4}  {'dtype':<6}  {'shape':<18}  content"
)


def entry_line(entry: Entry) -> str:
    """One aligned row of `dump list`."""
    d, a = entry.dispatch, entry.argument
    dtype = shape = ""
    role = "input"
    if isinstance(a, TensorArg):
        dtype, shape = a.dtype.short, "[" + ",".join(map(str, a.shape)) + "]"
        role = "" if a.role is None else a.role.value
        content = "no payload"
        if entry.payload is not None:
            content = f"{entry.payload.size:,} bytes" + (" (truncated)" if entry.payload.truncated else "")
    elif isinstance(a, ScalarArg):
        dtype, content = a.dtype.short, scalar_text(a)
    else:
        role, content = "context", "" if a.pointer is None else f"0x{a.pointer:x}"
    func = ",".join(map(str, d.func_ids)) or "?"
    if "func_ids" in d.inferred:
        func += "~"
    blocks = f"  x{d.block_count} blocks" if d.block_count > 1 else ""
    return (
        f"{entry.index:>6}  {d.dispatch_id:>5}  0x{d.task_id:016x}  {func:<6}  {d.kernel or '-':<10}  "
        f"{entry.stage.name.lower():<6}  {role:<6}  {a.slot:>4}  {dtype:<6}  {shape:<18}  {content}{blocks}"
    )


def scalar_text(scalar: ScalarArg) -> str:
    """A scalar's value and bits, and whether they are certain."""
    value = scalar_value(scalar.dtype, scalar.bits)
    text = f"{value:.9g}" if isinstance(value, float) else str(value)
    certain = "" if scalar.exact else " (bits not certain)"
    return f"{text}  bits 0x{scalar.bits:x}{certain}"
