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
    from insight_trace.run.timing import Execute
    from insight_trace.run.whole_run import RunRequest, WholeRun

RUNS_KERNELS = True


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scene", type=Path, metavar="SCENE", help="the scene, or a PyPTO build directory")
    parser.add_argument("--case", metavar="C", help="case of the scene (default: its first)")
    parser.add_argument(
        "--chip", "--soc-version", metavar="NAME", help="the chip, or a chip file of one's own"
    )
    parser.add_argument("--platform", metavar="P", help="a2a3, a2a3sim, a5 or a5sim")
    parser.add_argument("--seed", type=int, default=0, help="of the case's arguments (default: %(default)s)")
    parser.add_argument(
        "--values", action="store_true", help="run every kernel, and compare with the case's golden"
    )
    parser.add_argument("--jobs", type=int, metavar="N", help="processes (default: one for each core)")
    parser.add_argument("--cluster", metavar="ADDRESS", help="time dispatches on a Dask cluster")
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
    from insight_trace.run.run_directory import keep, open_folder
    from insight_trace.run.run_tables import as_data, kernel_rows, text_lines
    from insight_trace.run.whole_run import RunRequest, run_case

    request = RunRequest(
        options.scene, options.case, options.chip, platform=options.platform, seed=options.seed,
        seconds=options.time_limit, values=options.values,
    )  # fmt: skip
    say = _Progress()
    with open_folder(options.output, request, force=options.force) as folder:
        done = run_case(request, folder, _executor(options), say.step, say.timed)
        rows = kernel_rows(done, say.step)
        data = as_data(done, rows)
        say.step("write")
        keep(done, data, folder)
        if options.replay_slowest:
            data["replayed"] = _replayed(done, request, rows, folder, options.replay_slowest)
    say.end()
    if options.json:
        print(json.dumps({**data, "directory": str(folder)}, indent=2))
        return 0
    print("\n".join(text_lines(done, rows)))
    slowest = rows[0] if rows else None
    if slowest is not None:
        case = done.graph.case.name
        ids = ",".join(map(str, slowest.func_ids))
        task = int(done.graph.tasks["id"][slowest.slowest])
        print(
            f"look at    insight-trace replay {options.scene} --case {case} --func-id {ids} --task-id 0x{task:x}"
        )
    for place in data.get("replayed", []):
        print(f"open       {place}")
    print(f"written    {folder}: timeline.json (Perfetto), tasks.csv, run.json")
    return 0


def _executor(options: argparse.Namespace) -> Execute:
    from insight_trace.batch.local_pool import run_jobs, usual_jobs
    from insight_trace.run.timing_job import run_timing_job

    if options.cluster:
        from insight_trace.batch.cluster_jobs import ClusterJobs

        return ClusterJobs(options.cluster).time
    processes = options.jobs if options.jobs is not None else usual_jobs()
    return lambda jobs: run_jobs(run_timing_job, jobs, processes)


def _replayed(done: WholeRun, request: RunRequest, rows: list, folder: Path, count: int) -> list[str]:  # type: ignore[type-arg]
    from insight_trace.run.drill import replay_task

    return [str(replay_task(done, request, row.slowest, folder)) for row in rows[:count]]


class _Progress:
    """One line on a terminal's stderr; nothing elsewhere."""

    def __init__(self) -> None:
        from insight_trace.batch.local_pool import Remaining

        self._shown = sys.stderr.isatty()
        self._rest = Remaining()

    def step(self, what: str) -> None:
        if self._shown:
            print(f"\r\x1b[K{what} …", end="", file=sys.stderr, flush=True)

    def timed(self, done: int, total: int) -> None:
        self.step(f"time distinct dispatches: {self._rest.text(done, total)}")

    def end(self) -> None:
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
