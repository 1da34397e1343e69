"""Where the values of two runs part, as people and as scripts read it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from insight_trace.debug.debug_session import Session, open_session
from insight_trace.debug.divergence import Divergence, diverge
from insight_trace.debug.recorded_tensors import (
    AgainstDump,
    AgainstOrder,
    Parted,
    against_dump,
    against_order,
)
from insight_trace.debug.tile_calls import TileCall
from insight_trace.errors import RequestError
from insight_trace.replay.workspace import RECORD
from insight_trace.results import Result


@dataclass(frozen=True, eq=False, repr=False)
class DivergeResult(Result):
    """A replay against another one, against a dump, or against itself in another order."""

    workspace: Path
    a: Session
    found: Divergence | AgainstDump | AgainstOrder
    b: Session | None = None  # the other replay
    order: int | None = None

    @property
    def same(self) -> bool:
        return self.found.first is None if isinstance(self.found, Divergence) else not self.found.parted

    def summary(self) -> str:
        return "the values are the same" if self.same else " ".join(self.lines()[1].split())

    def data(self) -> dict[str, Any]:
        found = self.found
        if isinstance(found, Divergence):
            assert self.b is not None
            return _data(self.a, self.b, found)
        parted = [_parted_data(self.a, one) for one in found.parted]
        if isinstance(found, AgainstDump):
            counts = {"dispatch": found.dispatch_id, "inputs": found.inputs, "outputs": found.outputs}
            return {**counts, "parted": parted}
        races = [
            {"category": each.category, "lines": list(each.lines), "message": each.message}
            for each in found.races
        ]
        return {"order": self.order, "outputs": found.outputs, "parted": parted, "races": races}

    def lines(self) -> list[str]:
        found = self.found
        if isinstance(found, Divergence):
            assert self.b is not None
            return _lines(self.a, self.b, found)
        if isinstance(found, AgainstDump):
            counts = f"{found.inputs} inputs and {found.outputs} outputs compared"
            lines = [f"dump       dispatch {found.dispatch_id}: {counts}"]
            lines += _parted_lines(self.a, found.parted, "in the dump")
            for one in found.parted[:1]:
                at = ",".join(map(str, one.index))
                lines.append(f"next       insight-trace why {self.workspace} '{one.slot}[{at}]'")
            return lines
        lines = [f"order      {self.order}: {found.outputs} outputs compared"]
        lines += _parted_lines(self.a, found.parted, f"in order {self.order}")
        lines += [f"race       {race.message}" for race in found.races]
        if not found.parted:
            lines.append(
                "next       another order may differ: insight-trace check … --perturb 32 tries that many"
            )
        return lines


def compare_values(a: Path, b: Path | None, order: int | None, dispatch_id: int | None) -> DivergeResult:
    """A workspace against another one, against a dump, or against its own run in another order."""
    if (b is None) == (order is None):
        raise RequestError(
            "give either a second workspace, a dump, or --order N",
            hint="insight-trace diverge WORKSPACE OTHER, or insight-trace diverge WORKSPACE --order 1",
        )
    if dispatch_id is not None and (b is None or (b / RECORD).is_file()):
        raise RequestError("--dispatch-id is for a dump")
    first = open_session(a)
    if order is not None:
        return DivergeResult(a, first, against_order(first, order), order=order)
    assert b is not None
    if not (b / RECORD).is_file():
        return DivergeResult(a, first, against_dump(first, b, dispatch_id))
    second = open_session(b)
    return DivergeResult(a, first, diverge(first, second), second)


def _parted_data(session: Session, one: Parted) -> dict[str, Any]:
    return {
        "slot": one.slot, "input": one.is_input, "differ": one.count, "element": list(one.index),
        "values": [str(value) for value in one.values], "stored_by": _store(session, one.row),
    }  # fmt: skip


def _parted_lines(session: Session, parted: Sequence[Parted], there: str) -> list[str]:
    lines = [] if parted else [f"same       every element is what it is {there}"]
    for number, one in enumerate(parted):
        at = ",".join(map(str, one.index))
        store = _store(session, one.row)
        where = "before the run" if one.is_input else "written by nobody"
        if store is not None:
            where = f"stored by {Path(store['file']).name}:{store['line']} {store['op']}"
        values = f"{one.values[0]} and {one.values[1]} {there}"
        name = "" if number else "first"
        lines.append(f"{name:<10} slot {one.slot}[{at}]: {values}, {where}; {one.count:,} elements differ")
    return lines


def _store(session: Session, row: int) -> dict[str, Any] | None:
    if row < 0:
        return None
    file, line = session.place_of(row)
    call = session.call_of(row)
    names = session.instructions.names
    op = session.op_name(call) if call is not None else names[session.instructions.name[row]]
    return {"file": file, "line": line, "op": op, "row": row}


def _place(session: Session, call: TileCall) -> dict[str, Any]:
    file, line = session.place_of(call.first)
    return {"file": file, "line": line, "op": call.op, "row": call.first, "call": call.number}


def _data(a: Session, b: Session, found: Divergence) -> dict[str, Any]:
    first, origin = found.first, found.origin
    return {
        "matched": found.matched,
        "only_a": len(found.only_a),
        "only_b": len(found.only_b),
        "first": first
        and {
            "a": _place(a, first.a),
            "b": _place(b, first.b),
            "operand": first.operand,
            "element": list(first.index),
            "differ": first.count,
            "values": [str(value) for value in first.got],
            "largest": first.largest,
        },
        "origin": origin
        and {"a": _place(a, origin[0]), "b": _place(b, origin[1]), "given": list(found.given)},
    }


def _lines(a: Session, b: Session, found: Divergence) -> list[str]:
    lines = [
        f"matched    {found.matched} tile ops; {len(found.only_a)} only in the first, {len(found.only_b)} only in the "
        "second"
    ]
    first = found.first
    if first is None:
        return [*lines, "same       every matched tile op has the same result in both", *_given(a, b, found)]
    row, col = first.index
    largest = "" if first.largest is None else f", the largest difference {first.largest:.4g}"
    lines += [
        f"first      {_text(a, first.a)} and {_text(b, first.b)}",
        f"           {first.count} elements of its result differ{largest}",
        f"           [{row},{col}]: {first.got[0]:.9g} and {first.got[1]:.9g}",
    ]
    lines += _given(a, b, found)
    if found.origin is None and (found.only_a or found.only_b):
        lines.append(
            "           look at the ops that only one of them has: what they write may be what differs"
        )
    return lines


def _given(a: Session, b: Session, found: Divergence) -> list[str]:
    if found.origin is None:
        return []
    mine, theirs = found.origin
    if mine.op != theirs.op:
        line = a.place_of(mine.first)[1]
        other = b.place_of(theirs.first)[1]
        where = f"line {line}" if line == other else f"line {line} of A and line {other} of B"
        return [f"because    {where}: {found.given[0]}", *(f"           {text}" for text in found.given[1:])]
    head = f"given      {_text(a, mine)} and {_text(b, theirs)} were given different operands:"
    return [head, *(f"           {text}" for text in found.given)]


def _text(session: Session, call: TileCall) -> str:
    file, line = session.place_of(call.first)
    return f"{Path(file).name}:{line} {call.op}"
