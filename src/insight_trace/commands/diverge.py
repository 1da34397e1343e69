"""Two runs of a dispatch: the first tile op, line and element where their values part.

insight-trace diverge BEFORE AFTER                  a kernel before and after a change, or two chips
insight-trace diverge WORKSPACE --order 3           the same run with cores and pipes in another order
insight-trace diverge WORKSPACE DUMP                a replay, and the tensors that a dump has of its dispatch
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from insight_trace.debug.debug_session import Session
    from insight_trace.debug.divergence import Divergence
    from insight_trace.debug.recorded_tensors import Parted
    from insight_trace.debug.tile_calls import TileCall

RUNS_KERNELS = True


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", type=Path, metavar="A", help="a workspace of `replay`")
    parser.add_argument("b", type=Path, nargs="?", metavar="B", help="another one, or a dump")
    parser.add_argument(
        "--order",
        type=int,
        metavar="N",
        help="instead of B: A in order N of cores and pipes (as in check --perturb)",
    )
    parser.add_argument(
        "--dispatch-id", type=int, metavar="K", help="of the dump; the one that A replays without it"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    from insight_trace.debug.debug_session import open_session
    from insight_trace.debug.divergence import diverge
    from insight_trace.errors import RequestError
    from insight_trace.replay.workspace import RECORD

    if (options.b is None) == (options.order is None):
        raise RequestError("give either a second workspace, a dump, or --order N")
    if options.dispatch_id is not None and (options.b is None or (options.b / RECORD).is_file()):
        raise RequestError("--dispatch-id is for a dump")
    a = open_session(options.a)
    if options.order is not None:
        return _with_order(a, options)
    if not (options.b / RECORD).is_file():
        return _with_dump(a, options)
    b = open_session(options.b)
    found = diverge(a, b)
    if options.json:
        print(json.dumps(_data(a, b, found), indent=1))
    else:
        print("\n".join(_lines(a, b, found)))
    return 0


def _with_order(session: Session, options: argparse.Namespace) -> int:
    from insight_trace.debug.recorded_tensors import against_order

    found = against_order(session, options.order)
    if options.json:
        races = [
            {"category": each.category, "lines": list(each.lines), "message": each.message}
            for each in found.races
        ]
        parted = [_parted_data(session, one) for one in found.parted]
        print(
            json.dumps(
                {"order": options.order, "outputs": found.outputs, "parted": parted, "races": races}, indent=1
            )
        )
        return 0
    print(f"order      {options.order}: {found.outputs} outputs compared")
    print("\n".join(_parted_lines(session, found.parted, f"in order {options.order}")))
    for race in found.races:
        print(f"race       {race.message}")
    if not found.parted:
        print("next       another order may differ: insight-trace check … --perturb 32 tries that many")
    return 0


def _with_dump(session: Session, options: argparse.Namespace) -> int:
    from insight_trace.debug.recorded_tensors import against_dump

    found = against_dump(session, options.b, options.dispatch_id)
    if options.json:
        parted = [_parted_data(session, one) for one in found.parted]
        data = {
            "dispatch": found.dispatch_id,
            "inputs": found.inputs,
            "outputs": found.outputs,
            "parted": parted,
        }
        print(json.dumps(data, indent=1))
        return 0
    print(
        f"dump       dispatch {found.dispatch_id}: {found.inputs} inputs and {found.outputs} outputs compared"
    )
    print("\n".join(_parted_lines(session, found.parted, "in the dump")))
    if found.parted:
        one = found.parted[0]
        print(f"next       insight-trace why {options.a} '{one.slot}[{','.join(map(str, one.index))}]'")
    return 0


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
