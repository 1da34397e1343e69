"""Jobs on a real Dask scheduler and three workers on loopback, a worker and then the scheduler killed on the way.

    python benchmarks/cluster_jobs.py [--jobs 2000]

Jobs of two kinds: dispatches timed (`run`), and replayed and verified (`replay --all`). What the first run had finished
is in its journal, and a second run, on the scheduler that was started again, does the rest. Checked: every result once,
and equal to what this machine gives by itself.
"""

from __future__ import annotations

import argparse
import contextlib
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from insight_trace.capture.session import CaptureOptions, run_capture  # noqa: E402
from insight_trace.capture.task_graph import take_graph  # noqa: E402
from insight_trace.errors import InsightTraceError  # noqa: E402
from insight_trace.executor import required, run_named  # noqa: E402
from insight_trace.executor.cluster import Cluster  # noqa: E402
from insight_trace.executor.journal import Journal  # noqa: E402
from insight_trace.options import RunOptions  # noqa: E402
from insight_trace.run.bulk_replay import ReplayRow, plan, run_replay_job  # noqa: E402
from insight_trace.run.timing import Dispatches, Timed, run_timing_job  # noqa: E402

SCENE = ROOT / "examples" / "paged_attention" / "scene.py"


class DaskProcesses:
    """`dask scheduler` and `dask worker`, started, killed and started again."""

    def __init__(self, count: int = 3) -> None:
        self._count = count
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self._port}"
        self.scheduler: subprocess.Popen[bytes] | None = None
        self.workers: list[subprocess.Popen[bytes]] = []

    @staticmethod
    def _dask(*words: str) -> subprocess.Popen[bytes]:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.Popen([sys.executable, "-m", "dask", *words, "--no-dashboard"], **quiet)  # type: ignore[call-overload, no-any-return]

    def start(self) -> None:
        where = ["--host", "127.0.0.1"]
        self.scheduler = self._dask("scheduler", *where, "--port", str(self._port))
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self._port), 1):
                break
            time.sleep(0.2)
        words = ["worker", self.address, *where, "--nworkers", "1", "--nthreads", "1", "--no-nanny"]
        self.workers = [self._dask(*words) for _ in range(self._count)]
        from distributed import Client

        with Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(self._count, timeout=300)

    def stop(self) -> None:
        for process in [*self.workers, self.scheduler]:
            if process is not None:
                process.kill()
                process.wait()

    def __enter__(self) -> DaskProcesses:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def survived(
    dask: DaskProcesses, work: Callable[[Any], Any], jobs: list[tuple[str, Any]], kind: type, folder: Path
) -> tuple[dict[int, Any], int, int, str]:
    """The results of named jobs, a worker killed at a fifth of them and the scheduler at two fifths.

    How many the first run had, how many the second did not have to run again, and how the first one ended follow.
    """
    path = folder / "journal.jsonl"
    first, ended = 0, ""
    with Journal(path, kind) as journal, contextlib.closing(Cluster(dask.address)) as executor:
        try:
            for _ in required(run_named(executor, work, iter(jobs), kind, journal)):
                first += 1
                if first == len(jobs) // 5:
                    dask.workers[0].kill()
                if first == 2 * len(jobs) // 5:
                    assert dask.scheduler is not None
                    dask.scheduler.kill()
        except InsightTraceError as error:
            ended = str(error)
    dask.stop()
    dask.start()
    with Journal(path, kind) as journal, contextlib.closing(Cluster(dask.address)) as executor:
        found: dict[int, Any] = {}
        for place, result in required(run_named(executor, work, iter(jobs), kind, journal)):
            assert place not in found, "a result twice"
            found[place] = result
        return found, first, journal.used, ended


def timing_jobs(folder: Path, count: int) -> list[tuple[str, Any]]:
    graph = take_graph(SCENE, "CaseSmall1", folder, options=CaptureOptions())
    dispatches = Dispatches(graph, RunOptions(), 1 << 27)
    jobs = [dispatches.job(place) for place in range(len(dispatches.tasks))]
    return [(f"{number}", jobs[number % len(jobs)]) for number in range(count)]


def replay_jobs(folder: Path, count: int) -> list[tuple[str, Any]]:
    run_capture(SCENE, "CaseSmall1", folder / "dump", CaptureOptions(level=2))
    dump = next((folder / "dump").rglob("args_dump.json")).parent
    jobs = [job for _, job in plan(SCENE, dump, None, RunOptions()).jobs()]
    return [(f"{number}", jobs[number % len(jobs)]) for number in range(count)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=2000)
    count = parser.parse_args().jobs
    kinds: tuple[tuple[str, Any, Any, Any], ...] = (
        ("timed", timing_jobs, run_timing_job, Timed),
        ("replayed", replay_jobs, run_replay_job, ReplayRow),
    )
    for name, make, work, kind in kinds:
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            jobs = make(folder, count)
            began = time.perf_counter()
            with DaskProcesses() as dask:
                found, first, reused, _ = survived(dask, work, jobs, kind, folder)
            assert sorted(found) == list(range(count))
            here: dict[int, Any] = {}
            for number, (_, job) in enumerate(jobs):
                again = next((place for place in here if jobs[place][1] is job), None)
                here[number] = work(job) if again is None else here[again]
            wrong = [place for place in here if here[place] != found[place]]
            print(
                f"{name:<9} {count:,} jobs · {first:,} before the scheduler was killed · {reused:,} not run again · "
                f"{len(wrong)} differ from this machine's · {time.perf_counter() - began:.0f} s",
                flush=True,
            )
            if wrong:
                sys.exit(1)


if __name__ == "__main__":
    main()
