"""One entry of a dump, in full: a tensor with statistics, a scalar with value and bits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from insight_trace.dump.entries import Entry, argument_json, plain_number, scalar_text
from insight_trace.dump.recorded_bytes import payload_array
from insight_trace.dump.statistics import DIGITS, Statistics, element_text, statistics
from insight_trace.model import ScalarArg, TensorArg


def _statistics(entry: Entry) -> Statistics | None:
    a = entry.argument
    if entry.payload is None or not isinstance(a, TensorArg):
        return None
    return statistics(payload_array(entry.payload, a.dtype, a.shape))


def entry_json(entry: Entry) -> dict[str, Any]:
    """The entry as plain JSON data."""
    d = entry.dispatch
    found = _statistics(entry)
    row: dict[str, Any] | None = None
    if found is not None:
        row = asdict(found)
        for key in ("minimum", "maximum", "mean"):
            row[key] = None if row[key] is None else plain_number(row[key])
        for key in ("first", "last"):
            row[key] = [v if isinstance(v, str) else plain_number(v) for v in row[key]]
    return {
        "index": entry.index,
        "dispatch_id": d.dispatch_id,
        "task_id": f"0x{d.task_id:016x}",
        "func_ids": list(d.func_ids),
        "kernel": d.kernel,
        "stage": entry.stage.value,
        **argument_json(entry.argument),
        "statistics": row,
    }


def entry_lines(entry: Entry) -> Iterator[str]:
    """The entry as aligned lines."""
    d, a = entry.dispatch, entry.argument
    func = ",".join(map(str, d.func_ids)) or "not recorded"
    inferred = " (inferred)" if "func_ids" in d.inferred else ""
    yield (
        f"dispatch {d.dispatch_id} · task 0x{d.task_id:016x} · {d.kernel or 'kernel not known'} · "
        f"func {func}{inferred} · slot {a.slot} · {entry.stage.value}"
    )
    if isinstance(a, ScalarArg):
        yield f"  scalar    {a.dtype.short}  {scalar_text(a)}"
    elif isinstance(a, TensorArg):
        role = "role not recorded" if a.role is None else a.role.value
        where = f" start {a.start_offset}" if a.start_offset else ""
        yield f"  tensor    {a.dtype.short} {list(a.shape)} strides {list(a.strides)}{where} · {role}"
        found = _statistics(entry)
        yield from ["  content   not recorded"] if found is None else _statistics_lines(found, entry, a)
    else:
        pointer = "not recorded" if a.pointer is None else f"0x{a.pointer:x}"
        yield f"  context   {pointer}; a replay builds its own"
    yield ""


def _statistics_lines(found: Statistics, entry: Entry, tensor: TensorArg) -> Iterator[str]:
    digits = DIGITS.get(tensor.dtype.name, 6)
    if entry.payload is not None and entry.payload.truncated:
        yield f"  truncated {found.count:,} of {tensor.numel:,} elements were recorded"
    if found.minimum is not None and found.maximum is not None and found.mean is not None:
        low, high = element_text(found.minimum, digits), element_text(found.maximum, digits)
        yield f"  range     min {low}  max {high}  mean {found.mean:.6g}"
    if found.nan or found.infinite:
        yield f"  not finite  {found.nan:,} NaN, {found.infinite:,} Inf of {found.count:,}"
    first = " ".join(element_text(v, digits) for v in found.first)
    last = " ".join(element_text(v, digits) for v in found.last)
    yield f"  first     {first}"
    if last:
        yield f"  last      {last}"
