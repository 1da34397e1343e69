"""Runs kernels on the workers of a Dask cluster, with the results of a run on this machine."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from insight_trace.batch.cluster import connect, introduced
from insight_trace.errors import InsightTraceError, JobError
from insight_trace.options import RunOptions
from insight_trace.profile.embedded_runner import EmbeddedRunner, runner_name
from insight_trace.profile.kernel_runner import FAILED, Places, RunOutcome
from insight_trace.profile.sent_kernel import opened, pack, run_sent_job, sent_job_key, unpack_into
from insight_trace.ptoas.planned_kernel import ProfileKernel


class ClusterRunner:
    """Sends one kernel per call; calls may come from several threads."""

    why_made_up = ""  # dispatches of the build's own run are sent with what was recorded

    def __init__(
        self, address: str, options: RunOptions, warn: Callable[[str], None] = lambda _: None
    ) -> None:
        self.options = options
        self.address = address
        self._client = connect(address)
        self._running: set[Any] = set()
        self._lock = threading.Lock()
        try:
            self.width, toolchain = introduced(self._client, address, warn)
            self._name = runner_name(options, toolchain)
        except BaseException:
            self.close()
            raise

    @property
    def name(self) -> str:
        """That of the workers' simulator, so that a run may be continued without the cluster."""
        return self._name

    def digest(self, kernel: ProfileKernel) -> str:
        """As this machine has it: a run may be continued without the cluster."""
        return EmbeddedRunner(self.options).digest(kernel)

    def run(self, kernel: ProfileKernel, places: Places) -> RunOutcome:
        sent = pack(kernel, self.options)
        places.step("on the cluster")
        future = self._client.submit(run_sent_job, sent, key=sent_job_key(sent), pure=False, retries=0)
        with self._lock:
            self._running.add(future)
        try:
            returned = future.result()
        except InsightTraceError as error:
            return RunOutcome(FAILED, str(error))
        except Exception as error:  # a worker that died, or a connection that was lost
            if future.cancelled():
                raise JobError("interrupted") from None
            cause = f"{type(error).__name__}: {error}".splitlines()[0]
            return RunOutcome(FAILED, f"the cluster at {self.address} did not finish the kernel: {cause}")
        finally:
            with self._lock:
                self._running.discard(future)
        try:
            came = opened(returned)
            unpack_into(came.logs, places.logs)
            unpack_into(came.results, places.folder)
        except InsightTraceError as error:
            return RunOutcome(FAILED, str(error))
        return came.outcome

    def stop(self) -> None:
        with self._lock:
            running = list(self._running)
        self._client.cancel(running, force=True)

    def close(self) -> None:
        """Leaves the cluster, which goes on."""
        self._client.close()
