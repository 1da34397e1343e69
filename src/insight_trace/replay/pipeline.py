"""One job from simulation to recording: every product that runs a kernel calls `execute`.

job ──► simulate ──► verify against what was recorded ──► annotate with the user's Python ──► recording
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from insight_trace.arguments.slots import ReplayArguments, ReplayScalar, ReplaySlot, ReplayTensor
from insight_trace.errors import InputError, JobError, next_step
from insight_trace.finding import Finding, finding_data
from insight_trace.job import ENTRY_SHOWN, Job
from insight_trace.limits import SOURCE_BYTES
from insight_trace.model import Instructions, Kernel, Trace
from insight_trace.options import RunOptions, VendorOptions
from insight_trace.outcome import Simulation
from insight_trace.reading import read_regular
from insight_trace.recording.kinds import works
from insight_trace.recording.store import Recording
from insight_trace.replay.verification import OutputCheck, Status, verdict, verify_outputs
from insight_trace.simulate.simulators import Simulator, find_simulator

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Progress = Callable[[str], None]


class Execution(Struct, frozen=True, eq=False):
    """What came of a job."""

    job: Job
    simulator: str  # which one ran it
    simulation: Simulation | None = None  # None: the vendor's simulator ran it
    checks: tuple[OutputCheck, ...] = ()
    recording: Recording | None = None  # None: it failed, or the vendor's simulator ran it
    directory: Path | None = None  # the Insight directory that the vendor's simulator wrote
    warnings: tuple[str, ...] = ()
    hot_lines: tuple[Any, ...] = ()  # PythonCycles: the lines of the user's program, most cycles first

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self.simulation.findings if self.simulation else ()

    @property
    def mismatched(self) -> bool:
        return any(check.status is Status.MISMATCH for check in self.checks)

    @property
    def verified(self) -> bool:
        return verdict(self.checks) is Status.VERIFIED

    def require_success(self) -> None:
        """Raises what went wrong in the kernel."""
        failure = self.simulation.failure if self.simulation else None
        if failure is not None:
            text = f"{failure.message} [{failure.fault}]"
            hint = next_step(failure.fault, failure.limit, failure.log)
            raise JobError(text, where=failure.where, hint=hint)


def execute(
    job: Job,
    options: RunOptions,
    vendor: VendorOptions | None = None,
    *,
    simulator: Simulator | None = None,
    workspace: Path | None = None,
    progress: Progress = lambda _step: None,
    record: bool = True,
) -> Execution:
    """Runs a job. A kernel that fails is an execution with its failure; what the machine lacks is an error.

    `workspace` is where a simulator may write; only the vendor's does. Without `record` the simulation is verified and
    nothing is made of it: for who wants verdicts or findings of many jobs.
    """
    warned: list[str] = []
    if simulator is None:
        simulator = find_simulator(options, vendor or VendorOptions(), (job.target,), warned.append)
    result = simulator.run(job, workspace, progress)
    if result.simulation is None:
        checks = verify_outputs(job.arguments, result.buffers, partial=result.partial)
        said = (*warned, *result.warnings)
        return Execution(job, simulator.name, None, checks, directory=result.directory, warnings=said)
    simulation = with_python_findings(result.simulation, job)
    done = Execution(job, simulator.name, simulation, warnings=tuple(warned))
    if simulation.failure is not None:
        return done
    progress("verify")
    checks = () if options.timing_only else verified(job, simulation)
    done = replace(done, checks=checks)
    if not record:
        return done
    progress("export")
    said = (*warned, *degenerate(simulation.instructions, job.arguments, checks))
    plain = make_trace(simulation, options.preset)
    trace, hot = annotated(plain, job)
    kernels = tuple(replace(kernel, source=Path(job.shown(str(kernel.source)))) for kernel in job.kernels)
    recording = recording_of(simulation, trace, kernels, job.arguments, checks, _about(job, options))
    return replace(done, recording=recording, warnings=said, hot_lines=hot)


def _about(job: Job, options: RunOptions) -> dict[str, Any]:
    about: dict[str, Any] = {"target": job.target, "preset": options.preset}
    if job.scene is not None:
        about |= {
            "scene": str(job.scene.path),
            "scene_name": job.scene.name,
            "case": job.case.name if job.case else None,
            "dispatch": job.dispatch.dispatch_id if job.dispatch else None,
            "timing_only": options.timing_only,
        }
    if job.name:
        about |= {"kernel": job.name, "tiles": job.python.tiles if job.python else []}
    return about


def verified(job: Job, simulation: Simulation) -> tuple[OutputCheck, ...]:
    """The outputs against what the dump has of them; a part of the blocks is compared where it wrote."""
    recorded = job.dispatch.block_count if job.dispatch else job.arguments.block_count
    ran = job.arguments.block_count
    partial = f"only {ran} of {recorded} blocks were replayed" if ran < recorded else ""
    seen = functools.partial(written_bytes, simulation)
    return verify_outputs(job.arguments, simulation.buffers, partial=partial, written=seen)


def make_trace(simulation: Simulation, preset: str = "device") -> Trace:
    """A simulation as it is exported: with the text of its sources, its throughput and how far it is to be trusted."""
    from insight_trace.insight.throughput import throughput_counters
    from insight_trace.simulate.embedded.confidence import confidence
    from insight_trace.simulate.embedded.simulator import chip_that_ran

    sources = {}
    for name, path in simulation.sources.items():
        with contextlib.suppress(OSError, InputError):
            sources[name] = read_regular(path, most=SOURCE_BYTES)
    return Trace(
        instructions=simulation.instructions,
        mhz=simulation.mhz,
        soc_version=simulation.soc_version,
        sources=sources,
        counters=throughput_counters(simulation.instructions, simulation.mhz),
        memory=simulation.memory,
        launch=simulation.launch,
        confidence=confidence(simulation, chip_that_ran(simulation, preset)),
    )


def with_python_findings(simulation: Simulation, job: Job) -> Simulation:
    """Findings that say which lines of the user's program they come from."""
    if job.python is None or not simulation.findings:
        return simulation
    from insight_trace.ptoas.python_lines import with_python_lines

    return replace(simulation, findings=with_python_lines(simulation.findings, job.python.lines))


