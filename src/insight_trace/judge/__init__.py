"""The judge: one call, one answer for a candidate kernel. `insight-trace judge` is a skin over it."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from insight_trace import make_callable
from insight_trace.errors import InputError, JobError
from insight_trace.judge.task import Task, read_task
from insight_trace.judge.verdict import Outcome, Verdict
from insight_trace.limits import cut

__all__ = ["Outcome", "Task", "Verdict", "judge", "judge_all", "read_task"]

_SANDBOX = "INSIGHT_TRACE_SANDBOX"


def judge(candidate: str | Path, task: Task | str | Path) -> Verdict:
    """Compiles a kernel, runs it on a task's inputs, and says what it is worth, and why.

    The same candidate and task give the same verdict. Candidates are compiled and run in the strict sandbox, unless
    INSIGHT_TRACE_SANDBOX says otherwise.
    """
    from insight_trace.judge.judging import judge_file

    with _strict():
        return judge_file(_timed(task if isinstance(task, Task) else read_task(task)), Path(candidate))


def judge_all(
    candidates: Sequence[str | Path],
    task: Task | str | Path,
    *,
    jobs: int | None = None,
    cluster: str | None = None,
    stop: threading.Event | None = None,
) -> Iterator[tuple[int, Verdict]]:
    """Verdicts with the places of their candidates, as they come, from processes that stay.

    An event that is set ends it before the next verdict; so does closing the iterator.
    """
    from insight_trace.executor import open_executor, required
    from insight_trace.simulate.embedded.toolchain import Toolchain

    asked = task if isinstance(task, Task) else read_task(task)
    paths = [Path(candidate) for candidate in candidates]
    with _strict():
        Toolchain.find().runner()  # built once, before there are many
        asked = _timed(asked)
        with contextlib.closing(open_executor(jobs, cluster)) as executor:
            results = required(executor.run(functools.partial(_judged, asked), paths, Verdict))
            for place, verdict in results:
                if stop is not None and stop.is_set():
                    raise JobError("interrupted")
                yield place, verdict


def _timed(task: Task) -> Task:
    """With the cycles of its baseline by the same model on the same chip: those of another version would favour one side."""
    from insight_trace.judge.judging import judge_file

    if not task.baseline:
        return task
    plain = replace(task, baseline="")
    found = judge_file(plain, Path(task.source) / task.baseline)
    if not found.right:
        raise InputError(
            f"the task's baseline {cut(task.baseline)} is no measure: {found.outcome}: {found.reason}",
            hint="name a kernel that is right, or leave the baseline out",
        )
    return replace(plain, baseline_cycles=found.cycles)


def _judged(task: Task, candidate: Path) -> Verdict:
    return judge(candidate, task)


@contextlib.contextmanager
def _strict() -> Iterator[None]:
    """Candidates are written by strangers."""
    if os.environ.get(_SANDBOX):
        yield
        return
    os.environ[_SANDBOX] = "strict"
    try:
        yield
    finally:
        os.environ.pop(_SANDBOX, None)


make_callable(__name__)
