"""Every dispatch of a dump, or a sample of them, replayed and verified: what to replay, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from insight_trace.digest import job_digest
from insight_trace.dump.load import Dump, load_dump
from insight_trace.errors import InsightTraceError, RequestError
from insight_trace.executor import Executor, run_named
from insight_trace.executor.journal import Journal
from insight_trace.finding import Severity
from insight_trace.job import Job
from insight_trace.model import Case, Scene
from insight_trace.options import RunOptions
from insight_trace.replay.jobs import recorded_job, target_of
from insight_trace.replay.pipeline import execute
from insight_trace.replay.selection import (
    RecordedDispatch,
    case_of_dump,
    require_complete,
    select_kernels,
)
from insight_trace.replay.verification import Status, verdict
from insight_trace.scene.static import load_scene
from insight_trace.simulate.embedded.toolchain import Toolchain

FAILED = "failed"


@dataclass(frozen=True)
class ReplayJob:
    """One dispatch to replay."""

    job: Job
    options: RunOptions
    dispatch_id: int
    task_id: int


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


@dataclass(frozen=True)
class Plan:
    """What is known of the dump, and the places of the dispatches to replay."""

    scene: Scene
    case: Case | None
    dump: Dump
    chosen: Sequence[int]
    options: RunOptions

    def jobs(self) -> Iterator[tuple[str, ReplayJob]]:
        """The jobs in the order of the dump, each with its digest, made as they are asked for."""
        steps, options = self.dump.steps(), self.options
        toolchain = Toolchain.find(options.pto_isa_root, options.ascendc_root)
        for number in self.chosen:
            dispatch = self.dump.dispatches[number]
            kernels = select_kernels(self.scene, func_ids=tuple(dict.fromkeys(dispatch.func_ids)))
            target = target_of(options, self.case, kernels)
            recorded = RecordedDispatch(self.dump, dispatch, int(steps[number]))
            job = replace(
                recorded_job(recorded, self.scene, self.case, kernels, target), scene=None, case=None
            )
            name = job_digest(job, options, toolchain, dispatch.dispatch_id, dispatch.task_id)
            yield name, ReplayJob(job, options, dispatch.dispatch_id, dispatch.task_id)


def plan(
    scene_path: Path,
    dump_dir: Path,
    case_name: str | None,
    options: RunOptions,
    func_ids: Sequence[int] = (),
    sample: int | None = None,
) -> Plan:
    """What to replay: all dispatches, those of some kernels, or a sample, spread over kernels and forms of arguments."""
    require_complete(dump_dir)
    scene = load_scene(scene_path)
    dump = load_dump(dump_dir, scene)
    case = case_of_dump(dump, scene, case_name)
    chosen = dump.of_kernels(func_ids)
    if not chosen:
        raise RequestError(
            f"no dispatch of {dump_dir} is of these kernels",
            hint="`insight-trace dump list DIR` shows them",
        )
    if sample is not None:
        chosen = [chosen[i] for i in sampled(dump.forms(chosen), sample)]
    # of the host's cores the others run other dispatches
    return Plan(scene, case, dump, chosen, replace(options, simulator="embedded", host_cores=1))


def sampled(forms: Sequence[Hashable], count: int) -> list[int]:
    """The places of as many of them, each form of arguments in its turn; of a form evenly spread ones."""
    places: dict[Hashable, list[int]] = {}
    for place, form in enumerate(forms):
        places.setdefault(form, []).append(place)
    groups = list(places.values())
    takes = [0] * len(groups)
    left = min(count, len(forms))
    while left:
        for number, group in enumerate(groups):
            if left and takes[number] < len(group):
                takes[number] += 1
                left -= 1
    found = []
    for group, take in zip(groups, takes, strict=True):
        found += [group[i * len(group) // take] for i in range(take)]
    return sorted(found)


def run_replay_job(job: ReplayJob) -> ReplayRow:
    """Simulates the dispatch and compares its outputs with what was recorded. What goes wrong is its verdict."""
    try:
        return _replayed(job)
    except InsightTraceError as error:
        return _row(job, FAILED, why=str(error).splitlines()[0])


def _replayed(job: ReplayJob) -> ReplayRow:
    done = execute(job.job, job.options, record=False)
    run, checks = done.simulation, done.checks
    assert run is not None
    if run.failure is not None:
        return _row(job, FAILED, why=str(run.failure))
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
        job.dispatch_id, f"0x{job.task_id:016x}", "+".join(k.name for k in job.job.kernels),
        ",".join(str(k.func_id) for k in job.job.kernels), job.job.arguments.block_count, verdict, cycles,
        round(micros, 4),
        worst, why, errors, warnings,
    )  # fmt: skip


def replay_all(
    planned: Plan,
    executor: Executor,
    journal: Journal[ReplayRow],
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> list[ReplayRow]:
    """A row for each dispatch, in their order; what the journal has is not run again, unless it failed."""
    rows: dict[int, ReplayRow] = {}
    jobs: dict[int, ReplayJob] = {}

    def named() -> Iterator[tuple[str, ReplayJob]]:
        for place, (name, job) in enumerate(planned.jobs()):
            jobs[place] = job
            yield name, job

    for place, row in run_named(executor, run_replay_job, named(), ReplayRow, journal, is_answer):
        job = jobs.pop(place)
        rows[place] = (
            _row(job, FAILED, why=str(row).splitlines()[0]) if isinstance(row, InsightTraceError) else row
        )
        progress(len(rows), len(planned.chosen))
    return [rows[place] for place in range(len(rows))]


def is_answer(row: ReplayRow) -> bool:
    """What failed may have had a full disk, and is tried again."""
    return row.verdict != FAILED
