"""Every dispatch of a dump, or a sample of them, replayed and verified: what to replay, and what came of it."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from insight_trace.arguments.slots import ReplayArguments
from insight_trace.dump.load import Dump, load_dump
from insight_trace.errors import InsightTraceError, RequestError
from insight_trace.finding import Severity
from insight_trace.limits import SOURCE_BYTES
from insight_trace.model import Case, Dispatch, Kernel, Scene
from insight_trace.reading import read_regular
from insight_trace.replay.gathering import recorded_arguments
from insight_trace.replay.replaying import target_of
from insight_trace.replay.request import ReplayRequest
from insight_trace.replay.selection import (
    RecordedDispatch,
    Selection,
    require_complete,
    select_case,
    select_kernels,
    with_recorded_members,
)
from insight_trace.replay.verification import Status, verdict, verify_outputs
from insight_trace.replay.written import written_bytes
from insight_trace.run.calibration import same_form
from insight_trace.run.job_journal import JobJournal
from insight_trace.scene.static import load_scene
from insight_trace.simulate.embedded.checked_run import run_checked
from insight_trace.simulate.embedded.simulator import EmbeddedOptions, run_embedded

FAILED = "failed"


@dataclass(frozen=True)
class BulkRequest:
    """Which dispatches of a dump, and how they are run."""

    scene: Path
    dump_dir: Path
    case: str | None = None
    func_ids: tuple[int, ...] = ()  # (): every kernel
    sample: int | None = None  # as many dispatches, spread over kernels and forms of arguments; None: all
    target: str | None = None
    platform: str | None = None
    soc_version: str | None = None
    preset: str = "device"
    check: bool = False
    seconds: float = 60.0


@dataclass(frozen=True)
class ReplayJob:
    """One dispatch to replay."""

    dispatch_id: int
    task_id: int
    kernels: tuple[Kernel, ...]
    arguments: ReplayArguments
    options: EmbeddedOptions
    name: str  # of the job, the same for the same dump, kernels and chip


@dataclass(frozen=True, slots=True)
class ReplayRow:
    """What came of one; a line of the summary."""

    dispatch_id: int
    task_id: str
    kernel: str
    func_ids: str
    blocks: int
    verdict: str  # verified, mismatch, unverifiable or failed
    cycles: int
    micros: float
    max_error: float | None
    why: str  # of every other verdict than verified
    errors: int  # that the checker found; 0 without --check
    warnings: int


def plan(request: BulkRequest) -> tuple[Scene, Case | None, list[ReplayJob]]:
    """The jobs in the order of the dump."""
    require_complete(request.dump_dir)
    scene = load_scene(request.scene)
    case = select_case(scene, request.case)
    dump = load_dump(request.dump_dir, scene)
    wanted = set(request.func_ids)
    chosen = [d for d in dump.dispatches if d.func_ids and (not wanted or set(d.func_ids) == wanted)]
    if not chosen:
        raise RequestError(
            f"no dispatch of {request.dump_dir} is of these kernels",
            hint="`insight-trace dump list DIR` shows them",
        )
    if request.sample is not None:
        chosen = sampled(chosen, request.sample)
    steps: dict[frozenset[int], int] = {}
    place = {}
    for dispatch in dump.dispatches:
        kind = frozenset(dispatch.func_ids)
        place[dispatch.dispatch_id] = steps.get(kind, 0)
        steps[kind] = steps.get(kind, 0) + 1
    mark = _mark(dump)
    return (
        scene,
        case,
        [
            _job(request, scene, case, RecordedDispatch(dump, dispatch, place[dispatch.dispatch_id]), mark)
            for dispatch in chosen
        ],
    )


def sampled(dispatches: Sequence[Dispatch], count: int) -> list[Dispatch]:
    """As many of them, each form of arguments in its turn, the rarest kernels too; of a form evenly spread ones."""
    forms: dict[object, list[Dispatch]] = {}
    for dispatch in dispatches:
        forms.setdefault(same_form(dispatch), []).append(dispatch)
    groups = sorted(forms.values(), key=lambda group: group[0].dispatch_id)
    takes = [0] * len(groups)
    left = min(count, len(dispatches))
    while left:
        for number, group in enumerate(groups):
            if left and takes[number] < len(group):
                takes[number] += 1
                left -= 1
    found = []
    for group, take in zip(groups, takes, strict=True):
        found += [group[i * len(group) // take] for i in range(take)]
    return sorted(found, key=lambda dispatch: dispatch.dispatch_id)


def _mark(dump: Dump) -> str:
    status = Path(dump.path).stat()
    return f"{Path(dump.path).resolve()} {status.st_size} {status.st_mtime_ns}"


def _job(
    request: BulkRequest, scene: Scene, case: Case | None, recorded: RecordedDispatch, mark: str
) -> ReplayJob:
    ids = tuple(dict.fromkeys(recorded.dispatch.func_ids))
    selection = Selection(scene, case, select_kernels(scene, func_ids=ids))
    gathered = recorded_arguments(recorded, selection)
    selection = with_recorded_members(selection, gathered.dispatch)
    one = ReplayRequest(
        request.scene, case=request.case, func_ids=ids, dump_dir=request.dump_dir, platform=request.platform,
        soc_version=request.soc_version, target=request.target,
    )  # fmt: skip
    options = EmbeddedOptions(
        soc_version=request.soc_version,
        target=request.target or target_of(one, selection),
        preset=request.preset,
        seconds=request.seconds,
        check=request.check,
        host_cores=1,  # the others run other dispatches
    )
    dispatch = recorded.dispatch
    sources = [
        hashlib.sha256(read_regular(k.source, most=SOURCE_BYTES)).hexdigest() for k in selection.kernels
    ]
    parts = (mark, dispatch.dispatch_id, sources, options)
    name = hashlib.sha256(repr(parts).encode()).hexdigest()[:32]
    return ReplayJob(
        dispatch.dispatch_id, dispatch.task_id, selection.kernels, gathered.arguments, options, name
    )


def run_replay_job(job: ReplayJob) -> ReplayRow:
    """Simulates the dispatch and compares its outputs with what was recorded. What goes wrong is its verdict."""
    try:
        return _replayed(job)
    except InsightTraceError as error:
        return _row(job, FAILED, why=str(error).splitlines()[0])


def _replayed(job: ReplayJob) -> ReplayRow:
    run = (run_checked if job.options.check else run_embedded)(job.kernels, job.arguments, job.options)
    if run.failure is not None:
        return _row(job, FAILED, why=str(run.failure))
    checks = verify_outputs(job.arguments, run.buffers, written=functools.partial(written_bytes, run))
    worst = max((c.max_error for c in checks if c.max_error is not None), default=None)
    why = "; ".join(c.text for c in checks if c.status is not Status.VERIFIED)
    severities = [finding.severity for finding in run.findings]
    return _row(
        job, str(verdict(checks)), run.cycles, run.cycles / run.mhz, worst, why if checks else "it has no outputs",
        severities.count(Severity.ERROR), severities.count(Severity.WARNING),
    )  # fmt: skip


def _row(
    job: ReplayJob, verdict: str, cycles: int = 0, micros: float = 0.0, worst: float | None = None, why: str = "",
    errors: int = 0, warnings: int = 0,
) -> ReplayRow:  # fmt: skip
    return ReplayRow(
        job.dispatch_id, f"0x{job.task_id:016x}", "+".join(k.name for k in job.kernels),
        ",".join(str(k.func_id) for k in job.kernels), job.arguments.block_count, verdict, cycles, round(micros, 4),
        worst, why, errors, warnings,
    )  # fmt: skip


def is_known(job: ReplayJob, journal: JobJournal[ReplayRow]) -> bool:
    """Whether there is an answer; what failed may have had a full disk, and is tried again."""
    return job.name in journal.known and journal.known[job.name].verdict != FAILED


def replay_all(
    jobs: Sequence[ReplayJob],
    execute: Callable[[Sequence[ReplayJob]], Iterable[tuple[int, ReplayRow]]],
    journal: JobJournal[ReplayRow],
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> list[ReplayRow]:
    """A row for each job, in their order; what the journal has is not run again, unless it failed."""
    new = [job for job in jobs if not is_known(job, journal)]
    done = len(jobs) - len(new)
    progress(done, len(jobs))
    for place, row in execute(new):
        journal.add(new[place].name, row)
        done += 1
        progress(done, len(jobs))
    return [journal.known[job.name] for job in jobs]
