"""Where the cycles go: pipes, waits, critical path, hot lines, traffic, roofs, and what to fix first."""

from __future__ import annotations

import argparse
import json
from pathlib import Path


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", type=Path, help="an OPPROF_* or simulator folder, a .bin or a trace.json")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    from insight_trace import stats

    found = stats(options.path)
    print(json.dumps(found.data(), indent=2) + "\n" if options.json else found.text(), end="")
    return 0
