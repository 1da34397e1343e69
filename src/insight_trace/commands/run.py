"""A case on a whole chip, without one: how long it takes, which kernels that is made of, and when each task runs.

insight-trace run SCENE --case C
insight-trace run BUILD --chip Ascend910B4 -o DIR      a run that was ended goes on where it was
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from insight_trace.run.beside import Beside
    from insight_trace.run.run_tables import KernelRow
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
    from insight_trace.run.beside import as_data as measured_data
    from insight_trace.run.beside import beside
    from insight_trace.run.beside import text_lines as measured_lines
    from insight_trace.run.run_directory import keep, open_folder
    from insight_trace.run.run_tables import as_data, kernel_rows, text_lines
    from insight_trace.run.whole_run import RunRequest, run_case

    request = RunRequest(
        options.scene, options.case, options.chip, platform=options.platform, seed=options.seed,
        seconds=options.time_limit, values=options.values, assumed=tuple(options.assume), deps=_deps(options),
    )  # fmt: skip
    say = Progress()
    with open_folder(options.output, request, force=options.force) as folder:
        done = run_case(request, folder, executor(options), say.step, say.timed)
        rows = kernel_rows(done, say.step)
        data = as_data(done, rows)
        data["assumed"] = dict(request.assumed)
        found = beside(done, options.measured) if options.measured is not None else None
        if found is not None:
            data["measured"] = measured_data(found)
        if options.replay_slowest:
            data["replayed"] = _replayed(done, request, rows, folder, options.replay_slowest)
        say.step("write")
        keep(done, data, folder)
        number = _indexed(data, folder)
    say.end()
    if options.json:
        print(json.dumps({**data, "directory": str(folder)}, indent=2))
        return 0
    print("\n".join(text_lines(done, rows)))
    for name, micros in request.assumed:
        print(f"assumed    {name} takes {micros:g} us: it was not simulated")
    if found is not None:
        print("\n".join(measured_lines(found)))
    task = _task_to_look_at(done, rows, found)
    if task >= 0:
        case = done.graph.case.name
        ids = ",".join(str(f) for f in done.graph.tasks["func"][task].tolist() if f >= 0)
        task = int(done.graph.tasks["id"][task])
        print(
            f"look at    insight-trace replay {options.scene} --case {case} --func-id {ids} --task-id 0x{task:x}"
        )
    for place in data.get("replayed", []):
        print(f"open       {place}")
    print(
        f"written    {folder}: index.html, timeline.json (Perfetto), tasks.csv, run.json, dfx_outputs/ (simpler's records)"
        + (f" · run {number}" if number else "")
    )
    return 0


def _assumed(text: str) -> tuple[str, float]:
    name, _, micros = text.rpartition("=")
    try:
        value = float(micros)
    except ValueError:
        value = -1.0
    if not name or not 0 <= value <= 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not KERNEL=MICROSECONDS")
    return name, value


def _deps(options: argparse.Namespace) -> Path | None:
    """The file that was named, or that of the measured run."""
    if options.deps is not None or options.measured is None:
        return options.deps  # type: ignore[no-any-return]
    from insight_trace.run.device_records import find_records

    return find_records(options.measured).deps


def _task_to_look_at(done: WholeRun, rows: list[KernelRow], found: Beside | None) -> int:
    """The slowest that was measured; without measurements the one that has most of the path."""
    if found is not None:
        known = {task_id: number for number, task_id in enumerate(done.graph.tasks["id"].tolist())}
        return next((known[task.task_id] for task in found.tasks if task.task_id in known), -1)
    return rows[0].slowest if rows else -1


def _indexed(data: dict[str, Any], folder: Path) -> int:
    """Its number in the index of runs; a run is none the worse if there cannot be one."""
    from insight_trace.errors import InsightTraceError
    from insight_trace.run.run_store import RunStore, default_index

    try:
        return RunStore(default_index()).add(data, folder)
    except (InsightTraceError, OSError) as error:
        print(f"insight-trace run: not in the index of runs: {error}", file=sys.stderr)
        return 0


def executor(options: argparse.Namespace) -> Execute:
    from insight_trace.batch.local_pool import run_jobs, usual_jobs
    from insight_trace.run.timing_job import run_timing_job

    if options.cluster:
        from insight_trace.batch.cluster_jobs import ClusterJobs

        return ClusterJobs(options.cluster).time
    processes = options.jobs if options.jobs is not None else usual_jobs()
    return lambda jobs: run_jobs(run_timing_job, jobs, processes)


def _replayed(
    done: WholeRun, request: RunRequest, rows: list[KernelRow], folder: Path, count: int
) -> list[str]:
    from insight_trace.run.drill import replay_task

    return [str(replay_task(done, request, row.slowest, folder)) for row in rows[:count]]


class Progress:
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

    def replayed(self, done: int, total: int) -> None:
        self.step(f"replay: {self._rest.text(done, total)}")

    def end(self) -> None:
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
