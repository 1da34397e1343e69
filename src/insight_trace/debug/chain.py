"""The way back as a person reads it: steps folded to lines, with values, errors and where NaN was born."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from insight_trace.debug.op_double import double_result
from insight_trace.debug.slices import Slice, SliceStep
from insight_trace.debug.suspects import ROUND_MODES
from insight_trace.debug.tile_calls import TileCall
from insight_trace.debug.tile_layout import Tile, as_double, is_number, type_name
from insight_trace.recording.operands import MEMORIES

if TYPE_CHECKING:
    from insight_trace.debug.debug_session import Session

_MOST_VALUES = 200  # steps whose values are looked up


@dataclass(frozen=True, slots=True)
class Link:
    """One line on the way back: what it made of what."""

    file: str
    line: int
    op: str
    row: int  # its last instruction on the way
    times: int  # executions on the way
    elements: int  # that it made on the way
    result: str  # where the element lies, and what it is
    value: float | None
    sources: tuple[str, ...]
    unwritten: int
    error: float | None  # that it introduced: its own rounding, on its actual inputs
    born: str = ""  # NaN or Inf, where none of its inputs has one


def chain(session: Session, found: Slice) -> list[Link]:
    """The lines of a slice, the latest first; executions of one line that follow each other are one link."""
    links: list[Link] = []
    groups: list[list[SliceStep]] = []
    for step in found.steps.values():
        if groups and _site(session, groups[-1][0]) == _site(session, step):
            groups[-1].append(step)
        else:
            groups.append([step])
    for group in groups[:_MOST_VALUES]:
        links.append(_link(session, group))
    return links


def _site(session: Session, step: SliceStep) -> tuple[str, int, str]:
    name = step.call.op if step.call else session.instructions.names[session.instructions.name[step.row]]
    return (*session.place_of(step.row), name)


def _link(session: Session, group: list[SliceStep]) -> Link:
    step = group[0]
    file, line, op = _site(session, step)
    common: dict[str, Any] = {
        "file": file, "line": line, "op": op, "row": step.row, "times": len(group),
        "elements": sum(each.elements for each in group), "unwritten": sum(each.unwritten for each in group),
    }  # fmt: skip
    if step.call is None or not step.made:
        return Link(**common, result="", value=None, sources=(), error=None)
    made, elements = next(iter(step.made.items()))
    tile = step.call.operands[made]
    assert isinstance(tile, Tile)
    width = tile.offsets().shape[1]
    index = int(elements[0]) // width, int(elements[0]) % width
    values = as_double(session.moment(step.call.last).show(tile, step.call.core).values)
    value = float(values[index]) if is_number(tile.type) else None
    given = {}
    texts = []
    for operand, part in step.read.items():
        source = step.call.operands[operand]
        assert isinstance(source, Tile)
        held = as_double(session.moment(step.call.first - 1).show(source, step.call.core).values)
        inside = (part.row < held.shape[0]) & (part.col < held.shape[1])
        given[operand] = held[part.row[inside], part.col[inside]]
        texts.append(_source_text(source, part, given[operand]))
    texts += [f"the number {number.text}" for _, number in step.call.numbers if number.type >= 0]
    if op == "TCVT":
        modes = [n.value for _, n in step.call.numbers if n.type < 0]
        texts += [f"rounding by {ROUND_MODES[int(mode) % len(ROUND_MODES)]}" for mode in modes[:1]]
    error = _introduced(session, step.call, made, index, value)
    born = ""
    if value is not None and not np.isfinite(value) and all(np.isfinite(v).all() for v in given.values()):
        born = "NaN" if np.isnan(value) else "Inf"
    where = f"{MEMORIES[tile.memory]} 0x{tile.address:x} {type_name(tile.type)} [{index[0]},{index[1]}]"
    return Link(**common, result=where, value=value, sources=tuple(texts), error=error, born=born)


def _source_text(tile: Tile, part: Any, values: Any) -> str:
    where = f"{MEMORIES[tile.memory]} 0x{tile.address:x} {type_name(tile.type)}"
    if len(values) == 1:
        return f"{where} [{int(part.row[0])},{int(part.col[0])}] = {values[0]:.7g}"
    if not len(values):
        return where
    finite = values[np.isfinite(values)]
    spread = f"{finite.min():.4g} to {finite.max():.4g}" if len(finite) else "none of them finite"
    return f"{where} {len(values)} elements, {spread}"


def _introduced(
    session: Session, call: TileCall, number: int, index: tuple[int, int], value: float | None
) -> float | None:
    if number != 0 or value is None:
        return None
    before = session.moment(call.first - 1)

    def values(operand: int) -> Any:
        tile = call.operands[operand]
        assert isinstance(tile, Tile)
        return as_double(before.show(tile, call.core).values)

    exact = double_result(call, values)
    if exact is None or index[0] >= exact.shape[0] or index[1] >= exact.shape[1]:
        return None
    wanted = float(exact[index])
    return abs(value - wanted) if np.isfinite(wanted) and np.isfinite(value) else None


def link_data(link: Link) -> dict[str, Any]:
    """A link for JSON; numbers that JSON has no form for are texts."""
    value = link.value if link.value is None or np.isfinite(link.value) else str(link.value)
    return {
        "file": link.file, "line": link.line, "op": link.op, "row": link.row, "times": link.times,
        "elements": link.elements, "result": link.result, "value": value, "sources": list(link.sources),
        "unwritten": link.unwritten, "introduced_error": link.error, "born": link.born,
    }  # fmt: skip


def link_lines(links: list[Link], most: int = 40) -> list[str]:
    """Two lines for each link: what was made where, and of what."""
    lines = []
    for link in links[:most]:
        times = f" x {link.times}" if link.times > 1 else ""
        value = "" if link.value is None else f" = {link.value:.7g}"
        error = f" · its own rounding {link.error:.2g}" if link.error else ""
        born = f" · {link.born} is born here" if link.born else ""
        lines.append(
            f"  {Path(link.file).name}:{link.line}  {link.op}{times}  {link.result}{value}{error}{born}"
        )
        lines += [f"      from {text}" for text in link.sources]
        if link.unwritten:
            lines.append(f"      reads {link.unwritten} elements that nobody wrote")
    if len(links) > most:
        lines.append(f"  and {len(links) - most} lines before that (--json has them all)")
    return lines


def input_lines(session: Session, found: Slice) -> list[str]:
    """Where it all came from."""
    lines = []
    arguments = {item["slot"]: item for item in session.recording.arguments}
    for slot, offsets in sorted(found.inputs.items()):
        tier = arguments.get(slot, {}).get("tier", "")
        lines.append(f"  slot {slot}: {len(offsets)} elements, {tier}")
    if found.unwritten:
        lines.append(f"  {found.unwritten} elements that nobody wrote")
    return lines
