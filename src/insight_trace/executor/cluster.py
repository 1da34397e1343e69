"""The workers of a Dask cluster: the connection, what they are asked first, and jobs that go there."""

from __future__ import annotations

import contextlib
import importlib
import os
import queue
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from insight_trace import __version__
from insight_trace.errors import InputError, InsightTraceError, JobError, RequestError
from insight_trace.executor import tried
from insight_trace.executor.packing import answered, hold, pack, run_packed
from insight_trace.limits import cut
from insight_trace.simulate.embedded.toolchain import KernelBuildError

J = TypeVar("J")
R = TypeVar("R")
_LOOK_SECONDS, _LOOKS = 10, 18  # how often, and how many times in a row, a cluster may be without workers
_RETRIES = 1  # of a job whose worker died
_CONNECT_SECONDS = 20
_ADDRESS = re.compile(r"(?:(?:tcp|tls|ws|wss|ucx)://)?[\w.\-\[\]:]+:\d{1,5}|inproc://.+")


class Cluster:
    """Sends jobs with the content of every file that they name, and puts what they wrote where it belongs.

    Workers share no disk with who asks. What comes back is bytes, which are checked and never unpickled.
    """

    def __init__(
        self, address: str, width: int | None = None, warn: Callable[[str], None] = lambda _text: None
    ) -> None:
        self.address = address
        self._client = connect(address)
        try:
            threads = introduced(self._client, address, warn)
        except BaseException:
            self._client.close()
            raise
        self.width = width or threads

    def run(
        self, work: Callable[[J], R], jobs: Iterable[J], kind: type[R], *, ahead: int = 2
    ) -> Iterator[tuple[int, R | InsightTraceError]]:
        places = enumerate(jobs)
        held: dict[str, Any] = {}  # files that wait on the workers, by the name of their content
        running: dict[Any, tuple[int, J, tuple[Path, ...]]] = {}
        suspects: deque[tuple[int, J]] = deque()  # whose workers died: with them, or with a neighbour
        alone = False  # each of them by itself, when all others are done
        ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        answered_here: deque[tuple[int, R | InsightTraceError]] = deque()
        try:
            while True:
                while len(running) < (1 if alone else self.width * ahead):
                    item = next(places, None) or (suspects.popleft() if alone and suspects else None)
                    if item is None:
                        break
                    try:
                        future, outputs = self._submit(work, item[1], held)
                    except KernelBuildError:  # what it reads is not known: it fails here as it would there
                        answered_here.append((item[0], tried(work, item[1])))
                        continue
                    except InsightTraceError as error:
                        answered_here.append((item[0], error))
                        continue
                    running[future] = (*item, outputs)
                    future.add_done_callback(ended.put)
                while answered_here:
                    yield answered_here.popleft()
                if not running:
                    if not suspects:
                        return
                    alone = True
                    continue
                future = self._next(ended)
                place, job, outputs = running.pop(future)
                if not alone and _lost_its_workers(future):
                    suspects.append((place, job))
                else:
                    yield place, self._result(future, kind, outputs)
        finally:
            self._client.cancel(list(running), force=True)

    def _next(self, ended: queue.SimpleQueue[Any]) -> Any:
        """One that has ended. JobError where no worker has been there for a while to run it."""
        alone = 0
        while alone < _LOOKS:
            with contextlib.suppress(queue.Empty):
                return ended.get(timeout=_LOOK_SECONDS)
            alone = 0 if self._client.nthreads() else alone + 1
        raise JobError(
            f"the cluster at {self.address} has no workers any more", hint=f"dask worker {self.address}"
        )

    def _submit(self, work: Callable[[J], R], job: J, held: dict[str, Any]) -> tuple[Any, tuple[Path, ...]]:
        packed, files, outputs = pack(work, job)
        if packed.files not in held:
            # a task, so that the scheduler makes it again if its worker dies; it moves once to each worker
            content = {str(path): path.read_bytes() for path in files}
            key = f"insight-trace-files-{packed.files}"
            held[packed.files] = self._client.submit(hold, content, key=key, pure=True)
        future = self._client.submit(
            run_packed, packed, held[packed.files], key=f"insight-trace-{os.urandom(8).hex()}",
            pure=False, retries=_RETRIES,
        )  # fmt: skip
        return future, outputs

    def _result(self, future: Any, kind: type[R], outputs: tuple[Path, ...]) -> R | InsightTraceError:
        try:
            content = future.result()
        except Exception as error:  # workers died again and again, or the connection was lost
            if self._client.status != "running" or isinstance(
                error, OSError
            ):  # no job's: jobs answer in bytes
                raise JobError(
                    f"the scheduler at {self.address} went away",
                    hint="start it and its workers again: the same command goes on where it was",
                ) from None
            cause = f"{type(error).__name__}: {error}".splitlines()[0]
            return JobError(f"the cluster at {self.address} did not finish the job: {cut(cause)}")
        try:
            return answered(content, kind, outputs)
        except InsightTraceError as error:
            return error

    def close(self) -> None:
        """Leaves the cluster, which goes on."""
        self._client.close()


def _lost_its_workers(future: Any) -> bool:
    return future.status == "error" and type(future.exception()).__name__ == "KilledWorker"


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


def introduced(client: Any, address: str, warn: Callable[[str], None]) -> int:
    """Threads of all workers together. Workers of another version are refused."""
    threads = client.nthreads()
    if not threads:
        raise JobError(f"the cluster at {address} has no workers", hint=f"dask worker {address}")
    try:
        answers = {worker: identity(said) for worker, said in client.run(worker_identity).items()}
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
    if len({name for _, name in answers.values()}) > 1:
        warn(f"the workers of {address} have different compilers; kernels may differ in plain loads")
    return int(sum(threads.values()))


def worker_identity() -> bytes:
    """What a worker answers when it is asked who it is: its version, and its toolchain, as bytes."""
    from insight_trace.simulate.embedded.toolchain import Toolchain

    try:
        return msgspec.msgpack.encode((__version__, Toolchain.find().identity[:16]))
    except InsightTraceError as error:
        return msgspec.msgpack.encode(("", str(error)))


def identity(content: object) -> tuple[str, str]:
    """The answer to that, checked."""
    try:
        if not isinstance(content, bytes):
            raise TypeError(type(content).__name__)
        return msgspec.msgpack.decode(content, type=tuple[str, str])
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
        raise InputError(f"a worker sent something else than its name: {cut(str(error))}") from None
