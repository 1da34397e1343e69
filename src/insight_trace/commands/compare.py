"""Two traces, instruction by instruction and pipe by pipe: what became faster or slower, came, went or moved.

Between an embedded and an msprof result of one kernel this is a fidelity report. `insight-trace view A B`
shows the same in a page.
"""

from __future__ import annotations

import argparse
from pathlib import Path


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("before", type=Path, metavar="A", help="the first trace, or the reference")
    parser.add_argument("after", type=Path, metavar="B", help="the second")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    from insight_trace.commands import CollectorPaused

    with CollectorPaused():
        return _run(options)


def _run(options: argparse.Namespace) -> int:
    from insight_trace.insight import open_trace
    from insight_trace.trace.compare import compare
    from insight_trace.trace.compare_text import comparison_data, comparison_text

    result = compare(open_trace(options.before), open_trace(options.after))
    if options.json:
        import json

        print(json.dumps(comparison_data(result), indent=2))
    else:
        print(comparison_text(result), end="")
    return 0
