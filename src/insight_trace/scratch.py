"""Folders for a while: gone when their block ends, and, where their owner was killed, when the next one begins."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from insight_trace.storage import remove_if_dead

PREFIX = "insight-trace-job-"  # every folder of this name holds a lock as long as its owner lives


@contextlib.contextmanager
def scratch_folder(purpose: str = "", parent: Path | None = None) -> Iterator[Path]:
    """A private folder among the temporary files, or in `parent`; `purpose` is for people who find it there."""
    begin = f"{PREFIX}{purpose}-" if purpose else PREFIX
    with owned_folder(parent or Path(tempfile.gettempdir()), begin, f"{PREFIX}*") as place:
        yield place


@contextlib.contextmanager
def owned_folder(parent: Path, begin: str, dead: str) -> Iterator[Path]:
    """A new folder whose name begins so, and those of dead owners, that match `dead`, are removed."""
    with contextlib.suppress(OSError):
        for left in parent.glob(dead):
            if left.is_dir():
                remove_if_dead(left)
    place = Path(tempfile.mkdtemp(prefix=begin, dir=parent))
    try:
        handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with contextlib.suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield place
        finally:
            os.close(handle)
    finally:
        shutil.rmtree(place, ignore_errors=True)
