"""What is wrong in a kernel, and on which line: races, memory, synchronisation.

insight-trace check SCENE --case C                  every kernel that the case dispatches, once
insight-trace check SCENE --case C --func-id 1 --dump-dir D --dispatch-id 5
insight-trace check WORKSPACE                       the dispatch of an earlier replay
insight-trace check BUILD                           the kernels of a PyPTO build's own run
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from insight_trace.commands import call, numbers, show
from insight_trace.commands.replay_text import show_source

if TYPE_CHECKING:
    from insight_trace.finding import Place
    from insight_trace.replay.examine import CheckResult, Examined

RUNS_KERNELS = True


OPTIONS = """
scene SCENE        path  a scene, a PyPTO build, or a workspace
--case C           text  case of the scene (default: its first)
--func-id A[,B,C]  text  one kernel, or the members of a mix
--kernel NAME      text  one kernel by its name
--dump-dir D       path  a dump that holds the arguments
--dispatch-id K    int   the dispatch of the dump
--arg-spec F       path  a JSON file of arguments
@ target platform soc_version seconds orders
--notes            on    also what is no fault: idle flags, unread writes
--allow F          path  a file of lines FILE[:LINE] CATEGORY to allow
--no-fail          on    exit 0 even if there is an error
--strict           on    -
--sarif F          path  also write the findings as SARIF 2.1.0
--as-recorded      on    of a workspace: the text that it holds, where its kernel has changed since
--force            on    replace an existing SARIF file
--json             on    print one JSON object
"""


def run(options: argparse.Namespace) -> int:
    show_source(options, options.scene)
    found: CheckResult = call("check", options, func_id=numbers(options.func_id, "--func-id"))
    if not options.json:
        for one in found.examined:
            show_examined(one, options.notes)
    show(options, found.data, lambda: [found.summary()])
    return 1 if not found.examined or found.failed or (found.errors and not options.no_fail) else 0


def show_examined(one: Examined, notes: bool) -> None:
    """Prints what was found in one kernel or mix."""
    from insight_trace.finding import Severity, finding_lines

    names = " + ".join(one.kernels)
    shown = [finding for finding in one.findings if notes or finding.severity is not Severity.NOTE]
    hidden = len(one.findings) - len(shown)
    more = f" · {hidden} notes (--notes)" if hidden else ""
    count = f"{len(shown)} {'finding' if len(shown) == 1 else 'findings'}"
    print(f"{names}: {count}{more}" if shown or hidden else f"{names}: nothing to remark")
    for finding in shown:
        places = " and ".join(map(_place_text, finding.places))
        print("\n".join(finding_lines(finding, "  ")) + (f"\n    {places}" if places else ""))
    for allowance in one.unused:
        print(f"  note: {allowance.where} allows {allowance.category}, which does not occur")
    if one.failure is not None:
        print(f"  did not run to its end: {one.failure}", file=sys.stderr)


def _place_text(place: Place) -> str:
    generated = f"{Path(place.file).name}:{place.line}"
    return f"{place.python} ({generated})" if place.python else generated
