"""Dispatches of a run on the workers of a Dask cluster: sources go there once, times come back as plain bytes."""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from insight_trace.batch.cluster import connect, introduced
from insight_trace.errors import InputError, InsightTraceError, JobError
from insight_trace.limits import cut
from insight_trace.model import Kernel
from insight_trace.ptoas.kernel_runner import RunnerOptions
from insight_trace.run.timing_job import Timed, TimingJob, run_timing_job
from insight_trace.simulate.embedded.kernel_sources import DEPENDS
from insight_trace.simulate.embedded.toolchain import Toolchain

_TRIES_AGAIN = 1


class ClusterJobs:
    """A cluster that times dispatches."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._client = connect(address)
        try:
            introduced(self._client, address, RunnerOptions(), lambda _text: None)
        except BaseException:
            self._client.close()
            raise

    def time(self, jobs: Sequence[TimingJob]) -> Iterator[tuple[int, Timed]]:
        """Results with the places of their jobs, as they come; a worker that dies loses none."""
        completed = importlib.import_module("distributed").as_completed
        toolchain = Toolchain.find()
        sent: dict[str, Any] = {}
        places = {}
        for place, job in enumerate(jobs):
            files = sources(job, toolchain)
            name = _name(files)
            if name not in sent:
                sent[name] = self._client.scatter(dict(files), hash=True)
            future = self._client.submit(
                run_sent_job, job, name, sent[name], pure=False, retries=_TRIES_AGAIN
            )
            places[future] = place
        try:
            for future in completed(list(places)):
                yield places[future], _result(future, self.address)
        finally:
            self._client.cancel(list(places), force=True)

    def close(self) -> None:
        """Leaves the cluster, which goes on."""
        self._client.close()


def _result(future: Any, address: str) -> Timed:
    try:
        content = future.result()
    except Exception as error:  # workers died again and again, or the connection was lost
        cause = f"{type(error).__name__}: {error}".splitlines()[0]
        raise JobError(f"the cluster at {address} did not finish a dispatch: {cut(cause)}") from None
    try:
        if not isinstance(content, bytes):
            raise TypeError(type(content).__name__)
        return msgspec.msgpack.decode(content, type=Timed)
    except (msgspec.MsgspecError, TypeError, RecursionError) as error:
        raise InputError(f"a worker sent something else than times: {cut(str(error))}") from None


def sources(job: TimingJob, toolchain: Toolchain) -> Mapping[str, bytes]:
    """The job's kernels and every file that the compiler read for them."""
    files: dict[str, bytes] = {}
    for kernel in job.kernels:
        made = toolchain.kernel(
            kernel.source, kernel.core_type, target=job.target, include_dirs=kernel.include_dirs
        )
        lines = (made.parent / DEPENDS).read_text(encoding="utf-8", errors="surrogateescape").splitlines()
        for path in (str(kernel.source.resolve()), *(line.split(" ", 1)[1] for line in lines if " " in line)):
            if path not in files:
                files[str(Path(path).resolve())] = Path(path).read_bytes()
    return files


def _name(files: Mapping[str, bytes]) -> str:
    parts = [(path, hashlib.sha256(content).hexdigest()) for path, content in sorted(files.items())]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:40]


def run_sent_job(job: TimingJob, name: str, files: Mapping[str, bytes]) -> bytes:
    """On a worker: the files are put below its cache, under their own paths, and the dispatch is simulated."""
    try:
        cache = Toolchain.find().cache

        def unpack(into: Path) -> None:
            for path, content in files.items():
                place = into / path.lstrip("/")
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(content)

        root = cache.put("sent", name, unpack)
        kernels = tuple(_moved(kernel, root) for kernel in job.kernels)
        return msgspec.msgpack.encode(run_timing_job(replace(job, kernels=kernels)))
    except InsightTraceError as error:
        return msgspec.msgpack.encode(Timed(0, (), {}, 0.0, 0, failure=str(error)))


def _moved(kernel: Kernel, root: Path) -> Kernel:
    def there(path: Path) -> Path:
        return root / str(path.resolve()).lstrip("/")

    folders = tuple(str(there(Path(folder))) for folder in kernel.include_dirs)
    return replace(kernel, source=there(kernel.source), include_dirs=folders)
