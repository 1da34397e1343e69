"""Correct kernels: what is wrong, any moment of a run, why a number is what it is, where runs part."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from insight_trace.api import PathName, as_path, numbers
from insight_trace.errors import RequestError
from insight_trace.options import RunKeywords, RunOptions, run_options
from insight_trace.results import Progress, silent, steps_of

if TYPE_CHECKING:
    from insight_trace.debug.debug_session import Session
    from insight_trace.debug.divergence_text import DivergeResult
    from insight_trace.debug.explained import Explained
    from insight_trace.replay.examine import CheckResult


def check(
    scene: PathName,
    *,
    case: str | None = None,
    func_id: int | Iterable[int] | None = None,
    kernel: str | None = None,
    dump_dir: PathName | None = None,
    dispatch_id: int | None = None,
    arg_spec: PathName | None = None,
    allow: PathName | None = None,
    sarif: PathName | None = None,
    force: bool = False,
    as_recorded: bool = False,
    options: RunOptions | None = None,
    progress: Progress = silent,
    **run: Unpack[RunKeywords],
) -> CheckResult:
    """What is wrong in a kernel, and on which line: races, memory, synchronisation.

    `scene` is a scene, a PyPTO build or an earlier workspace; without a kernel every one that the case dispatches is
    checked once. `allow` is a file of findings to accept, `sarif` a file to write.
    """
    import json

    from insight_trace.check.sarif import sarif as sarif_log
    from insight_trace.check.suppressions import in_file
    from insight_trace.replay.examine import CheckResult, examine
    from insight_trace.replay.jobs import ReplayRequest
    from insight_trace.storage import refuse_existing, write_whole

    how = run_options(options, run)
    if how.orders < 0:
        raise RequestError(f"--perturb takes a number of orders, not {how.orders}")
    log = as_path(sarif)
    if log is not None:
        refuse_existing(log, force=force)
    request = ReplayRequest(
        Path(scene), case, numbers(func_id), kernel, None, as_path(dump_dir), dispatch_id, arg_spec=as_path(arg_spec),
        options=how,
        as_recorded=as_recorded,
    )  # fmt: skip
    found = CheckResult(tuple(examine(request, in_file(Path(allow)) if allow else [], steps_of(progress))))
    if log is not None:
        write_whole(log, json.dumps(sarif_log(found.findings, Path.cwd()), indent=1) + "\n", force=force)
    return found


def open_session(workspace: PathName) -> Session:
    """A replay at any moment, forward and back: tiles, memories, flags, pipes."""
    from insight_trace.debug.debug_session import open_session as opened

    return opened(Path(workspace))


def why(workspace: PathName, element: str | None = None, *, seconds: float = 20.0) -> Explained:
    """The lines that made an element, SLOT[i,j] or ROW:dst[i,j]; without one, those that made an output wrong.

    `seconds` is for runs with a line changed, which show whether that corrects the outputs; 0: none.
    """
    from insight_trace.debug.explained import explain

    return explain(open_session(workspace), element, seconds)


def diverge(
    a: PathName, b: PathName | None = None, *, order: int | None = None, dispatch_id: int | None = None
) -> DivergeResult:
    """Where the values of two replays part; of a replay and a dump; or of a replay and its run in another order."""
    from insight_trace.debug.divergence_text import compare_values

    return compare_values(Path(a), as_path(b), order, dispatch_id)
