"""The slot table that people read before a run."""

from __future__ import annotations

from msgspec import Struct

from insight_trace.arguments.slots import ReplayArguments, ReplayScalar, ReplaySlot
from insight_trace.model import Tier


class SlotRow(Struct, frozen=True):
    """One line of the table, each cell as it is printed."""

    slot: int
    kind: str
    dtype: str
    shape: str
    value: str
    content: str
    name: str


def slot_rows(arguments: ReplayArguments) -> tuple[SlotRow, ...]:
    return tuple(_row(item) for item in arguments.slots)


def slot_table(arguments: ReplayArguments) -> list[str]:
    """The table's lines, aligned, heading first."""
    heading = ("slot", "kind", "dtype", "shape", "value", "content")
    cells = [heading] + [
        (str(r.slot), r.kind, r.dtype, r.shape, r.value, r.content) for r in slot_rows(arguments)
    ]
    widths = [max(len(row[column]) for row in cells) for column in range(len(heading))]
    lines = []
    for row in cells:
        first, *rest = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        lines.append("  ".join([first.strip().rjust(widths[0]), *rest]).rstrip())
    return lines


def _row(item: ReplaySlot) -> SlotRow:
    if isinstance(item, ReplayScalar):
        content = f"{_content(item)}, bits {item.bits:#x}"
        return SlotRow(item.slot, "scalar", item.dtype.short, "", _number(item.value), content, item.name)
    shape = "[" + ",".join(map(str, item.shape)) + "]"
    if not item.is_contiguous:
        shape += " strides [" + ",".join(map(str, item.strides)) + "]"
    if item.start_offset:
        shape += f" at {item.start_offset}"
    return SlotRow(item.slot, "tensor", item.dtype.short, shape, "", _content(item), item.name)


def _content(item: ReplaySlot) -> str:
    if item.tier is Tier.OUTPUT or not item.origin:
        return item.tier.value
    return f"{item.tier.value}, {item.origin}"


def _number(value: int | float | bool) -> str:
    if isinstance(value, float):
        return f"{value:.9g}"
    return str(value).lower()
