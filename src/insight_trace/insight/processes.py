"""A second process for work that writes files of its own, where one is to be had."""

from __future__ import annotations

import contextlib
import os
import threading
import warnings
from collections.abc import Callable, Iterator

from insight_trace.errors import JobError


@contextlib.contextmanager
def beside_work(work: Callable[[], None], *, apart: bool) -> Iterator[None]:
    """Does `work` while the block runs, in a child if `apart`, and before it otherwise.

    A child is a copy of this process, so it is made only while no other thread runs that could hold a lock.
    """
    if not apart or not hasattr(os, "fork") or threading.active_count() > 1 or (os.cpu_count() or 1) < 2:
        work()
        yield
        return
    with warnings.catch_warnings():
        # newer Pythons warn of any native thread; those of NumPy's algebra are idle and not used here
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException as error:
            os.write(2, f"insight-trace: {error!r}\n".encode(errors="replace"))
        finally:
            os._exit(code)  # neither flushes nor runs what belongs to the parent
    try:
        yield
    finally:
        _, status = os.waitpid(child, 0)
    if status != 0:
        raise JobError("the second process could not write the timelines of the cores")
