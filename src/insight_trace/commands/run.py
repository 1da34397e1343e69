"""A case on a whole chip, without one: how long it takes, which kernels that is made of, and when each task runs.

insight-trace run SCENE --case C
insight-trace run BUILD --chip Ascend910B4 -o DIR      a run that was ended goes on where it was
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from insight_trace.run.run_tables import RunResult

RUNS_KERNELS = True


def prepare(parser: argparse.ArgumentParser) -> None:
    from insight_trace.options import add_executor_options

    parser.add_argument("scene", type=Path, metavar="SCENE", help="the scene, or a PyPTO build directory")
    parser.add_argument("--case", metavar="C", help="case of the scene (default: its first)")
    parser.add_argument("--chip", "--soc-version", metavar="NAME", help="the chip, or your chip file")
    parser.add_argument("--platform", metavar="P", help="a2a3, a2a3sim, a5 or a5sim")
    parser.add_argument("--seed", type=int, default=0, help="of the case's arguments (default: %(default)s)")
    parser.add_argument(
        "--values", action="store_true", help="run every kernel, and compare with the case's golden"
    )
    parser.add_argument(
        "--measured", type=Path, metavar="DIR", help="what a device measured of the case, shown beside it"
    )
    parser.add_argument(
        "--deps", type=Path, metavar="F", help="deps.json of a device's run: who waits for whom"
    )
    parser.add_argument(
        "--assume", type=_assumed, action="append", default=[], metavar="KERNEL=US",
        help="do not simulate a kernel: each of its blocks takes so many microseconds",
    )  # fmt: skip
    add_executor_options(parser)
    parser.add_argument(
        "--time-limit", type=float, default=60.0, metavar="S", help="seconds for one dispatch"
    )
    parser.add_argument(
        "--replay-slowest", type=int, default=0, metavar="K",
        help="write Insight directories of the K kernels with most of the critical path",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR", help="where (default: outputs/run_<scene>_<case>)"
    )
    parser.add_argument("--force", action="store_true", help="write into a directory that has a run already")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    from insight_trace import run as run_case
    from insight_trace.commands import shown_progress

    with shown_progress() as progress:
        done = run_case(
            options.scene,
            options.case,
            chip=options.chip,
            platform=options.platform,
            seed=options.seed,
            values=options.values,
            measured=options.measured,
            deps=options.deps,
            assume=dict(options.assume),
            jobs=options.jobs,
            cluster=options.cluster,
            seconds=options.time_limit,
            replay_slowest=options.replay_slowest,
            output=options.output,
            force=options.force,
            progress=progress,
        )
    for note in done.notes:
        print(f"insight-trace run: {note}", file=sys.stderr)
    print(json.dumps(done.data(), indent=2) if options.json else "\n".join(_lines(done, options.scene)))
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
