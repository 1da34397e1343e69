"""What this machine has, and what follows from it.

Each line is one thing that Insight Trace can use, whether it was found, and what to do where it was not.
Only a missing compiler makes the exit code 1: everything else has a way around it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from insight_trace.commands import call, show

if TYPE_CHECKING:
    from insight_trace.doctor import MachinePart

RUNS = "compilers and tools, to see whether they work"  # what --no-run refuses


OPTIONS = """
--ptoas-bin FILE  path  an assembler to look at (else PTOAS_ROOT, PATH)
--json            on    print one JSON object
"""


def run(options: argparse.Namespace) -> int:
    findings: Sequence[MachinePart] = call("doctor", options)
    table = {f.name: {"found": f.found, "value": f.value, "advice": f.advice} for f in findings}
    show(options, lambda: table, lambda: _lines(findings))
    return 0 if all(f.found for f in findings if f.needed) else 1


def _lines(findings: Sequence[MachinePart]) -> Iterator[str]:
    width = max(len(f.name) for f in findings)
    for finding in findings:
        yield f"{'ok ' if finding.found else '-- '} {finding.name:<{width}}  {finding.value}"
        if finding.advice:
            yield f"{'':<{width + 6}}{finding.advice}"
