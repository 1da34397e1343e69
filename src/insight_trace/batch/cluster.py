"""Runs kernels on the workers of a Dask cluster, with the results of a run on this machine."""

from __future__ import annotations

import importlib
import re
import threading
from collections.abc import Callable
from typing import Any

from insight_trace import __version__
from insight_trace.batch.parcel import (
    identity,
    opened,
    pack,
    parcel_key,
    run_parcel,
    unpack_into,
    worker_identity,
)
from insight_trace.errors import InsightTraceError, JobError, RequestError
from insight_trace.limits import cut
from insight_trace.ptoas.kernel_runner import FAILED, Places, RunnerOptions, RunOutcome
from insight_trace.ptoas.planned_kernel import ProfileKernel

_CONNECT_SECONDS = 20


class ClusterRunner:
    """Sends one kernel per call; calls may come from several threads."""

    why_made_up = "a cluster runs kernels on made-up arguments"  # a dispatch of the build's run is not sent

    def __init__(
        self, address: str, options: RunnerOptions, warn: Callable[[str], None] = lambda _: None
    ) -> None:
        self.options = options
        self.address = address
        self._client = connect(address)
        self._running: set[Any] = set()
        self._lock = threading.Lock()
        try:
            self.width, self._name = introduced(self._client, address, options, warn)
        except BaseException:
            self.close()
            raise

    @property
    def name(self) -> str:
        """That of the workers' simulator, so that a run may be continued without the cluster."""
        return self._name

    def run(self, kernel: ProfileKernel, places: Places) -> RunOutcome:
        parcel = pack(kernel, self.options)
        places.step("on the cluster")
        future = self._client.submit(run_parcel, parcel, key=parcel_key(parcel), pure=False, retries=0)
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


_ADDRESS = re.compile(r"(?:(?:tcp|tls|ws|wss|ucx)://)?[\w.\-\[\]:]+:\d{1,5}|inproc://.+")


def connect(address: str) -> Any:
    if not _ADDRESS.fullmatch(address):
        raise RequestError(
            f"--cluster {cut(address)}: that is no address",
            hint="one looks like tcp://HOST:8786 or tls://HOST:8786",
        )
    try:
        distributed = importlib.import_module("distributed")
    except ImportError:
        raise RequestError(
            "--cluster needs Dask's distributed, which is not installed",
            hint="pip install 'insight-trace[cluster]'",
        ) from None
    try:
        # what comes back is bytes: nothing that a worker sends is unpickled here
        return distributed.Client(
            address,
            timeout=_CONNECT_SECONDS,
            set_as_default=False,
            deserializers=["dask", "msgpack", "error"],
        )
    except (ValueError, TypeError) as error:
        raise RequestError(
            f"--cluster {address}: {error}", hint="an address looks like tcp://HOST:8786"
        ) from None
    except OSError as error:
        raise JobError(
            f"no Dask scheduler answers at {address}: {error}",
            hint="start one with `dask scheduler`, and workers with `dask worker ADDRESS`",
        ) from None


def introduced(
    client: Any, address: str, options: RunnerOptions, warn: Callable[[str], None]
) -> tuple[int, str]:
    """Threads of all workers together, and their simulator. Workers of another version are refused."""
    threads = client.nthreads()
    if not threads:
        raise JobError(f"the cluster at {address} has no workers", hint=f"dask worker {address}")
    try:
        answers = {worker: identity(said) for worker, said in client.run(worker_identity, options).items()}
    except InsightTraceError:
        raise
    except Exception as error:  # the package is missing there, or is too old to know the question
        raise JobError(
            f"the workers of {address} cannot run kernels: {type(error).__name__}: {error}",
            hint=f"install insight-trace {__version__} and a C++ compiler where they run",
        ) from None
    broken = next((reason for version, reason in answers.values() if not version), "")
    if broken:
        raise JobError(f"the workers of {address} cannot run kernels: {broken}")
    others = {version for version, _ in answers.values()} - {__version__}
    if others:
        raise JobError(
            f"workers of {address} have insight-trace {', '.join(sorted(others))}, here is {__version__}",
            hint="the same version is needed everywhere",
        )
    names = sorted({name for _, name in answers.values()})
    if len(names) > 1:
        warn(f"the workers of {address} have different compilers; kernels may differ in plain loads")
    return sum(threads.values()), " | ".join(names)
