"""The checker on kernels of a scene, of a build, or of an earlier replay: no trace is written, only findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from insight_trace.check.suppressions import Allowance, apply, in_sources
from insight_trace.finding import Finding, Severity
from insight_trace.job import Job
from insight_trace.options import repeated
from insight_trace.outcome import Failure
from insight_trace.replay.jobs import Progress, jobs_of
from insight_trace.replay.pipeline import execute
from insight_trace.replay.request import ReplayRequest
from insight_trace.replay.workspace import RECORD, read_record
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
    progress: Progress = lambda _step: None,
    dump: Path | None = None,
) -> list[Examined]:
    """Checks what the request names: a workspace's dispatch, the kernels asked for, or all that the case runs.

    With a `dump`: the first dispatch of every kernel in it.
    """
    options = replace(request.options, check=True, any_target=True, simulator="embedded")
    found = []
    with scratch_folder("check") as folder:
        for job, request_of_job in dispatches(replace(request, options=options), folder, progress, dump):
            progress(f"check {job.kernels[0].name}")
            done = execute(job, request_of_job.options, record=False)
            assert done.simulation is not None
            written = in_sources(done.simulation.sources)
            kept, allowed, unused = apply(done.findings, [*written, *allowances])
            found.append(
                Examined(
                    tuple(kernel.name for kernel in job.kernels),
                    tuple(kernel.func_id for kernel in job.kernels if kernel.func_id is not None),
                    tuple(kept),
                    tuple(allowed),
                    tuple(allowance for allowance in unused if allowance in written),
                    done.simulation.failure,
                )
            )
    return found


def dispatches(
    request: ReplayRequest, folder: Path, progress: Progress = lambda _step: None, dump: Path | None = None
) -> Iterator[tuple[Job, ReplayRequest]]:
    """Each job that the request names, and the request as it holds for it; captures go into `folder`."""
    if (request.scene / RECORD).is_file():
        job, record = read_record(request.scene, current=not request.as_recorded)
        options = repeated(request.options, {**record, "simulator": None, "timing_only": None})
        yield replace(job, target=options.target or job.target), replace(request, options=options)
        return
    for job in jobs_of(request, folder, progress, dump):
        yield job, request
