"""The checker on kernels of a scene, of a build, or of an earlier replay: no trace is written, only findings."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from insight_trace.capture.session import CaptureOptions, run_capture
from insight_trace.check.suppressions import Allowance, apply, in_sources
from insight_trace.dump.load import load_dump
from insight_trace.errors import JobError
from insight_trace.finding import Finding, Severity
from insight_trace.model import Scene
from insight_trace.outcome import Failure, Simulation
from insight_trace.replay.gathering import Gathered, gather_arguments
from insight_trace.replay.replay_folder import RECORD, read_record
from insight_trace.replay.replaying import target_of
from insight_trace.replay.request import ReplayRequest
from insight_trace.replay.selection import Selection, select_case, select_kernels, with_recorded_members
from insight_trace.scratch import scratch_folder


@dataclass(frozen=True)
class Examined:
    """One dispatch of one kernel, or of the members of a mix, and what is wrong in it."""

    kernels: tuple[str, ...]
    func_ids: tuple[int, ...]
    findings: tuple[Finding, ...]
    allowed: tuple[Finding, ...] = ()
    unused: tuple[Allowance, ...] = ()  # allowances in its sources that covered nothing
    failure: Failure | None = None  # it did not run to its end

    @property
    def errors(self) -> int:
        return sum(finding.severity is Severity.ERROR for finding in self.findings)


def examine(
    request: ReplayRequest,
    allowances: Sequence[Allowance] = (),
    progress: Callable[[str], None] = lambda _step: None,
    orders: int = 0,
    dump: Path | None = None,
) -> list[Examined]:
    """Checks what the request names: a workspace's dispatch, the kernels asked for, or all that the case runs.

    Each is also run under so many other `orders` of cores and pipes. With a `dump`: the first dispatch of every kernel
    in it.
    """
    found = []
    for selection, gathered, target in dispatches(request, progress, dump):
        progress(f"check {selection.kernels[0].name}")
        found.append(_examined(request, selection, gathered, target, allowances, orders))
    return found


def dispatches(
    request: ReplayRequest, progress: Callable[[str], None], dump: Path | None = None
) -> Iterator[tuple[Selection, Gathered, str]]:
    """What the request names: each selection of kernels with its arguments and its target."""
    if (request.scene / RECORD).is_file():
        selection, gathered, record = read_record(request.scene)
        yield selection, gathered, request.target or record.get("target") or "a2a3"
        return
    from insight_trace.scene.static import load_scene

    scene = load_scene(request.scene)
    case = select_case(scene, request.case)
    with scratch_folder("check") as folder:
        for one in _recorded(request, scene, folder, progress, dump):
            kernels = select_kernels(scene, func_ids=one.func_ids, name=one.kernel, source=one.kernel_source)
            selection = Selection(scene, case, kernels)
            gathered = gather_arguments(one, selection)
            selection = with_recorded_members(selection, gathered.dispatch)
            yield selection, gathered, request.target or target_of(one, selection)


def _recorded(
    request: ReplayRequest, scene: Scene, folder: Path, progress: Callable[[str], None], dump: Path | None
) -> Iterator[ReplayRequest]:
    """The request with arguments for each dispatch: what was given, or what a run of the case records in `folder`."""
    if request.dump_dir is not None or request.arg_spec is not None or request.recipe:
        yield request
        return
    if dump is not None:
        yield from _of_dump(request, scene, dump)
        return
    progress("capture")
    if request.func_ids or request.kernel or request.kernel_source:
        chosen = select_kernels(
            scene, func_ids=request.func_ids, name=request.kernel, source=request.kernel_source
        )
        ids = tuple(kernel.func_id for kernel in chosen if kernel.func_id is not None)
        options = CaptureOptions(only_kernels=ids, only_task=request.task_id)
    else:
        # what is dispatched is found by a run without payload; then each is recorded once
        listed = _captured(request, folder / "list", CaptureOptions(level=3))
        first: dict[tuple[int, ...], int] = {}
        for dispatch in load_dump(listed, scene).dispatches:
            first.setdefault(dispatch.func_ids, dispatch.dispatch_id)
        options = CaptureOptions(only_dispatches=tuple(first.values()))
    yield from _of_dump(request, scene, _captured(request, folder / "dump", options))


def _of_dump(request: ReplayRequest, scene: Scene, dump: Path) -> Iterator[ReplayRequest]:
    """The request for the first dispatch of each kernel and mix of a dump."""
    seen = set()
    for dispatch in load_dump(dump, scene).dispatches:
        if dispatch.func_ids not in seen:
            seen.add(dispatch.func_ids)
            yield replace(
                request,
                kernel=None,
                kernel_source=None,
                task_id=None,
                func_ids=dispatch.func_ids,
                dump_dir=dump,
                dispatch_id=dispatch.dispatch_id,
            )


def _captured(request: ReplayRequest, folder: Path, options: CaptureOptions) -> Path:
    options = dataclasses.replace(options, platform=request.platform, seconds=request.seconds, golden=False)
    capture = run_capture(request.scene, request.case, folder, options)
    if capture.directory is None or capture.failure is not None:
        raise JobError(
            f"the case does not run: {capture.failure or capture.note}",
            hint="name one kernel with --func-id and give its arguments with --dump-dir or --arg-spec",
        )
    return capture.directory


def _examined(
    request: ReplayRequest,
    selection: Selection,
    gathered: Gathered,
    target: str,
    allowances: Sequence[Allowance],
    orders: int,
) -> Examined:
    from insight_trace.simulate.embedded.checked_run import run_checked
    from insight_trace.simulate.embedded.simulator import EmbeddedOptions

    options = EmbeddedOptions(
        soc_version=request.soc_version, target=target, preset=request.preset, seconds=request.seconds
    )
    run: Simulation = run_checked(selection.kernels, gathered.arguments, options, orders=orders)
    written = in_sources(run.sources)
    kept, allowed, unused = apply(run.findings, [*written, *allowances])
    return Examined(
        tuple(kernel.name for kernel in selection.kernels),
        tuple(kernel.func_id for kernel in selection.kernels if kernel.func_id is not None),
        tuple(kept),
        tuple(allowed),
        tuple(allowance for allowance in unused if allowance in written),
        run.failure,
    )
