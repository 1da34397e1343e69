"""Two replays of a dispatch: the first tile op, line and element where their values part.

insight-trace diverge BEFORE AFTER                  a kernel before and after a change, or two chips
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from insight_trace.debug.debug_session import Session
    from insight_trace.debug.divergence import Divergence
    from insight_trace.debug.tile_calls import TileCall

RUNS_KERNELS = True


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", type=Path, metavar="A", help="a workspace of `replay`")
    parser.add_argument("b", type=Path, metavar="B", help="another one")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    from insight_trace.debug.debug_session import open_session
    from insight_trace.debug.divergence import diverge

    a, b = open_session(options.a), open_session(options.b)
    found = diverge(a, b)
    if options.json:
        print(json.dumps(_data(a, b, found), indent=1))
    else:
        print("\n".join(_lines(a, b, found)))
    return 0


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
        return [*lines, "same       every matched tile op has the same result in both"]
    row, col = first.index
    largest = "" if first.largest is None else f", the largest difference {first.largest:.4g}"
    lines += [
        f"first      {_text(a, first.a)} and {_text(b, first.b)}",
        f"           {first.count} elements of its result differ{largest}",
        f"           [{row},{col}]: {first.got[0]:.9g} and {first.got[1]:.9g}",
    ]
    if found.origin is not None:
        mine, theirs = found.origin
        lines.append(f"given      {_text(a, mine)} and {_text(b, theirs)} were given different operands:")
        lines += [f"           {text}" for text in found.given]
    elif found.only_a or found.only_b:
        lines.append(
            "           look at the ops that only one of them has: what they write may be what differs"
        )
    return lines


def _text(session: Session, call: TileCall) -> str:
    file, line = session.place_of(call.first)
    return f"{Path(file).name}:{line} {call.op}"
