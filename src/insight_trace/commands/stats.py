"""Where the cycles go: pipes, waits, critical path, hot lines, traffic, roofs, and what to fix first."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any


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
    from insight_trace.trace.idle_sync import idle_sync
    from insight_trace.trace.stats import stats
    from insight_trace.trace.text import stats_data, stats_text

    trace = open_trace(options.path)
    figures = stats(trace)
    advice = (*advise(trace, figures), *idle_sync(_findings(options.path), figures))
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


def _findings(path: Path) -> Sequence[Any]:
    """What a check of the run found, where a recording of ours lies beside the trace."""
    from insight_trace.insight.locate import find_simulator
    from insight_trace.recording import open_recording
    from insight_trace.recording.store import HEADER, beside

    if not path.is_dir():
        return ()
    folder = path if (path / HEADER).is_file() else beside(find_simulator(path))
    return open_recording(folder).findings if (folder / HEADER).is_file() else ()
