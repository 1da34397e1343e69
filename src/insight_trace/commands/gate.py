"""Cases against a committed baseline: exact cycles of every kernel, the golden's verdict, what the checker finds.

insight-trace gate BASELINE SCENE::CASE ... --update     makes a baseline, or adds cases to it
insight-trace gate BASELINE                              exit 1 if something is worse than its threshold allows
insight-trace gate BASELINE --update                     takes the figures of now
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from insight_trace.commands import call, show

if TYPE_CHECKING:
    from insight_trace.run.baseline import GateResult

RUNS_KERNELS = True


OPTIONS = """
baseline BASELINE     path    the committed JSON file
subjects SCENE::CASE  text *  cases to look at (default: those of the baseline)
--update              on      write the figures of now into the baseline
--threshold R         float   how much slower a kernel may be, relative (default: the baseline's, 0.01 in a new one)
--chip NAME           text    the chip of cases that are named here
@ jobs
--junit F             path    also write a JUnit report (replaces an earlier one)
--sarif F             path    also write SARIF 2.1.0 (replaces an earlier one)
--json                on      print one JSON object
"""


def run(options: argparse.Namespace) -> int:
    found: GateResult = call("gate", options)
    lines = [f"{'worse' if one.worse else 'other':<6} {one.case}: {one.text}" for one in found.changes]
    written = [f"written {options.baseline}"] if options.update else []
    show(options, found.data, lambda: [*lines, found.summary(), *written])
    return 1 if found.worse and not options.update else 0
