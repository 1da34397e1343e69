"""Two traces, instruction by instruction and pipe by pipe: what became faster or slower, came, went or moved.

Between an embedded and an msprof result of one kernel this is a fidelity report. `insight-trace view A B`
shows the same in a page.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("before", type=Path, metavar="A", help="the first trace, or the reference")
    parser.add_argument("after", type=Path, metavar="B", help="the second")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    from insight_trace import compare

    found = compare(options.before, options.after)
    print(json.dumps(found.data(), indent=2) + "\n" if options.json else found.text(), end="")
    return 0
