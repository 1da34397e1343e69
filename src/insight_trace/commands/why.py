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
from typing import TYPE_CHECKING

from insight_trace.commands import call

if TYPE_CHECKING:
    from insight_trace.debug.debug_session import Session
    from insight_trace.debug.explained import Explained
    from insight_trace.debug.why import Mismatch

RUNS_KERNELS = True


OPTIONS = """
workspace WORKSPACE  path       what `replay` wrote
element SLOT[i,j]    text ?     or ROW:dst[i,j], ROW:src0[i,j]
--first-mismatch     on         start at what differs from the recording
--seconds S -> search  float =20  for runs with a line changed, which tell whether that fixes it; 0: none \
(default: %(default)s)
--json               on         print one JSON object
"""


def run(options: argparse.Namespace) -> int:
    from insight_trace.errors import RequestError

    if (options.element is None) != options.first_mismatch:
        raise RequestError("give either an element, SLOT[i,j], or --first-mismatch")
    found: Explained = call("why", options, seconds=options.search)
    if options.json:
        print(json.dumps(found.data(), indent=1))
    elif found.mismatch is not None:
        _show_mismatch(found.session, found.mismatch)
    else:
        _show_element(found)
    return 0


def _show_element(found: Explained) -> None:
    from insight_trace.debug.chain import chain, input_lines, link_lines

    session = found.session
    links = chain(session, found.slice)
    print(f"{found.element} = {found.value}")
    print("made by" if links else "no instruction wrote it")
    print("\n".join(link_lines(links)))
    came = input_lines(session, found.slice)
    if came:
        print("from\n" + "\n".join(came))
    worst = max((link for link in links if link.error), key=lambda link: link.error or 0.0, default=None)
    if worst is not None:
        print(f"lost most at {Path(worst.file).name}:{worst.line} {worst.op}: {worst.error:.2g}")
    _remarks(session)


def _show_mismatch(session: Session, found: Mismatch) -> None:
    from insight_trace.debug.chain import chain, input_lines, link_lines
    from insight_trace.debug.explained import plain_number

    for one in found.wrong:
        at = ",".join(map(str, one.first))
        within = " (all within the tolerance)" if one.tolerated else ""
        print(
            f"slot {one.tensor.slot}     {len(one.flat):,} of {one.tensor.numel:,} elements differ{within}; first "
            f"[{at}]: {plain_number(one.got[one.first])}, recorded {plain_number(one.want[one.first])}"
        )
    print(f"suspects   the most likely first; {found.runs} runs with a line changed")
    for number, suspect in enumerate(found.suspects[:8], 1):
        print(f"  {number}. {Path(suspect.file).name}:{suspect.line}  {suspect.op}")
        if suspect.fix:
            much = (
                "every output is as recorded"
                if suspect.exact
                else f"{suspect.explained:.0%} of the difference goes"
            )
            print(f"       with {suspect.fix}: {much}")
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
