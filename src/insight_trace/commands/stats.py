"""Where the cycles go: pipes, waits, critical path, hot lines, traffic, roofs, and what to fix first."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from insight_trace.commands import call, show

if TYPE_CHECKING:
    from insight_trace.trace.text import StatsResult


OPTIONS = """
source path  path  an OPPROF_* or simulator folder, a .bin or a trace.json
--json  on    print one JSON object
"""


def run(options: argparse.Namespace) -> int:
    found: StatsResult = call("stats", options)
    show(options, found.data, lambda: found.text().splitlines())
    return 0
