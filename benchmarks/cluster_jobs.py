"""Jobs on a real Dask scheduler and three workers on loopback, a worker and then the scheduler killed on the way.

    python benchmarks/cluster_jobs.py [--jobs 2000] [--kind timed]...

Jobs of each kind that a cluster runs: dispatches timed (`run`, `gate`), dispatches replayed and verified (`replay --all`),
pairs of kernels compared (`diff`), candidates judged (`judge`), kernels of a build profiled (`profile`). What the first run
had finished is in its journal, or in the manifest of the profile, and a second run, on the scheduler that was started again,
does the rest. Checked: every result once, and equal to what this machine gives by itself.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec.structs import replace

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from insight_trace.capture.session import CaptureOptions, run_capture  # noqa: E402
from insight_trace.capture.task_graph import take_graph  # noqa: E402
from insight_trace.errors import InsightTraceError  # noqa: E402
from insight_trace.executor import required, run_named  # noqa: E402
from insight_trace.executor.cluster import Cluster  # noqa: E402
from insight_trace.executor.journal import Journal  # noqa: E402
from insight_trace.guard.comparing import compare_pair  # noqa: E402
from insight_trace.guard.difference import KernelDifference  # noqa: E402
from insight_trace.guard.pairs import How, paired  # noqa: E402
from insight_trace.judge import Verdict, judge, read_task  # noqa: E402
from insight_trace.options import RunOptions  # noqa: E402
from insight_trace.profile import ProfileRequest, run_profile  # noqa: E402
from insight_trace.profile.manifest import ManifestRow  # noqa: E402
from insight_trace.profile.profile_run import Progress  # noqa: E402
from insight_trace.run.bulk_replay import ReplayRow, plan, run_replay_job  # noqa: E402
from insight_trace.run.timing import Dispatches, Timed, run_timing_job  # noqa: E402

EXAMPLES = ROOT / "examples"
SCENE = EXAMPLES / "paged_attention" / "scene.py"


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


def compared_jobs(folder: Path, count: int) -> list[tuple[str, Any]]:
    builds = EXAMPLES / "two_builds"
    how = How(RunOptions(check=True, simulator="embedded", host_cores=1), synthetic=True, run_same=True)
    jobs = paired(builds / "v1", builds / "v2", how, folder).pairs
    return [(f"{number}", jobs[number % len(jobs)]) for number in range(count)]


def judged_jobs(folder: Path, count: int) -> list[tuple[str, Any]]:
    del folder
    jobs = sorted((EXAMPLES / "judge").glob("*.cpp"))
    return [(f"{number}", jobs[number % len(jobs)]) for number in range(count)]


# a worker has the package, and neither this file nor the kernel that the task names as its baseline
judged = functools.partial(judge, task=replace(read_task(EXAMPLES / "judge" / "axpy.json"), baseline=""))


def many_kernels(folder: Path, count: int) -> Path:
    """A build with that many kernels: one of the example's under other names."""
    build, example = folder / "build", EXAMPLES / "pypto_build" / "ptoas"
    (build / "ptoas").mkdir(parents=True)
    for number in range(count):
        for ending in (".cpp", ".pto"):
            shutil.copyfile(example / f"vector_add{ending}", build / "ptoas" / f"vector_add_{number}{ending}")
    return build


def profiled(
    dask: DaskProcesses, folder: Path, count: int
) -> tuple[list[ManifestRow], list[ManifestRow], int, int]:
    """Rows of a profile whose worker and scheduler were killed, those of this machine, and as `survived` says it."""
    build = many_kernels(folder, count)
    request = functools.partial(ProfileRequest, build, synthetic=True)
    ends = iter((dask.workers[0], dask.scheduler))
    first, again, victims = 0, 0, {count // 5, 2 * count // 5}

    def killing(progress: Progress) -> None:
        nonlocal first
        if progress.row is not None and progress.row.exported:
            first += 1
            if first in victims:
                victim = next(ends)
                assert victim is not None
                victim.kill()

    def resuming(progress: Progress) -> None:
        nonlocal again
        again += progress.row is not None and not progress.reused

    with contextlib.suppress(InsightTraceError):
        run_profile(request(output_root=folder / "there"), report=killing, cluster=dask.address)
    dask.stop()
    dask.start()
    there = run_profile(
        request(output_root=folder / "there", resume=True), report=resuming, cluster=dask.address
    )
    here = run_profile(request(output_root=folder / "here", jobs=os.cpu_count()))
    return list(there.rows), list(here.rows), first, count - again


_PLACES = (
    "duration_sec",
    "collect_dir",
    "export_dir",
    "export_src",
    "trace_json",
    "visualize_data_bin",
    "log_dir",
)


def without_places(row: ManifestRow) -> tuple[str, str, dict[str, str]]:
    """What a row says of its kernel; the rest says where and how long it ran. One that was read has empty columns, too."""
    said = row.columns | {"func": row.func, "status": row.status}
    return row.func, row.status, {k: v for k, v in said.items() if v and k not in _PLACES}


def run_kind(name: str, dask: DaskProcesses, folder: Path, count: int) -> tuple[int, int, list[Any]]:
    """How many were done before the scheduler was killed, how many did not run again, and which differ."""
    if name == "profiled":
        there, here, first, reused = profiled(dask, folder, count)
        assert len(there) == len(here) == count
        pairs = zip(map(without_places, there), map(without_places, here), strict=True)
        return first, reused, [pair for pair in pairs if pair[0] != pair[1]]
    make, work, kind = KINDS[name]
    jobs = make(folder, count)
    found, first, reused, _ = survived(dask, work, jobs, kind, folder)
    assert sorted(found) == list(range(count))
    known: dict[int, Any] = {}
    for number, (_, job) in enumerate(jobs):
        if id(job) not in known:
            known[id(job)] = work(job)
        if known[id(job)] == found[number]:
            found.pop(number)
    return first, reused, sorted(found)


KINDS: dict[str, tuple[Any, Any, Any]] = {
    "timed": (timing_jobs, run_timing_job, Timed),
    "replayed": (replay_jobs, run_replay_job, ReplayRow),
    "compared": (compared_jobs, compare_pair, KernelDifference),
    "judged": (judged_jobs, judged, Verdict),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=2000)
    parser.add_argument("--kind", action="append", choices=(*KINDS, "profiled"))
    options = parser.parse_args()
    for name in options.kind or (*KINDS, "profiled"):
        with tempfile.TemporaryDirectory() as made, DaskProcesses() as dask:
            began = time.perf_counter()
            first, reused, wrong = run_kind(name, dask, Path(made), options.jobs)
            print(
                f"{name:<9} {options.jobs:,} jobs · {first:,} before the scheduler was killed · {reused:,} not run again · "
                f"{len(wrong)} differ from this machine's · {time.perf_counter() - began:.0f} s",
                flush=True,
            )
            if wrong:
                sys.exit(f"the first that differs: {wrong[0]}")


if __name__ == "__main__":
    main()
