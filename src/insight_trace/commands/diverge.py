"""Two runs of a dispatch: the first tile op, line and element where their values part.

insight-trace diverge BEFORE AFTER                  a kernel before and after a change, or two chips
insight-trace diverge WORKSPACE --order 3           the same run with cores and pipes in another order
insight-trace diverge WORKSPACE DUMP                a replay, and the tensors that a dump has of its dispatch
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from insight_trace.commands import call, show

if TYPE_CHECKING:
    from insight_trace.debug.divergence_text import DivergeResult

RUNS_KERNELS = True


OPTIONS = """
a A              path    a workspace of `replay`
b B              path ?  another one, or a dump
--order N        int     instead of B: A in order N of cores and pipes (as in check --perturb)
--dispatch-id K  int     of the dump; the one that A replays without it
--json           on      print one JSON object
"""


def run(options: argparse.Namespace) -> int:
    found: DivergeResult = call("diverge", options)
    show(options, found.data, found.lines)
    return 0
