"""Jobs on the cores of this machine: processes that share the compile cache, a few jobs ahead, each failure tried twice."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import multiprocessing.context
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from insight_trace.errors import InsightTraceError, JobError
from insight_trace.supervisor import end_with_parent

J = TypeVar("J")
R = TypeVar("R")
_AHEAD = 2  # jobs that wait for each process
_PROCESS_BYTES = 1 << 30  # memory that a process of ours and its simulation may want
_TRIES = 2


def usual_jobs() -> int:
    """As many processes as there are cores, and no more than memory has room for."""
    try:
        room = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // _PROCESS_BYTES
    except (ValueError, OSError):
        room = 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, room))


def run_jobs(run: Callable[[J], R], jobs: Sequence[J], processes: int) -> Iterator[tuple[int, R]]:
    """Results with the places of their jobs, as they come. A job that fails twice is a JobError with its reason."""
    if processes <= 1 or len(jobs) <= 1:
        for place, job in enumerate(jobs):
            yield place, _twice(run, job)
        return
    tries = [0] * len(jobs)
    waiting = list(range(len(jobs)))[::-1]
    while waiting:
        again: list[int] = []
        try:
            for place, outcome in _with_pool(run, jobs, waiting, min(processes, len(waiting))):
                if not isinstance(outcome, BaseException):
                    yield place, outcome
                    continue
                tries[place] += 1
                if tries[place] == _TRIES:
                    raise _told(outcome)
                again.append(place)
        except BrokenProcessPool:
            # a process was killed: whatever it was at, and what stood behind it, is run once more
            for place in waiting:
                tries[place] += 1
                if tries[place] == _TRIES:
                    raise JobError(
                        "a process that ran jobs was killed twice (out of memory?)",
                        hint="--jobs 1 needs the least",
                    ) from None
        waiting = [*again, *waiting]


def _twice(run: Callable[[J], R], job: J) -> R:
    try:
        return run(job)
    except Exception:
        pass
    try:
        return run(job)
    except Exception as error:
        raise _told(error) from None


def _told(error: BaseException) -> InsightTraceError:
    if isinstance(error, InsightTraceError):
        return error
    return JobError(f"a job failed twice: {type(error).__name__}: {error}")


def _with_pool(
    run: Callable[[J], R], jobs: Sequence[J], waiting: list[int], processes: int
) -> Iterator[tuple[int, Any]]:
    """Takes places off the end of `waiting`; one stays there until its result is out."""
    how = copies() if can_copy() else multiprocessing.get_context("spawn")
    pool = concurrent.futures.ProcessPoolExecutor(processes, how, belong_to, (os.getpid(),))
    running: dict[concurrent.futures.Future[R], int] = {}
    left = list(waiting)
    try:
        while left or running:
            while left and len(running) < processes * _AHEAD:
                place = left.pop()
                running[pool.submit(run, jobs[place])] = place
            done, _ = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in done:
                error = future.exception()
                if isinstance(error, BrokenProcessPool):
                    raise error
                place = running.pop(future)
                waiting.remove(place)
                yield place, error if error is not None else future.result()
    finally:
        end_pool(pool)


def end_pool(pool: concurrent.futures.ProcessPoolExecutor) -> None:
    """Jobs that nobody waits for any more are ended, not waited for."""
    processes = list((getattr(pool, "_processes", None) or {}).values())
    manager = getattr(pool, "_executor_manager_thread", None)
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.terminate()
    for process in processes:
        process.join(5)
    if manager is not None:
        manager.join(5)  # with it about, the next pool could not be made of copies


def can_copy() -> bool:
    """Whether copies of this process can be made: locks of other threads would be copied, too."""
    return sys.platform == "linux" and threading.active_count() == 1


def copies() -> multiprocessing.context.BaseContext:
    """How copies are made, which have all that this process imported."""
    return multiprocessing.get_context("fork")


def belong_to(owner: int) -> None:
    """Ctrl-C is for the one who waits for the jobs, who ends the others as they are; they end when it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_with_parent(owner)


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
