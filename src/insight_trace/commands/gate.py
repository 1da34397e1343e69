"""Cases against a committed baseline: exact cycles of every kernel, the golden's verdict, what the checker finds.

insight-trace gate BASELINE SCENE::CASE ... --update     makes a baseline, or adds cases to it
insight-trace gate BASELINE                              exit 1 if something is worse than its threshold allows
insight-trace gate BASELINE --update                     takes the figures of now
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

RUNS_KERNELS = True


def prepare(parser: argparse.ArgumentParser) -> None:
    from insight_trace.options import add_executor_options

    parser.add_argument("baseline", type=Path, metavar="BASELINE", help="the committed JSON file")
    parser.add_argument(
        "subjects", nargs="*", metavar="SCENE::CASE", help="cases to look at (default: those of the baseline)"
    )
    parser.add_argument("--update", action="store_true", help="write the figures of now into the baseline")
    parser.add_argument(
        "--threshold", type=float, metavar="R",
        help="how much slower a kernel may be, relative (default: the baseline's, 0.01 in a new one)",
    )  # fmt: skip
    parser.add_argument("--chip", metavar="NAME", help="the chip of cases that are named here")
    add_executor_options(parser)
    parser.add_argument(
        "--junit", type=Path, metavar="F", help="also write a JUnit report (replaced if it is there)"
    )
    parser.add_argument(
        "--sarif", type=Path, metavar="F", help="also write SARIF 2.1.0 (replaced if it is there)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    from insight_trace import gate
    from insight_trace.commands import shown_progress

    with shown_progress() as progress:
        found = gate(
            options.baseline,
            options.subjects,
            update=options.update,
            threshold=options.threshold,
            chip=options.chip,
            jobs=options.jobs,
            cluster=options.cluster,
            junit=options.junit,
            sarif=options.sarif,
            progress=progress,
        )
    if options.json:
        print(json.dumps(found.data(), indent=2))
    else:
        for change in found.changes:
            print(f"{'worse' if change.worse else 'other':<6} {change.case}: {change.text}")
        print(found.summary())
        if options.update:
            print(f"written {options.baseline}")
    return 1 if found.worse and not options.update else 0
