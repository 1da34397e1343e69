"""Why a number is what it is: the lines that made it, back to the inputs; or which line made an output wrong.

insight-trace why WORKSPACE 1[3,5]                  an element of an argument, at the end of the run
insight-trace why WORKSPACE 120:dst[3,5]            an element of a tile, after instruction 120
insight-trace why WORKSPACE --first-mismatch        the lines that most likely made outputs differ from the recording
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from insight_trace.debug.debug_session import Session
    from insight_trace.debug.slices import Slice
    from insight_trace.debug.why import Mismatch

RUNS_KERNELS = True


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("workspace", type=Path, metavar="WORKSPACE", help="what `replay` wrote")
    parser.add_argument("element", nargs="?", metavar="SLOT[i,j]", help="or ROW:dst[i,j], ROW:src0[i,j]")
    parser.add_argument(
        "--first-mismatch", action="store_true", help="start at what differs from the recording"
    )
    parser.add_argument(
        "--seconds", type=float, default=20.0, metavar="S", dest="search",
        help="for runs with a line changed, which tell whether that mends it; 0: none (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    from insight_trace.debug.debug_session import open_session
    from insight_trace.debug.why import first_mismatch
    from insight_trace.errors import RequestError

    if (options.element is None) != options.first_mismatch:
        raise RequestError("give either an element, SLOT[i,j], or --first-mismatch")
    session = open_session(options.workspace)
    if options.first_mismatch:
        found = first_mismatch(session, options.search)
        if options.json:
            print(json.dumps(_mismatch_data(session, found), indent=1))
        else:
            _show_mismatch(session, found)
        return 0
    head, slice_ = _element(session, options.element)
    if options.json:
        print(json.dumps(head | _slice_data(session, slice_), indent=1))
    else:
        _show_element(session, head, slice_)
    return 0


def _element(session: Session, text: str) -> tuple[dict[str, Any], Slice]:
    import re

    import numpy as np

    from insight_trace.debug.looks import tile_named
    from insight_trace.debug.mismatch import addresses_in, named_element
    from insight_trace.debug.slices import Backward
    from insight_trace.debug.why import why_element
    from insight_trace.errors import RequestError

    of_tile = re.fullmatch(r"(?P<row>\d+):(?P<tile>dst|src\d+)\[(?P<r>\d+),\s*(?P<c>\d+)\]", text.strip())
    if of_tile is not None:
        moment = session.moment(int(of_tile["row"]))
        tile = tile_named(moment, of_tile["tile"])
        row, col = int(of_tile["r"]), int(of_tile["c"])
        shown = moment.show(tile)
        if row >= shown.values.shape[0] or col >= shown.values.shape[1]:
            raise RequestError(f"element [{row},{col}] lies outside the tile, {list(shown.values.shape)}")
        address = np.array([tile.address + int(tile.offsets()[row, col])], np.int64)
        found = Backward(session).slice(moment.core, tile.memory, address, moment.row + 1)
        return {"element": text, "value": _number(shown.values[row, col])}, found
    tensor, index = named_element(session, text)
    flat = np.array([np.ravel_multi_index(index, tensor.shape) if index else 0], np.int64)
    address = addresses_in(session, tensor, flat)
    last = session.moment(len(session.instructions) - 1)
    raw = last.bytes(0, 10, int(address[0]), int(address[0]) + tensor.dtype.size)
    return {"element": text, "value": _number(raw.view(tensor.dtype.numpy)[0])}, why_element(
        session, tensor, index
    )


def _number(value: Any) -> Any:
    import math

    plain = value.item() if value.dtype.kind in "iufb" else float(value)
    return plain if not isinstance(plain, float) or math.isfinite(plain) else str(plain)


def _slice_data(session: Session, found: Slice) -> dict[str, Any]:
    from insight_trace.debug.chain import chain, link_data

    return {
        "chain": [link_data(link) for link in chain(session, found)],
        "inputs": {str(slot): len(offsets) for slot, offsets in sorted(found.inputs.items())},
        "unwritten": found.unwritten + sum(step.unwritten for step in found.steps.values()),
        "cut": found.cut,
        "remarks": list(session.remarks),
    }


def _show_element(session: Session, head: dict[str, Any], found: Slice) -> None:
    from insight_trace.debug.chain import chain, input_lines, link_lines

    links = chain(session, found)
    print(f"{head['element']} = {head['value']}")
    print("made by" if links else "no instruction wrote it")
    print("\n".join(link_lines(links)))
    came = input_lines(session, found)
    if came:
        print("from\n" + "\n".join(came))
    worst = max((link for link in links if link.error), key=lambda link: link.error or 0.0, default=None)
    if worst is not None:
        print(f"lost most at {Path(worst.file).name}:{worst.line} {worst.op}: {worst.error:.2g}")
    _remarks(session)


def _mismatch_data(session: Session, found: Mismatch) -> dict[str, Any]:
    return {
        "wrong": [
            {"slot": one.tensor.slot, "first": list(one.first), "wrong": len(one.flat), "compared": one.tensor.numel,
             "got": _number(one.got[one.first]), "expected": _number(one.want[one.first]), "tolerated": one.tolerated}
            for one in found.wrong
        ],
        "suspects": [
            {"file": s.file, "line": s.line, "op": s.op, "reasons": list(s.reasons), "mend": s.mend,
             "explained": s.explained, "exact": s.exact}
            for s in found.suspects
        ],
        "runs": found.runs,
    } | _slice_data(session, found.slice)  # fmt: skip


def _show_mismatch(session: Session, found: Mismatch) -> None:
    from insight_trace.debug.chain import chain, input_lines, link_lines

    for one in found.wrong:
        at = ",".join(map(str, one.first))
        within = " (all within the tolerance)" if one.tolerated else ""
        print(
            f"slot {one.tensor.slot}     {len(one.flat):,} of {one.tensor.numel:,} elements differ{within}; first "
            f"[{at}]: {_number(one.got[one.first])}, recorded {_number(one.want[one.first])}"
        )
    print(f"suspects   the most likely first; {found.runs} runs with a line changed")
    for number, suspect in enumerate(found.suspects[:8], 1):
        print(f"  {number}. {Path(suspect.file).name}:{suspect.line}  {suspect.op}")
        if suspect.mend:
            much = (
                "every output is as recorded"
                if suspect.exact
                else f"{suspect.explained:.0%} of the difference goes"
            )
            print(f"       with {suspect.mend}: {much}")
        for reason in suspect.reasons[:4]:
            print(f"       {reason}")
    print("the way back from wrong elements")
    print("\n".join(link_lines(chain(session, found.slice), 12)))
    came = input_lines(session, found.slice)
    if came:
        print("from\n" + "\n".join(came))
    _remarks(session)


def _remarks(session: Session) -> None:
    for remark in session.remarks:
        print(f"note: {remark}", file=sys.stderr)
