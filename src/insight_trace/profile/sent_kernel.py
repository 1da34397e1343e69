"""One kernel on its way to another machine, and what comes back. Workers share no disk with who asks."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import msgspec
from msgspec.structs import replace as struct_replace

from insight_trace.batch.cluster_jobs import moved, sources, with_payload, with_payloads
from insight_trace.errors import InputError, InsightTraceError
from insight_trace.limits import BUFFER_BYTES, cut
from insight_trace.options import RunOptions
from insight_trace.profile.embedded_runner import EmbeddedRunner
from insight_trace.profile.kernel_runner import FAILED, Places, RunOutcome
from insight_trace.ptoas.planned_kernel import BufferArg, ProfileKernel
from insight_trace.ptoas.python_trace import python_files
from insight_trace.reading import read_regular
from insight_trace.scratch import scratch_folder
from insight_trace.simulate.embedded.toolchain import KernelBuildError


@dataclass(frozen=True, slots=True)
class SentJob:
    """A kernel with the content of every file that it names."""

    kernel: ProfileKernel
    files: Mapping[str, bytes]  # path here -> content
    changed: int  # when the source was last changed, in nanoseconds: it dates the result
    options: RunOptions
    payload: bytes = (
        b""  # what the dispatch of the build's run was recorded with; arguments name places in it
    )


@dataclass(frozen=True, slots=True)
class Returned:
    """The outcome, and the files that the run left, by path below their folder."""

    outcome: RunOutcome
    results: Mapping[str, bytes]
    logs: Mapping[str, bytes]


def pack(kernel: ProfileKernel, options: RunOptions) -> SentJob:
    """Reads what the kernel names: sources with all that they include, the user's Python, files, recorded payload."""
    runner, kernel = _runner(options), _resolved(kernel)
    named = [a.file for a in kernel.arguments if isinstance(a, BufferArg) and a.file is not None]
    paths = [kernel.source, kernel.pto, *named]
    job = runner.job(kernel)
    with contextlib.suppress(KernelBuildError):  # the worker reports it
        paths += [Path(name) for name in sources(job.kernels, job.target, runner.toolchain)]
    if job.python is not None:
        paths += python_files(job.python.lines, job.python.roots)
    files = {}
    for path in dict.fromkeys(path.resolve() for path in paths):
        try:
            files[str(path)] = read_regular(path, most=BUFFER_BYTES)
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", where=str(path)) from None
    payload = b""
    if kernel.workload is not None:
        arguments, payload = with_payload(kernel.workload.arguments)
        kernel = replace(kernel, workload=replace(kernel.workload, arguments=arguments))
    return SentJob(kernel, files, kernel.source.stat().st_mtime_ns, options, payload)


def _resolved(kernel: ProfileKernel) -> ProfileKernel:
    """Without links in its paths, which another machine does not have."""
    arguments = tuple(
        replace(a, file=a.file.resolve()) if isinstance(a, BufferArg) and a.file is not None else a
        for a in kernel.arguments
    )
    work = kernel.workload
    if work is not None:
        work = replace(work, kernels=moved(work.kernels, Path("/")))
    source, pto = kernel.source.resolve(), kernel.pto.resolve()
    return replace(kernel, source=source, pto=pto, arguments=arguments, workload=work)


@lru_cache(maxsize=4)
def _runner(options: RunOptions) -> EmbeddedRunner:
    """One per process, so that the compiler is looked for once."""
    return EmbeddedRunner(options)


def run_sent_job(sent: SentJob) -> bytes:
    """Runs the kernel here, as if its files stood where they came from; what came of it as plain bytes.

    Who asked must not have to build objects of ours to read it: see `opened`.
    """
    try:
        return _closed(_run_here(sent))
    except InsightTraceError as error:
        return _closed(Returned(RunOutcome(FAILED, str(error)), {}, {}))
    except Exception as error:
        return _closed(
            Returned(RunOutcome(FAILED, f"fault on the worker: {type(error).__name__}: {error}"), {}, {})
        )


def _closed(returned: Returned) -> bytes:
    return msgspec.msgpack.encode(returned)


def opened(content: object) -> Returned:
    """What a worker sent, checked field by field; InputError if it is anything else."""
    if not isinstance(content, bytes):
        raise InputError(f"a worker sent {type(content).__name__} instead of bytes")
    try:
        return msgspec.msgpack.decode(content, type=Returned)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InputError(f"a worker sent something else than a result: {cut(str(error))}") from None


def _run_here(sent: SentJob) -> Returned:
    with scratch_folder("sent") as root:
        copies = root / "copies"
        kernel = _unpack(sent, copies, root / "payload")
        folder, logs = root / "folder", root / "logs"
        out = folder / "collect" / "out"
        for place in (out, logs):
            place.mkdir(parents=True, mode=0o700)
        places = Places(folder, out, logs, root / "case", root / "build", copies=copies)
        outcome = _runner(sent.options).run(kernel, places)
        outcome = replace(
            outcome,
            message=outcome.message.replace(str(copies), ""),
            warnings=tuple(text.replace(str(copies), "") for text in outcome.warnings),
            facts={name: text.replace(str(copies), "") for name, text in outcome.facts.items()},
        )
        return Returned(outcome, _read(folder), _read(logs))


def _unpack(sent: SentJob, copies: Path, payload: Path) -> ProfileKernel:
    """The kernel with its files in a folder of this machine, each under its own path."""

    def there(path: Path) -> Path:
        return copies / str(path).lstrip("/")

    for name, content in sent.files.items():
        target = copies / name.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        target.write_bytes(content)
    kernel, work = sent.kernel, sent.kernel.workload
    os.utime(there(kernel.source), ns=(sent.changed, sent.changed))
    arguments = tuple(
        replace(argument, file=there(argument.file))
        if isinstance(argument, BufferArg) and argument.file is not None
        else argument
        for argument in kernel.arguments
    )
    if work is not None:
        payload.write_bytes(sent.payload)
        work = replace(
            work,
            kernels=moved(work.kernels, copies),
            arguments=with_payloads(work.arguments, lambda one: struct_replace(one, path=payload)),
        )
    return replace(
        kernel, source=there(kernel.source), pto=there(kernel.pto), arguments=arguments, workload=work
    )


def _read(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.resolve().is_relative_to(folder.resolve())
    }


def unpack_into(files: Mapping[str, bytes], folder: Path) -> None:
    """Writes what came back; a name that would leave the folder is refused."""
    for name, content in files.items():
        target = folder / name
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise InputError(f"a worker sent a file called {name!r}")
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        target.write_bytes(content)


def sent_job_key(sent: SentJob) -> str:
    """A name for the task that people can tell apart in the cluster's own pages."""
    digest = hashlib.sha256(repr((sent.kernel.name, sent.changed, os.getpid())).encode())
    return f"insight-trace-{sent.kernel.name}-{digest.hexdigest()[:8]}-{os.urandom(4).hex()}"
