"""A name for a job that changes with everything that its result depends on: the one that replay --all, profile and run keep
results under. The other products keep none, and always simulate.

Kernels count as what they compile to, which covers the source, every header, flags and the compiler; the engine as its
program; the chip as the numbers that the engine gets; arguments as the bytes that a kernel reads and that its outputs are
compared with. Where a job runs, how long it may take and what is written of it do not count.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from insight_trace import __version__
from insight_trace.arguments.buffers import payload_bytes
from insight_trace.arguments.slots import (
    CallerArray,
    FromFile,
    OtherRecord,
    Recorded,
    ReplayArguments,
    ReplayScalar,
    ReplayTensor,
)
from insight_trace.chips import load_chip
from insight_trace.errors import InsightTraceError
from insight_trace.job import Job
from insight_trace.options import RunOptions
from insight_trace.reading import readable
from insight_trace.simulate.embedded.toolchain import Toolchain

_VERSION = 1  # of what is made of a result
_HEADERS = (".h", ".hh", ".hpp", ".hxx", ".inc", ".inl", ".ipp", ".def")
_SOURCES = (".cpp", ".cc", ".c")


def job_digest(job: Job, options: RunOptions, toolchain: Toolchain, *more: object) -> str:
    """The name, or "" for a job that cannot be named: a kernel that does not compile, a payload that is gone."""
    try:
        chip = load_chip(options.soc_version, target=job.target, preset=options.preset)
        kernels = [
            (
                kernel.entry,
                str(kernel.core_type),
                file_hash(
                    toolchain.kernel(
                        kernel.source,
                        kernel.core_type,
                        target=chip.target,
                        include_dirs=kernel.include_dirs,
                        mark_cost=options.mark_cost,
                    )
                ),
            )
            for kernel in job.kernels
        ]
        parts = (
            _VERSION,
            __version__,
            kernels,
            file_hash(toolchain.runner()),
            chip.name,
            chip.job_lines,
            options.chosen,
            job.arguments.block_count,
            job.held,
            argument_hashes(job.arguments),
            *more,
        )
    except (InsightTraceError, OSError):
        return ""
    return name_of(*parts)


def name_of(*parts: object) -> str:
    """A name that changes with each part, as Python writes it."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:40]


def headers_hash(folder: Path) -> str:
    """Of everything below a folder that a compiler of somebody else's may include; ours says itself what it reads."""
    found = sorted(
        Path(at, name)
        for at, _, names in os.walk(folder)
        for name in names
        if name.endswith((*_HEADERS, *_SOURCES))
    )
    files = [path for path in found if path.is_file()]
    included = b"".join(
        line for path in files for line in path.read_bytes().splitlines() if line.lstrip().startswith(b"#")
    )
    # a source beside a kernel is another kernel, unless somebody includes it
    counted = [p for p in files if p.name.endswith(_HEADERS) or os.fsencode(p.name) in included]
    return name_of([(str(path.relative_to(folder)), file_hash(path)) for path in counted])


def argument_hashes(arguments: ReplayArguments) -> list[tuple[object, ...]]:
    """What stands for each argument in a digest: its form and the bytes that are read or compared with."""
    return [_argument(item) for item in arguments.slots]


def _argument(item: ReplayTensor | ReplayScalar) -> tuple[object, ...]:
    if isinstance(item, ReplayScalar):
        return (item.slot, item.dtype.name, item.bits, str(item.tier))
    content: object = item.content
    if isinstance(content, Recorded):
        content = ("recorded", _hash([payload_bytes(content.payload).data]))
    elif isinstance(content, OtherRecord):
        view = (content.dtype.name, content.shape, content.strides, content.start_offset)
        content = ("other", view, _hash([payload_bytes(content.payload).data]))
    elif isinstance(content, FromFile):
        content = ("file", content.path.suffix, file_hash(content.path))
    elif isinstance(content, CallerArray):
        content = ("array", content.array.dtype.name, content.array.shape, _hash([content.array.tobytes()]))
    expected = item.expected and (item.expected.truncated, _hash([payload_bytes(item.expected).data]))
    return (
        item.slot, item.dtype.name, item.shape, item.strides, item.start_offset, item.declared_size, item.buffer_size,
        str(item.role), str(item.tier), item.shares, item.address, content, expected,
    )  # fmt: skip


def _hash(pieces: Iterable[bytes | memoryview]) -> str:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


def file_hash(path: Path) -> str:
    """Of a file's content; a file that has not changed is read once."""
    with readable(path):
        status = path.stat()
    return _content_hash(path, status.st_mtime_ns, status.st_size, status.st_ino)


@functools.lru_cache(maxsize=4096)
def _content_hash(path: Path, _changed: int, _size: int, _inode: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
