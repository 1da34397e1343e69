"""Where the cycles go: pipes, waits, critical path, hot lines, traffic, roofs, and what to fix first."""

from __future__ import annotations

import argparse
from pathlib import Path


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", type=Path, help="an OPPROF_* or simulator folder, a .bin or a trace.json")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    from insight_trace.commands import CollectorPaused

    with CollectorPaused():
        return _run(options)


def _run(options: argparse.Namespace) -> int:
    from insight_trace.insight import open_trace
    from insight_trace.trace.advice import advise
    from insight_trace.trace.idle_sync import idle_sync, recorded_findings
    from insight_trace.trace.stats import stats
    from insight_trace.trace.text import stats_data, stats_text

    trace = open_trace(options.path)
    figures = stats(trace)
    advice = (*advise(trace, figures), *idle_sync(recorded_findings(options.path), figures))
    if options.json:
        import json

        print(json.dumps(stats_data(trace, figures, advice), indent=2))
        return 0
    print(stats_text(figures, advice), end="")
    for warning in trace.warnings:
        print(f"note       {warning}")
    if trace.origin:
        print(f"read from  {trace.origin}")
    return 0
