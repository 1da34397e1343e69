"""Memory that a scene's own functions may take: a case that is too large ends as a message, not by the system's killer."""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Iterator
from pathlib import Path

from insight_trace.errors import JobError
from insight_trace.limits import GIB, SCENE_MEMORY

# NumPy raises MemoryError; torch says it in a RuntimeError.
_TOLD_BY_OTHERS = ("can't allocate memory", "not enough memory", "cannot allocate memory")


def free_memory() -> int | None:
    """Bytes that can be had without swapping; None where nobody tells."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    found = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return int(found[0]) * 1024 if found else None


def _held() -> int:
    """Bytes of private memory that this process has, used or not: what RLIMIT_DATA counts."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[5]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


@contextlib.contextmanager
def within_memory(path: Path, what: str) -> Iterator[None]:
    """Runs code of the scene at `path` with the memory that is free now, but for a rest that others need."""
    free = free_memory()
    if free is None:
        yield
        return
    room = int(free * SCENE_MEMORY)
    before = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = _held() + room
    bounds = [bound for bound in (*before, wanted) if bound != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min(bounds), before[1]))
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        text = str(error).lower()
        if not isinstance(error, MemoryError) and not any(words in text for words in _TOLD_BY_OTHERS):
            raise
        raise JobError(
            f"{what} wants more memory than the {room / GIB:.1f} GiB that a scene may take here",
            where=str(path),
            hint="take a smaller case (insight-trace scene lists them), or a machine with more memory",
        ) from None
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)
