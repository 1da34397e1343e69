"""One kernel on its way to another machine, and what comes back. Workers share no disk with who asks."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from insight_trace import __version__
from insight_trace.errors import InputError
from insight_trace.ptoas.embedded_runner import EmbeddedRunner, make
from insight_trace.ptoas.runner import Places, RunnerOptions, RunOutcome
from insight_trace.ptoas.spec import BufferArg, ProfileKernel


@dataclass(frozen=True, slots=True)
class Parcel:
    """A kernel with the content of every file that it names."""

    kernel: ProfileKernel
    files: Mapping[str, bytes]  # path here -> content
    changed: int  # when the source was last changed, in nanoseconds: it dates the result
    options: RunnerOptions


@dataclass(frozen=True, slots=True)
class Returned:
    """The outcome, and the files that the run left, by path below their folder."""

    outcome: RunOutcome
    results: Mapping[str, bytes]
    logs: Mapping[str, bytes]


def pack(kernel: ProfileKernel, options: RunnerOptions) -> Parcel:
    """Reads what the kernel names."""
    given = [a.file for a in kernel.arguments if isinstance(a, BufferArg) and a.file is not None]
    files = {}
    for path in (kernel.source, kernel.pto, *given):
        try:
            files[str(path)] = path.read_bytes()
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", where=str(path)) from None
    return Parcel(kernel, files, kernel.source.stat().st_mtime_ns, options)


@lru_cache(maxsize=4)
def _runner(options: RunnerOptions) -> EmbeddedRunner:
    """One per process, so that the compiler is looked for once."""
    return make(options)


def worker_identity(options: RunnerOptions) -> tuple[str, str]:
    """What a worker answers when it is asked who it is: its version, and its simulator."""
    return __version__, _runner(options).name


def run_parcel(parcel: Parcel) -> Returned:
    """Runs the kernel here, in a folder that is gone afterwards, as if its files stood where they came from."""
    with tempfile.TemporaryDirectory(prefix="insight-trace-") as name:
        root = Path(name)
        kernel = _unpack(parcel, root)
        folder, logs = root / "folder", root / "logs"
        out = folder / "collect" / "out"
        for place in (out, logs):
            place.mkdir(parents=True, mode=0o700)
        origin = parcel.kernel.source.parent
        places = Places(folder, out, logs, root / "case", root / "build", origin=origin)
        outcome = _runner(parcel.options).run(kernel, places)
        here, there = str(kernel.source.parent), str(origin)
        outcome = replace(
            outcome,
            message=outcome.message.replace(here, there),
            warnings=tuple(text.replace(here, there) for text in outcome.warnings),
        )
        return Returned(outcome, _read(folder), _read(logs))


def _unpack(parcel: Parcel, root: Path) -> ProfileKernel:
    """The kernel with its files in a folder of this machine, under their own names."""
    moved = {}
    for number, (path, content) in enumerate(parcel.files.items()):
        # A source and its .pto stay beside each other; files of the user's may share a name.
        own = path in (str(parcel.kernel.source), str(parcel.kernel.pto))
        target = root / ("source" if own else f"given{number}") / Path(path).name
        target.parent.mkdir(exist_ok=True, mode=0o700)
        target.write_bytes(content)
        moved[path] = target
    kernel = parcel.kernel
    source = moved[str(kernel.source)]
    os.utime(source, ns=(parcel.changed, parcel.changed))
    arguments = tuple(
        replace(argument, file=moved[str(argument.file)])
        if isinstance(argument, BufferArg) and argument.file is not None
        else argument
        for argument in kernel.arguments
    )
    return replace(kernel, source=source, pto=moved[str(kernel.pto)], arguments=arguments)


def _read(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def unpack_into(files: Mapping[str, bytes], folder: Path) -> None:
    """Writes what came back; a name that would leave the folder is refused."""
    for name, content in files.items():
        target = folder / name
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise InputError(f"a worker sent a file called {name!r}")
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        target.write_bytes(content)


def parcel_key(parcel: Parcel) -> str:
    """A name for the task that people can tell apart in the cluster's own pages."""
    digest = hashlib.sha256(repr((parcel.kernel.name, parcel.changed, os.getpid())).encode())
    return f"insight-trace-{parcel.kernel.name}-{digest.hexdigest()[:8]}-{os.urandom(4).hex()}"