def annotated(trace: Trace, job: Job) -> tuple[Trace, tuple[Any, ...]]:
    """The trace with the user's Python behind generated lines and sources under the names that a reader knows.

    Also which lines of that Python take most cycles.
    """
    hot: tuple[Any, ...] = ()
    if job.python is not None:
        from insight_trace.ptoas.python_trace import python_cycles, with_python

        hot = tuple(python_cycles(trace, job.python.lines)[0])
        trace = with_python(trace, job.python.lines, job.python.roots)
    if not job.shown_as:
        return trace, hot
    return _renamed(trace, job), hot


def _renamed(trace: Trace, job: Job) -> Trace:
    """Sources under other names; an entry of ours around a kernel is of no use to a reader."""
    columns = trace.instructions
    sources = {job.shown(name): text for name, text in trace.sources.items()}
    return replace(
        trace,
        instructions=replace(columns, stacks=tuple(map(job.shown, columns.stacks))),
        sources={name: text for name, text in sources.items() if name != ENTRY_SHOWN},
    )


def degenerate(
    columns: Instructions, arguments: ReplayArguments, checks: tuple[OutputCheck, ...]
) -> tuple[str, ...]:
    """A kernel that moved and computed nothing was usually steered there by made-up numbers.

    Not if its outputs are what was recorded: then it did all that it does.
    """
    if any(check.status is Status.VERIFIED for check in checks) or works(columns).any():
        return ()
    suspects = ", ".join(map(str, arguments.suspects))
    fix = (
        f"look at slot {suspects}: --set-arg SLOT=VALUE gives real values"
        if suspects
        else "check its scalars"
    )
    return (f"degenerate: the kernel moved and computed nothing; {fix}",)


# --- a simulation as a recording


