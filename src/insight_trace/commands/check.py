"""What is wrong in a kernel, and on which line: races, memory, synchronisation.

insight-trace check SCENE --case C                  every kernel that the case dispatches, once
insight-trace check SCENE --case C --func-id 1 --dump-dir D --dispatch-id 5
insight-trace check WORKSPACE                       the dispatch of an earlier replay
insight-trace check BUILD                           the kernels of a PyPTO build's own run
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from insight_trace.commands import numbers
from insight_trace.commands.replay_text import AS_RECORDED
from insight_trace.options import RunOptions, add_options, options_of

if TYPE_CHECKING:
    from insight_trace.finding import Place
    from insight_trace.replay.examine import Examined

RUNS_KERNELS = True


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scene", type=Path, metavar="SCENE", help="a scene, a PyPTO build, or a workspace")
    parser.add_argument("--case", metavar="C", help="case of the scene (default: its first)")
    parser.add_argument("--func-id", metavar="A[,B,C]", help="one kernel, or the members of a mix")
    parser.add_argument("--kernel", metavar="NAME", help="one kernel by its name")
    parser.add_argument("--dump-dir", type=Path, metavar="D", help="a dump that holds the arguments")
    parser.add_argument("--dispatch-id", type=int, metavar="K", help="the dispatch of the dump")
    parser.add_argument("--arg-spec", type=Path, metavar="F", help="a JSON file of arguments")
    add_options(parser, RunOptions, "target", "platform", "soc_version", "seconds", "orders")
    parser.add_argument(
        "--notes", action="store_true", help="also what is no fault: idle flags, unread writes"
    )
    parser.add_argument(
        "--allow", type=Path, metavar="F", help="a file of lines FILE[:LINE] CATEGORY to allow"
    )
    parser.add_argument("--no-fail", action="store_true", help="exit 0 even if there is an error")
    # what is the default now: scripts that say so go on working
    parser.add_argument("--strict", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--sarif", type=Path, metavar="F", help="also write the findings as SARIF 2.1.0")
    parser.add_argument("--as-recorded", action="store_true", help=AS_RECORDED)
    parser.add_argument("--force", action="store_true", help="replace an existing SARIF file")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    from insight_trace import check
    from insight_trace.replay.workspace import RECORD, source_line

    if (options.scene / RECORD).is_file() and not options.json:
        print(f"source     {source_line(options.scene, current=not options.as_recorded)}")
    found = check(
        options.scene,
        case=options.case,
        func_id=numbers(options.func_id, "--func-id"),
        kernel=options.kernel,
        dump_dir=options.dump_dir,
        dispatch_id=options.dispatch_id,
        arg_spec=options.arg_spec,
        allow=options.allow,
        sarif=options.sarif,
        force=options.force,
        as_recorded=options.as_recorded,
        options=options_of(options, RunOptions),
    )
    if options.json:
        print(json.dumps(found.data(), indent=1))
    else:
        for one in found.examined:
            show_examined(one, options.notes)
        print(found.summary())
    return 1 if found.failed or (found.errors and not options.no_fail) else 0


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
