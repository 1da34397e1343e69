"""The checker on kernels of a scene, of a build, or of an earlier replay: no trace is written, only findings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from insight_trace.check.suppressions import Allowance, apply, in_sources
from insight_trace.errors import RequestError
from insight_trace.finding import Finding, Severity, finding_data
from insight_trace.job import Job
from insight_trace.options import repeated
from insight_trace.outcome import Failure
from insight_trace.replay.jobs import Progress, ReplayRequest, jobs_of
from insight_trace.replay.pipeline import execute
from insight_trace.replay.workspace import RECORD, read_record
from insight_trace.results import Result
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

    def data(self) -> dict[str, Any]:
        return {
            "kernels": list(self.kernels),
            "func_ids": list(self.func_ids),
            "findings": [finding_data(finding) for finding in self.findings],
            "allowed": [finding_data(finding) for finding in self.allowed],
            "unused_allowances": [allowance.where for allowance in self.unused],
            "failure": str(self.failure) if self.failure else None,
        }


@dataclass(frozen=True, repr=False)
class CheckResult(Result):
    """What the checker says of every kernel that was looked at."""

    examined: tuple[Examined, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(finding for one in self.examined for finding in one.findings)

    @property
    def errors(self) -> int:
        return sum(one.errors for one in self.examined)

    @property
    def failed(self) -> int:
        """Kernels that did not run to their end."""
        return sum(one.failure is not None for one in self.examined)

    def summary(self) -> str:
        if not self.examined:
            return "nothing was checked: no kernel was dispatched"
        count, errors, failed = len(self.examined), self.errors, self.failed
        kernels = f"{count} {'kernel' if count == 1 else 'kernels'}"
        found = f"{errors} {'error' if errors == 1 else 'errors'}"
        ended = f"{failed} did not run to {'its' if failed == 1 else 'their'} end"
        if failed and not errors:  # what did not end was not checked
            others = [f"{found} in the other {count - failed}"] if failed < count else []
            return " · ".join([kernels, f"{ended}, and nothing can be said of that", *others])
        return f"{kernels} · {found} · {ended}"

    def columns(self) -> Mapping[str, Any]:
        """One row per finding."""
        rows = [(" + ".join(one.kernels), finding) for one in self.examined for finding in one.findings]
        return {
            "kernel": [name for name, _ in rows],
            "severity": [finding.severity.value for _, finding in rows],
            "category": [finding.category for _, finding in rows],
            "message": [finding.message for _, finding in rows],
            "place": [f"{f.places[0].file}:{f.places[0].line}" if f.places else "" for _, f in rows],
        }

    def data(self) -> dict[str, Any]:
        return {"kernels": [one.data() for one in self.examined]}


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
    require_one_chip(request.scene)
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


def require_one_chip(path: Path) -> None:
    """A kernel that reads the windows of other chips cannot run alone: what is said of it then would be false."""
    from insight_trace.scene.static import load_scene

    if not (path / RECORD).is_file() and load_scene(path).level >= 3:
        raise RequestError(
            f"{path} is a scene over several chips: nothing was checked",
            hint="a check runs each kernel alone, without the windows of the other chips; `capture` runs them together",
        )


def dispatches(
    request: ReplayRequest, folder: Path, progress: Progress = lambda _step: None, dump: Path | None = None
) -> Iterator[tuple[Job, ReplayRequest]]:
    """Each job that the request names, and the request as it holds for it; captures go into `folder`."""
    if (request.scene / RECORD).is_file():
        job, record = read_record(request.scene, current=not request.as_recorded)
        request.require_of(job)
        options = repeated(request.options, {**record, "simulator": None, "timing_only": None})
        yield replace(job, target=options.target or job.target), replace(request, options=options)
        return
    for job in jobs_of(request, folder, progress, dump):
        yield job, request