def recording_of(
    simulation: Simulation,
    trace: Trace,
    kernels: Sequence[Kernel] = (),
    arguments: ReplayArguments | None = None,
    checks: Sequence[OutputCheck] = (),
    about: Mapping[str, Any] | None = None,
) -> Recording:
    """Everything a run showed; `trace` is the simulation with the text of its sources."""
    places = {region[0]: region for region in simulation.regions}
    return Recording(
        trace,
        tuple(
            {
                "name": kernel.name,
                "core_type": str(kernel.core_type),
                "func_id": kernel.func_id,
                "entry": kernel.entry,
                "source": str(kernel.written or kernel.source),
            }
            for kernel in kernels
        ),
        tuple(_argument(item, places) for item in arguments.slots) if arguments else (),
        tuple(
            {
                "slot": check.slot,
                "status": str(check.status),
                "max_error": check.max_error,
                "first_index": check.first_index,
                "wrong": check.wrong,
                "compared": check.compared,
                "why": check.why,
            }
            for check in checks
        ),
        tuple(finding_data(finding) for finding in simulation.findings),
        {"name": simulation.soc_version, "mhz": simulation.mhz, "parameters": simulation.parameters},
        {
            "regions": simulation.regions,
            "printed": simulation.printed,
            **(about or {}),
            **_estimates(simulation, (about or {}).get("preset")),
        },
    )


def _estimates(simulation: Simulation, preset: str | None) -> dict[str, Any]:
    """Which part of the time rests on estimated numbers, and on which; the largest come first."""
    if preset is None:
        return {}
    from insight_trace.simulate.embedded.estimates import estimate_share
    from insight_trace.simulate.embedded.simulator import chip_that_ran

    found = estimate_share(simulation, chip_that_ran(simulation, preset))
    return {"estimates": {"share": found.share, "numbers": [asdict(one) for one in found.estimates[:20]]}}


def _argument(item: ReplaySlot, places: Mapping[str, tuple[str, int, int, int]]) -> dict[str, Any]:
    shared = {
        "slot": item.slot,
        "dtype": item.dtype.name,
        "tier": str(item.tier),
        "name": item.name,
        "origin": item.origin,
    }
    if isinstance(item, ReplayScalar):
        return {"kind": "scalar", **shared, "bits": item.bits}
    owner = item.slot if item.shares is None else item.shares
    _, address, size, padded = places.get(f"slot {owner}", ("", 0, 0, 0))
    return {
        "kind": "tensor",
        **shared,
        "shape": item.shape,
        "strides": item.strides,
        "start_offset": item.start_offset,
        "role": item.role and str(item.role),
        "address": address,
        "size": size,
        "padded": padded,
    }


# --- which bytes of an output a replay wrote, as its own instructions say


_MOST_BYTES = 1 << 28  # of a buffer that is looked through


def written_bytes(simulation: Simulation, tensor: ReplayTensor) -> NDArray[np.uint8] | None:
    """The tensor's buffer with 255 in every byte that an instruction wrote; None where that is not known."""
    import numpy as np

    from insight_trace.recording.intervals import union
    from insight_trace.recording.operands import MEMORIES, WRITES, byte_ranges

    operands = simulation.instructions.operands
    name = f"slot {tensor.slot if tensor.shares is None else tensor.shares}"
    region = next((r for r in simulation.regions if r[0] == name), None)
    if operands is None or region is None or region[3] > _MOST_BYTES:
        return None
    address, size = region[1], region[3]
    footprint = operands.footprints[operands.rows["footprint"]]
    stores = (footprint["memory"] == MEMORIES.index("GM")) & (footprint["role"] & WRITES > 0)
    ranges = byte_ranges(operands, np.flatnonzero(stores))
    begin = np.clip(ranges.begin.astype(np.int64) - address, 0, size)
    end = np.clip(ranges.end.astype(np.int64) - address, 0, size)
    inside = end > begin
    spans = union(begin[inside], end[inside])
    written = np.zeros(size, np.uint8)
    for first, last in zip(spans.begin.tolist(), spans.end.tolist(), strict=True):
        written[first:last] = 255
    return written
