"""Dispatches on the workers of a Dask cluster: sources and payload go there, results come back as plain bytes."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from insight_trace.arguments.content import FromFile, OtherRecord, Recorded
from insight_trace.arguments.slots import ReplayArguments, ReplayTensor
from insight_trace.batch.cluster import connect, introduced
from insight_trace.errors import InputError, InsightTraceError, JobError
from insight_trace.limits import cut
from insight_trace.model import Kernel, Payload
from insight_trace.run.bulk_replay import ReplayJob, ReplayRow, run_replay_job
from insight_trace.run.timing_job import Timed, TimingJob, run_timing_job
from insight_trace.scratch import scratch_folder
from insight_trace.simulate.embedded.compiled_from import sources_of
from insight_trace.simulate.embedded.toolchain import Toolchain

_TRIES_AGAIN = 1
R = TypeVar("R")


class ClusterJobs:
    """A cluster that times and replays dispatches."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._client = connect(address)
        try:
            introduced(self._client, address, lambda _text: None)
        except BaseException:
            self._client.close()
            raise

    def time(self, jobs: Sequence[TimingJob]) -> Iterator[tuple[int, Timed]]:
        """Results with the places of their jobs, as they come; a worker that dies loses none."""
        wanted = [(job.kernels, job.target) for job in jobs]
        return self._run(run_sent_timing, wanted, [(job,) for job in jobs], Timed)

    def replay(self, jobs: Sequence[ReplayJob]) -> Iterator[tuple[int, ReplayRow]]:
        """The same for replays; what was recorded of a dispatch goes with it."""
        wanted = [(job.job.kernels, job.job.target) for job in jobs]
        return self._run(run_sent_replay, wanted, (_sent(job) for job in jobs), ReplayRow)

    def _run(
        self,
        run: Callable[..., bytes],
        wanted: Sequence[tuple[Sequence[Kernel], str]],
        sent_to: Any,
        kind: type[R],
    ) -> Iterator[tuple[int, R]]:
        completed = importlib.import_module("distributed").as_completed
        toolchain = Toolchain.find()
        sent: dict[str, Any] = {}
        places = {}
        for place, ((kernels, target), arguments) in enumerate(zip(wanted, sent_to, strict=True)):
            files = sources(kernels, target, toolchain)
            name = _name(files)
            if (
                name not in sent
            ):  # a task, so that the scheduler makes it again if its worker dies; it moves once a worker
                sent[name] = self._client.submit(held, dict(files), key=f"insight-trace-{name}", pure=True)
            future = self._client.submit(run, name, sent[name], *arguments, pure=False, retries=_TRIES_AGAIN)
            places[future] = place
        try:
            for future in completed(list(places), loop=self._client.loop):
                yield places[future], _result(future, self.address, kind)
        finally:
            self._client.cancel(list(places), force=True)

    def close(self) -> None:
        """Leaves the cluster, which goes on."""
        self._client.close()


def _result(future: Any, address: str, kind: type[R]) -> R:
    try:
        content = future.result()
    except Exception as error:  # workers died again and again, or the connection was lost
        cause = f"{type(error).__name__}: {error}".splitlines()[0]
        raise JobError(f"the cluster at {address} did not finish a dispatch: {cut(cause)}") from None
    try:
        if not isinstance(content, bytes):
            raise TypeError(type(content).__name__)
        return msgspec.msgpack.decode(content, type=kind)
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
        raise InputError(f"a worker sent something else than a result: {cut(str(error))}") from None


def sources(kernels: Sequence[Kernel], target: str, toolchain: Toolchain) -> Mapping[str, bytes]:
    """The kernels and every file that the compiler read for them."""
    files: dict[str, bytes] = {}
    for kernel in kernels:
        made = toolchain.kernel(
            kernel.source, kernel.core_type, target=target, include_dirs=kernel.include_dirs
        )
        for path in (kernel.source, *sources_of(made)):
            files[str(path.resolve())] = path.read_bytes()
    return files


def _name(files: Mapping[str, bytes]) -> str:
    parts = [(path, hashlib.sha256(content).hexdigest()) for path, content in sorted(files.items())]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:40]


# --- payload


def with_payload(arguments: ReplayArguments) -> tuple[ReplayArguments, bytes]:
    """The arguments, and what they read from files here as one piece; places in it stand for the files."""
    piece = bytearray()

    def moved(payload: Payload) -> Payload:
        with payload.path.open("rb") as file:
            file.seek(payload.offset)
            content = file.read(payload.size)
        place = len(piece)
        piece.extend(content)
        return replace(payload, path=Path(), offset=place)

    return with_payloads(arguments, moved), bytes(piece)


def _sent(job: ReplayJob) -> tuple[ReplayJob, bytes]:
    arguments, piece = with_payload(job.job.arguments)
    return dataclasses.replace(job, job=replace(job.job, arguments=arguments)), piece


def with_payloads(arguments: ReplayArguments, moved: Callable[[Payload], Payload]) -> ReplayArguments:
    return replace(
        arguments,
        slots=tuple(_moved_slot(s, moved) if isinstance(s, ReplayTensor) else s for s in arguments.slots),
    )


def _moved_slot(tensor: ReplayTensor, moved: Callable[[Payload], Payload]) -> ReplayTensor:
    content = tensor.content
    if isinstance(content, FromFile):
        raise JobError("a file of the user's does not go to a cluster", hint="replay without --cluster")
    if isinstance(content, Recorded | OtherRecord):
        content = replace(content, payload=moved(content.payload))
    expected = None if tensor.expected is None else moved(tensor.expected)
    return replace(tensor, content=content, expected=expected)


# --- on a worker


def held(files: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """Files that wait for the jobs that want them."""
    return files


def run_sent_timing(name: str, files: Mapping[str, bytes], job: TimingJob) -> bytes:
    """Simulates a dispatch there."""
    try:
        root = _unpacked(name, files)
        return msgspec.msgpack.encode(
            run_timing_job(dataclasses.replace(job, kernels=moved(job.kernels, root)))
        )
    except InsightTraceError as error:
        return msgspec.msgpack.encode(Timed(0, (), {}, 0.0, 0, failure=str(error)))


def run_sent_replay(name: str, files: Mapping[str, bytes], job: ReplayJob, piece: bytes) -> bytes:
    """Replays a dispatch there."""
    root = _unpacked(name, files)
    with scratch_folder("payload") as folder:
        path = folder / "payload"
        path.write_bytes(piece)
        arguments = with_payloads(job.job.arguments, lambda payload: replace(payload, path=path))
        here = replace(job.job, kernels=moved(job.job.kernels, root), arguments=arguments)
        row = run_replay_job(dataclasses.replace(job, job=here))
    return msgspec.msgpack.encode(row)


def _unpacked(name: str, files: Mapping[str, bytes]) -> Path:
    """The files below the worker's cache, under their own paths; they stay for the next job."""

    def unpack(into: Path) -> None:
        for path, content in files.items():
            place = into / path.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)

    return Toolchain.find().cache.put("sent", name, unpack)


def moved(kernels: Sequence[Kernel], root: Path) -> tuple[Kernel, ...]:
    def there(path: Path) -> Path:
        return root / str(path.resolve()).lstrip("/")

    return tuple(
        replace(k, source=there(k.source), include_dirs=tuple(str(there(Path(d))) for d in k.include_dirs))
        for k in kernels
    )
