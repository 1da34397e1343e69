"""Many jobs: on processes or threads of this machine, or on the workers of a Dask cluster; a window of them at a time."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice
from pathlib import Path
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from insight_trace.errors import InsightTraceError, JobError
from insight_trace.executor.journal import Journal
from insight_trace.supervisor import end_with_parent

J = TypeVar("J")
R = TypeVar("R")
_AHEAD = 2  # jobs that wait for each process
_PROCESS_BYTES = 1 << 30  # memory that a process of ours and its simulation may want


class Output(Struct, frozen=True):
    """A folder that a job writes into, wherever it runs."""

    path: Path


class Executor(Protocol):
    """Where jobs run. What a job is given and what comes of it is the same everywhere."""

    width: int  # jobs that run at once

    def run(
        self, work: Callable[[J], R], jobs: Iterable[J], kind: type[R], *, ahead: int = _AHEAD
    ) -> Iterator[tuple[int, R | InsightTraceError]]:
        """Results with the places of their jobs, as they come. A job that cannot be run is an error, and no others are.

        Jobs are taken as there is room for them: `ahead` for each that runs.
        """
        ...

    def close(self) -> None:
        """No more jobs come."""
        ...


def open_executor(
    jobs: int | None = None, cluster: str | None = None, warn: Callable[[str], None] = lambda _text: None
) -> Executor:
    """Processes of this machine, as many as are asked for or as it has cores, or the workers of a cluster."""
    if cluster is None:
        return Local(jobs)
    from insight_trace.executor.cluster import Cluster

    return Cluster(cluster, jobs, warn)


def run_named(
    executor: Executor,
    work: Callable[[J], R],
    jobs: Iterable[tuple[str, J]],
    kind: type[R],
    journal: Journal[R],
    keep: Callable[[R], bool] = lambda _result: True,
) -> Iterator[tuple[int, R | InsightTraceError]]:
    """The same with jobs that have the name of a digest: what the journal has is not run again, and equal jobs run once.

    A job whose name is "" is always run; results that `keep` refuses are not reused.
    """
    known: deque[tuple[int, R]] = deque()
    running: list[tuple[str, list[int]]] = []
    pending: dict[str, list[int]] = {}

    def new() -> Iterator[J]:
        for place, (name, job) in enumerate(jobs):
            if name in journal.known and keep(journal.known[name]):
                known.append((place, journal.get(name)))
            elif name in pending:
                pending[name].append(place)
            else:
                places = [place]
                if name:
                    pending[name] = places
                running.append((name, places))
                yield job

    for number, result in executor.run(work, new(), kind):
        name, places = running[number]
        pending.pop(name, None)
        if name and not isinstance(result, InsightTraceError) and keep(result):
            journal.add(name, result)
        yield from ((place, result) for place in places)
        while known:
            yield known.popleft()
    yield from known


class Local:
    """This machine: copies of this process, which share the compile cache; or threads, for work that starts programs.

    `stop` ends what threads are at when their results are not wanted any more; processes are ended as they are.
    """

    def __init__(
        self, width: int | None = None, *, threads: bool = False, stop: Callable[[], None] = lambda: None
    ) -> None:
        self.width = width if width is not None else usual_jobs()
        self._threads, self._stop = threads, stop

    def run(
        self, work: Callable[[J], R], jobs: Iterable[J], kind: type[R], *, ahead: int = _AHEAD
    ) -> Iterator[tuple[int, R | InsightTraceError]]:
        del kind
        places = enumerate(jobs)
        first = list(islice(places, 2 if ahead > 1 else 1))
        places = chain(first, places)  # type: ignore[assignment]
        if self.width <= 1 or (len(first) < 2 <= ahead and not self._threads):
            for place, job in places:
                yield place, tried(work, job)
            return
        try:
            yield from self._in_pools(work, places, self.width * ahead)
        except BaseException:
            self._stop()
            raise

    def _in_pools(
        self, work: Callable[[J], R], places: Iterator[tuple[int, J]], window: int
    ) -> Iterator[tuple[int, R | InsightTraceError]]:
        """A process that is killed takes its pool with it; what ran then is run again, one job at a time."""
        again: deque[tuple[int, J]] = deque()
        tried: set[int] = set()
        running: dict[concurrent.futures.Future[R], tuple[int, J]] = {}
        pool: Any = None
        try:
            while True:
                while len(running) < (1 if again else window):
                    item = again.popleft() if again else next(places, None)
                    if item is None:
                        break
                    pool = pool or self._pool()
                    running[pool.submit(work, item[1])] = item
                if not running:
                    return
                done, _ = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
                if any(isinstance(future.exception(), BrokenProcessPool) for future in done):
                    done, _ = concurrent.futures.wait(running)  # all of them end so
                    end_pool(pool)
                    pool = None
                for future in done:
                    place, job = running.pop(future)
                    error = future.exception()
                    if error is None:
                        yield place, future.result()
                    elif place in tried or self._threads:
                        yield place, _reason(error)
                    else:
                        tried.add(place)
                        again.append((place, job))
        finally:
            if pool is not None:
                end_pool(pool)

    def _pool(self) -> concurrent.futures.Executor:
        if self._threads:
            return concurrent.futures.ThreadPoolExecutor(self.width)
        how = multiprocessing.get_context("fork" if can_copy() else "spawn")
        pool = concurrent.futures.ProcessPoolExecutor(self.width, how, _belong_to, (os.getpid(),))
        pool.submit(os.getpid).result()  # all of them start here, while no thread of the pool's is about
        return pool

    def close(self) -> None:
        """There is nothing to leave."""


def tried(work: Callable[[J], R], job: J) -> R | InsightTraceError:
    """What comes of a job in this process, at the first or second time."""
    for _ in range(2):
        try:
            return work(job)
        except Exception as error:
            reason = _reason(error)
    return reason


def _reason(error: BaseException) -> InsightTraceError:
    if isinstance(error, InsightTraceError):
        return error
    if isinstance(error, BrokenProcessPool):
        said = "the process that ran it was killed twice (out of memory?)"
        return JobError(said, hint="--jobs 1 needs the least")
    return JobError(f"a job failed twice: {type(error).__name__}: {error}")


def required(results: Iterable[tuple[int, R | InsightTraceError]]) -> Iterator[tuple[int, R]]:
    """For who cannot go on without one of them."""
    for place, result in results:
        if isinstance(result, InsightTraceError):
            raise result
        yield place, result


def usual_jobs() -> int:
    """As many processes as there are cores, and no more than memory has room for."""
    try:
        room = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // _PROCESS_BYTES
    except (ValueError, OSError):
        room = 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, room))


def can_copy() -> bool:
    """Whether copies of this process can be made: locks of other threads would be copied, too."""
    return sys.platform == "linux" and threading.active_count() == 1


def _belong_to(owner: int) -> None:
    """Ctrl-C is for the one who waits for the jobs, who ends the others as they are; they end when it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_with_parent(owner)


def end_pool(pool: Any) -> None:
    """Jobs in processes that nobody waits for any more are ended, not waited for; threads end by themselves."""
    processes = list((getattr(pool, "_processes", None) or {}).values())
    manager = getattr(pool, "_executor_manager_thread", None)
    pool.shutdown(wait=not processes, cancel_futures=True)
    for process in processes:
        process.terminate()
    for process in processes:
        process.join(5)
    if manager is not None:
        manager.join(5)  # with it about, the next pool could not be made of copies


class Remaining:
    """How long the rest will take, by how long the jobs so far took."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._first: int | None = None

    def text(self, done: int, total: int) -> str:
        if self._first is None:
            self._first, self._begun = done, time.monotonic()
        new = done - self._first
        if not new or done >= total:
            return f"{done} of {total}"
        seconds = (time.monotonic() - self._begun) / new * (total - done)
        return f"{done} of {total}, about {seconds:.0f} s left"
