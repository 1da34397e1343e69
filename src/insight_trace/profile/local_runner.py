"""The embedded runner in processes of its own, so that the trace of one kernel is written beside that of another."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import functools
import os
import pickle
import threading
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from insight_trace.batch.local_pool import belong_to, can_copy, copies, end_pool
from insight_trace.errors import InsightTraceError, JobError
from insight_trace.options import RunOptions
from insight_trace.profile.embedded_runner import EmbeddedRunner
from insight_trace.profile.kernel_runner import FAILED, KernelRunner, Places, RunOutcome
from insight_trace.ptoas.planned_kernel import ProfileKernel


class LocalRunner:
    """Sends one kernel per call to one of some processes; calls may come from several threads."""

    def __init__(self, runner: EmbeddedRunner, processes: int) -> None:
        self._runner = runner
        runner.toolchain.runner()  # built once, before there are many
        self._stopped = threading.Event()
        self._pool: Any = concurrent.futures.ProcessPoolExecutor(
            processes, copies(), belong_to, (os.getpid(),)
        )
        self._pool.submit(os.getpid).result()  # all of them start here, while no thread is about

    @property
    def name(self) -> str:
        """That of the simulator: a run may be continued with any number of processes."""
        return self._runner.name

    def digest(self, kernel: ProfileKernel) -> str:
        return self._runner.digest(kernel)

    def run(self, kernel: ProfileKernel, places: Places) -> RunOutcome:
        try:
            sent = pickle.dumps((kernel, dataclasses.replace(places, step=_silent)))
        except (pickle.PicklingError, TypeError, AttributeError):
            return self._runner.run(kernel, places)  # what it holds stays here
        places.step("simulate")
        try:
            outcome: RunOutcome = self._pool.submit(run_kernel, self._runner.options, sent).result()
        except (BrokenProcessPool, RuntimeError):  # one was killed, and takes its pool with it
            if self._stopped.is_set():
                raise JobError("interrupted") from None
            return self._runner.run(kernel, places)
        return outcome

    def stop(self) -> None:
        self._stopped.set()
        self._runner.stop()
        end_pool(self._pool)

    def close(self) -> None:
        """Nothing is to be run any more."""
        self._pool.shutdown()


def _silent(_step: str) -> None:
    pass


@functools.lru_cache(maxsize=1)
def _made(options: RunOptions) -> EmbeddedRunner:
    return EmbeddedRunner(options)


def run_kernel(options: RunOptions, sent: bytes) -> RunOutcome:
    """Runs a kernel that this process's parent sent."""
    kernel, places = pickle.loads(sent)
    try:
        return _made(options).run(kernel, places)
    except InsightTraceError as error:
        return RunOutcome(FAILED, str(error))


def in_processes(runner: KernelRunner, jobs: int) -> LocalRunner | None:
    """The runner in as many processes, where that is possible and brings something."""
    if jobs < 2 or type(runner) is not EmbeddedRunner or not can_copy():
        return None
    try:
        return LocalRunner(runner, jobs)
    except InsightTraceError:
        return None  # each kernel tells it
