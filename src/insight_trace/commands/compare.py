"""Two traces, instruction by instruction and pipe by pipe: what became faster or slower, came, went or moved.

Between an embedded and an msprof result of one kernel this is a fidelity report. `insight-trace view A B`
shows the same in a page.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from insight_trace.commands import call, show

if TYPE_CHECKING:
    from insight_trace.trace.compare import Comparison


OPTIONS = """
before A  path  the first trace, or the reference
after B   path  the second
--json    on    print one JSON object
"""


def run(options: argparse.Namespace) -> int:
    found: Comparison = call("compare", options)
    show(options, found.data, lambda: found.text().splitlines())
    return 0
