"""Where the files of a job lie: in memory where there is room for them, else among the temporary files."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from insight_trace.errors import JobError
from insight_trace.limits import MIB
from insight_trace.scratch import scratch_folder
from insight_trace.storage import NO_ROOM

_SHARED_MEMORY = Path(os.environ.get("INSIGHT_TRACE_SHARED_MEMORY") or "/dev/shm")
_LEAST_ROOM = 32 * MIB  # in memory, below which a job is not begun there
_LITTLE_ROOM = MIB  # the first that a run's instructions take
_TABLE_ROOM = 1024 * MIB  # for the tables of one process of a run, about twelve million instructions

Result = TypeVar("Result")


class NoRoomError(JobError):
    """A job's files do not fit where they were put."""


@contextlib.contextmanager
def job_directory(*, in_memory: bool = True) -> Iterator[Path]:
    """A private directory for one job's files, gone afterwards."""
    parent = _SHARED_MEMORY if in_memory and _has_room(_SHARED_MEMORY) else Path(tempfile.gettempdir())
    with scratch_folder(parent=parent) as place:
        yield place


def table_room(directory: Path) -> int:
    """How many bytes a process of a job may write there before it is done again on a disk; 0: as many as it has.

    What lies in memory is memory, whoever it is counted for.
    """
    elsewhere = not Path(tempfile.gettempdir()).is_relative_to(_SHARED_MEMORY)
    return _TABLE_ROOM if elsewhere and directory.is_relative_to(_SHARED_MEMORY) else 0


def _has_room(folder: Path) -> bool:
    return os.access(folder, os.W_OK | os.X_OK) and not is_full(folder, _LEAST_ROOM)


def is_full(folder: Path, least: int = _LITTLE_ROOM) -> bool:
    """Whether so little is free there that a run may have failed by it."""
    try:
        facts = os.statvfs(folder)
    except OSError:
        return True
    return facts.f_bavail * facts.f_frsize < least


def with_job_directory(work: Callable[[Path], Result]) -> Result:
    """Does the work in memory, and again on disk if memory had no room for it."""
    try:
        with job_directory() as place:
            return work(place)
    except NoRoomError:
        with job_directory(in_memory=False) as place:
            return work(place)


def take_room(file: int, start: int, size: int) -> None:
    """Makes sure that bytes of a file can be written: NoRoomError now instead of a crash later."""
    if size <= 0:
        return
    try:
        os.posix_fallocate(file, start, size)
    except OSError as error:
        if error.errno in NO_ROOM:
            raise NoRoomError(
                f"no room for {size:,} bytes of a job's files",
                hint="make room, or set TMPDIR to a file system that has it",
            ) from None
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
            raise
