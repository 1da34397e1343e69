"""What this machine has, and what follows from it.

Each line is one thing that Insight Trace can use, whether it was found, and what to do where it was not.
Only a missing compiler makes the exit code 1: everything else has a way around it.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

RUNS = "compilers and tools, to see whether they work"  # what --no-run refuses


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--ptoas-bin", type=Path, metavar="FILE", help="an assembler to look at (else PTOAS_ROOT, PATH)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    from insight_trace import doctor

    findings = doctor(options.ptoas_bin)
    if options.json:
        table = {f.name: {"found": f.found, "value": f.value, "advice": f.advice} for f in findings}
        print(json.dumps(table, indent=2))
    else:
        width = max(len(f.name) for f in findings)
        for finding in findings:
            mark = "ok " if finding.found else "-- "
            print(f"{mark} {finding.name:<{width}}  {finding.value}")
            if finding.advice:
                print(f"{'':<{width + 6}}{finding.advice}")
    return 0 if all(f.found for f in findings if f.needed) else 1
