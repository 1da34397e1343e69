"""A case on a whole chip, without one: how long it takes, which kernels that is made of, and when each task runs.

insight-trace run SCENE --case C
insight-trace run BUILD --chip Ascend910B4 -o DIR      a run that was ended goes on where it was
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from insight_trace.commands import call, show

if TYPE_CHECKING:
    from insight_trace.run.run_tables import RunResult

RUNS_KERNELS = True


OPTIONS = """
scene SCENE           path          the scene, or a PyPTO build directory
--case C              text          case of the scene (default: its first)
--chip --soc-version NAME  text     the chip, or your chip file
--platform P          text          a2a3, a2a3sim, a5 or a5sim
--seed                int =0        of the case's arguments (default: %(default)s)
--values              on            run every kernel, and compare with the case's golden
--measured DIR        path          what a device measured of the case, shown beside it
--deps F              path          deps.json of a device's run: who waits for whom
--assume KERNEL=US    assumed many  do not simulate a kernel: each of its blocks takes so many microseconds
@ jobs
--time-limit S -> seconds  float =60  seconds for one dispatch
--replay-slowest K    int =0        write Insight directories of the K kernels with most of the critical path
-o --output DIR       path          where (default: outputs/run_<scene>_<case>)
--force               on            write into a directory that has a run already
--json                on            print one JSON object
"""


def run(options: argparse.Namespace) -> int:
    done: RunResult = call("run", options, assume=dict(options.assume))
    for note in done.notes:
        print(f"insight-trace run: {note}", file=sys.stderr)
    show(options, done.data, lambda: _lines(done, options.scene))
    return 0


def _lines(done: RunResult, scene: Path) -> list[str]:
    from insight_trace.run.device_comparison import text_lines as measured_lines
    from insight_trace.run.run_tables import text_lines

    graph, task = done.run.graph, done.slowest_task
    lines = text_lines(done.run, done.rows)
    lines += [f"assumed    {name} takes {us:g} us: it was not simulated" for name, us in done.assumed.items()]
    if done.measured is not None:
        lines += measured_lines(done.measured)
    if task >= 0:
        ids = ",".join(str(f) for f in graph.tasks["func"][task].tolist() if f >= 0)
        lines.append(
            f"look at    insight-trace replay {scene} --case {graph.case.name} --func-id {ids} "
            f"--task-id 0x{int(graph.tasks['id'][task]):x}"
        )
    lines += [f"open       {place}" for place in done.figures.get("replayed", [])]
    files = "index.html, timeline.json (Perfetto), tasks.csv, run.json, dfx_outputs/ (simpler's records)"
    number = f" · run {done.number}" if done.number else ""
    return [*lines, f"written    {done.directory}: {files}{number}"]


def _assumed(text: str) -> tuple[str, float]:
    name, _, micros = text.rpartition("=")
    try:
        value = float(micros)
    except ValueError:
        value = -1.0
    if not name or not 0 <= value <= 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not KERNEL=MICROSECONDS")
    return name, value


KINDS = {"assumed": _assumed}
