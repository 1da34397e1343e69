"""One replay from request to Insight directory."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from insight_trace.arguments.slots import ReplayArguments, ReplayTensor
from insight_trace.dump.dump_place import find_manifest
from insight_trace.errors import InputError
from insight_trace.finding import Finding, finding_data
from insight_trace.job import Job
from insight_trace.model import Confidence, Dispatch, Instructions, Tier
from insight_trace.options import repeated
from insight_trace.outcome import Simulation
from insight_trace.replay.jobs import ReplayRequest, job_of
from insight_trace.replay.pipeline import Execution, execute
from insight_trace.replay.verification import OutputCheck, Status, verdict
from insight_trace.replay.workspace import (
    RECORD,
    import_name,
    label_of,
    read_record,
    workspace_path,
    write_counters,
    write_import,
    write_insight,
    write_named_traces,
    write_record,
)
from insight_trace.results import TracedResult
from insight_trace.simulate.simulators import find_simulator
from insight_trace.storage import whole_directory

if TYPE_CHECKING:
    from numpy.typing import NDArray

Progress = Callable[[str], None]
_NULL_PAGE = 4096  # bytes of an address that a null pointer and an offset give


class Replay(TracedResult, Struct, frozen=True, eq=False):
    """What one replay gave."""

    job: Job
    simulator: str  # embedded or msprof; "" when only the workspace was written
    workspace: Path
    directory: Path | None  # OPPROF_*/simulator/
    checks: tuple[OutputCheck, ...]
    warnings: tuple[str, ...]
    simulation: Simulation | None = None
    preset: str = "device"
    shadow: Any = None  # debug.shadow.Shadow: the run in double arithmetic, where it was asked for

    def summary(self) -> str:
        found = f" · {len(self.findings)} findings" if self.findings else ""
        if self.simulation is None:
            return f"{self.job.label} · {self.simulator or 'not simulated'} · {self.workspace}"
        micros = self.simulation.cycles / self.simulation.mhz
        outputs = verdict(self.checks) if self.checks else "nothing compared"
        return f"{self.job.label} · {self.cycles:,} cycles · {micros:.3f} us · {outputs}{found} · {self.workspace}"

    def columns(self) -> Mapping[str, Any]:
        """One row per executed instruction."""
        from insight_trace.trace.dataframe import columns_of

        return columns_of(self.simulation.instructions) if self.simulation else {}

    @property
    def arguments(self) -> ReplayArguments:
        return self.job.arguments

    @property
    def dispatch(self) -> Dispatch | None:
        return self.job.dispatch

    @property
    def target(self) -> str:
        return self.job.target

    @property
    def to_import(self) -> Path | None:
        """What to import into MindStudio Insight, under a name that its Data Manager shows."""
        return self.workspace / import_name(self.job) if self.directory is not None else None

    @property
    def instructions(self) -> Instructions | None:
        return self.simulation.instructions if self.simulation else None

    @property
    def outputs(self) -> dict[int, NDArray[Any]]:
        return dict(self.simulation.outputs) if self.simulation else {}

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self.simulation.findings if self.simulation else ()

    @property
    def cycles(self) -> int | None:
        return self.simulation.cycles if self.simulation else None

    @property
    def mismatched(self) -> bool:
        return any(check.status is Status.MISMATCH for check in self.checks)

    @property
    def differences(self) -> tuple[str, ...]:
        """In what the replay is not the dispatch that was recorded."""
        found = []
        job = self.job
        if job.dispatch is not None:
            ran, recorded = len(job.kernels), len(job.dispatch.func_ids)
            if ran < recorded:
                found.append(f"{ran} of {recorded} members ran")
            if job.arguments.block_count != job.dispatch.block_count:
                found.append(f"{job.arguments.block_count} blocks ran, not {job.dispatch.block_count}")
        for tier in (Tier.SYNTHETIC, Tier.FILLED, Tier.RECONSTRUCTED):
            slots = [str(item.slot) for item in job.arguments.slots if item.tier is tier]
            if slots:
                found.append(f"slot {', '.join(slots)} {tier}")
        platforms = job.case.platforms if job.case else ()
        if platforms and job.target not in {platform.removesuffix("sim") for platform in platforms}:
            found.append(f"it ran on {job.target}, the case is for {', '.join(platforms)}")
        return tuple(found)

    @property
    def confidence(self) -> Confidence | None:
        """How far the total can be trusted; None where the vendor's simulator ran."""
        from insight_trace.simulate.embedded.confidence import confidence
        from insight_trace.simulate.embedded.simulator import chip_that_ran

        if self.simulation is None or self.simulator != "embedded":
            return None
        return confidence(self.simulation, chip_that_ran(self.simulation, self.preset))

    def data(self) -> dict[str, Any]:
        from insight_trace.trace.text import time_data

        about: dict[str, Any] = {}
        if self.simulation is not None and (trusted := self.confidence) is not None:
            run = self.simulation
            about = {
                "micros": run.cycles / run.mhz, **time_data(run.cycles, trusted, run.launch, run.memory)
            }  # fmt: skip
        found = {
            "directory": str(self.directory) if self.directory else None,
            "import": str(self.to_import) if self.to_import else None,
            "workspace": str(self.workspace),
            "simulator": self.simulator,
            "cycles": self.cycles,
            **about,
            "outputs": [
                {
                    "slot": c.slot,
                    "status": str(c.status),
                    "max_error": c.max_error,
                    "why": c.why,
                    "compared": c.compared,
                    "ulp": c.ulp,
                    "furthest": c.furthest,
                    "against": "recorded after completion" if c.compared else None,
                }
                for c in self.checks
            ],
            "arguments": [
                {
                    "slot": item.slot,
                    "kind": "tensor" if isinstance(item, ReplayTensor) else "scalar",
                    "dtype": item.dtype.name,
                    "tier": str(item.tier),
                }
                for item in self.arguments.slots
            ],
            "differences": list(self.differences),
            "warnings": list(self.warnings),
            "findings": [finding_data(finding) for finding in self.findings],
        }
        return found if self.shadow is None else found | {"shadow": self.shadow.data()}


def run_replay(request: ReplayRequest, progress: Progress = lambda _step: None) -> Replay:
    """Replays what a request names: a dispatch of a scene, or the workspace of an earlier replay again."""
    if (request.scene / RECORD).is_file():
        job, record = read_record(request.scene, current=not request.as_recorded)
        request.require_of(job)
        options = repeated(request.options, record)
        if options.target is not None:
            job = replace(job, target=options.target)
        return replay_job(job, replace(request, options=options), progress)
    return replay_job(job_of(request, progress), request, progress)


def replay_job(job: Job, request: ReplayRequest, progress: Progress = lambda _step: None) -> Replay:
    """Executes a job and writes its workspace."""
    said: list[str] = []
    options, simulator = request.options, None
    if request.collect:
        simulator = find_simulator(options, request.vendor, (job.target,), said.append)
    recorded = job.dispatch.block_count if job.dispatch is not None else 0
    if job.arguments.block_count < recorded:
        said.append(f"only {job.arguments.block_count} of the {recorded} blocks are replayed")
    path = workspace_path(request.output, job, request.build)
    with _workspace(path, request, job) as workspace:
        if simulator is None:
            from insight_trace.simulate.msprof.msprof_simulator import vendor_job
            from insight_trace.simulate.msprof.vendor_workspace import write_workspace

            write_workspace(vendor_job(job, options, request.vendor), workspace)
            done = Execution(job, "")
        else:
            done = execute(job, options, simulator=simulator, workspace=workspace, progress=progress)
            _require_slots(done)
            done.require_success()
        folder, shown, figures = done.directory, None, None
        if done.recording is not None and options.insight:
            folder, shown, figures = write_insight(done, workspace / "insight_export", options)
            said += [shown.said] if shown.said else []
        elif done.recording is not None:
            from insight_trace.insight.writer import write_recording

            write_recording(done.recording, workspace / "insight_export")
        warnings = (*job.arguments.warnings, *said, *done.warnings)
        if folder is not None:
            label = request.label or label_of(job)
            warnings = (*warnings, *write_named_traces(done.recording, folder, workspace, label, shown))
            write_import(job, folder, workspace)
        if done.recording is not None:
            write_counters(done.recording, job, workspace, figures)
        replay = Replay(
            job,
            done.simulator,
            path,
            path / folder.relative_to(workspace) if folder is not None else None,
            done.checks,
            warnings,
            done.simulation,
            options.preset,
        )
        write_record(done, options, workspace, warnings)
    return replay


def _require_slots(done: Execution) -> None:
    """An argument that was not recorded is a null pointer to the kernel, which is not the kernel's fault."""
    failure = done.simulation.failure if done.simulation else None
    touched = re.search(r"touched address 0x([0-9a-f]+)", failure.message) if failure else None
    if touched is None or int(touched[1], 16) >= _NULL_PAGE:
        return
    from insight_trace.scene.kernel_source import kernel_shape

    job = done.job
    have = {item.slot for item in job.arguments.slots}
    lacks = sorted({slot for kernel in job.kernels for slot in kernel_shape(kernel).slots} - have)
    if lacks:
        listed = ", ".join(map(str, lacks))
        raise InputError(
            f"slot {listed} was not recorded, and the kernel reads it ({touched[0]})",
            where=job.origin,
            hint=f"give --arg {lacks[0]}=f32[ROWS,COLS], or a file or number"
            if job.case is None
            else "take a dump that has every argument of the dispatch, or give the slot with --arg-spec",
        )


@contextlib.contextmanager
def _workspace(path: Path, request: ReplayRequest, job: Job) -> Iterator[Path]:
    manifest = find_manifest(request.dump_dir) if request.dump_dir else None
    named = (request.scene, request.dump_dir, manifest, request.arg_spec, request.kernel_source)
    inputs = [*(item for item in named if item), *(kernel.source for kernel in job.kernels)]
    with whole_directory(path, force=request.force, record=(RECORD,), inputs=inputs) as beside:
        yield beside
