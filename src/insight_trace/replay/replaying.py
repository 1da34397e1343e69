"""One replay from request to Insight directory."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from insight_trace.arguments.slots import ReplayArguments
from insight_trace.chips import TARGETS, target_of_chip
from insight_trace.dump.dump_place import find_manifest
from insight_trace.errors import InputError, JobError, RequestError, next_step
from insight_trace.finding import Finding
from insight_trace.limits import SOURCE_BYTES
from insight_trace.model import Dispatch, Instructions, Kernel, Tier, Trace
from insight_trace.outcome import Simulation
from insight_trace.reading import read_regular
from insight_trace.recording.kinds import works
from insight_trace.replay.gathering import Gathered, gather_arguments
from insight_trace.replay.named_traces import label_of, write_named_traces
from insight_trace.replay.replay_folder import RECORD, workspace_path, write_record
from insight_trace.replay.request import ReplayRequest
from insight_trace.replay.residue import held_slots
from insight_trace.replay.selection import Selection, select_case, select_kernels, with_recorded_members
from insight_trace.replay.verification import OutputCheck, Status, verify_outputs
from insight_trace.replay.written import written_bytes
from insight_trace.scene.kernel_source import kernel_shape
from insight_trace.simulate.simulators import SimulatorJob, SimulatorResult, find_simulator
from insight_trace.storage import whole_directory

if TYPE_CHECKING:
    from numpy.typing import NDArray

Progress = Callable[[str], None]
_NULL_PAGE = 4096  # bytes of an address that a null pointer and an offset give
Annotate = Callable[[Trace, tuple[Kernel, ...]], Trace]


class Replay(Struct, frozen=True, eq=False):
    """What one replay gave."""

    selection: Selection
    arguments: ReplayArguments
    dispatch: Dispatch | None
    origin: str  # of the arguments
    simulator: str  # embedded or msprof; "" when only the workspace was written
    target: str
    workspace: Path
    directory: Path | None  # OPPROF_*/simulator/
    checks: tuple[OutputCheck, ...]
    warnings: tuple[str, ...]
    simulation: Simulation | None = None
    preset: str = "device"

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
        if self.dispatch is not None:
            ran, recorded = len(self.selection.kernels), len(self.dispatch.func_ids)
            if ran < recorded:
                found.append(f"{ran} of {recorded} members ran")
            if self.arguments.block_count != self.dispatch.block_count:
                found.append(f"{self.arguments.block_count} blocks ran, not {self.dispatch.block_count}")
        for tier in (Tier.SYNTHETIC, Tier.FILLED, Tier.RECONSTRUCTED):
            slots = [str(item.slot) for item in self.arguments.slots if item.tier is tier]
            if slots:
                found.append(f"slot {', '.join(slots)} {tier}")
        platforms = self.selection.case.platforms if self.selection.case else ()
        if platforms and self.target not in {platform.removesuffix("sim") for platform in platforms}:
            found.append(f"it ran on {self.target}, the case is for {', '.join(platforms)}")
        return tuple(found)


def run_replay(
    request: ReplayRequest,
    progress: Progress = lambda _step: None,
    annotate: Annotate = lambda trace, _kernels: trace,
) -> Replay:
    """Selects, gathers, simulates, verifies and exports; `annotate` may add to the trace before its export."""
    from insight_trace.scene.static import load_scene

    progress("scene")
    scene = load_scene(request.scene)
    selection = Selection(
        scene,
        select_case(scene, request.case),
        select_kernels(scene, func_ids=request.func_ids, name=request.kernel, source=request.kernel_source),
    )
    _require_target(request, selection)
    progress("arguments")
    gathered = gather_arguments(request, selection)
    selection = with_recorded_members(selection, gathered.dispatch)
    return replay_gathered(request, selection, gathered, progress, annotate)


def replay_gathered(
    request: ReplayRequest,
    selection: Selection,
    gathered: Gathered,
    progress: Progress = lambda _step: None,
    annotate: Annotate = lambda trace, _kernels: trace,
) -> Replay:
    """The same, once the arguments are known."""
    target = request.target or target_of(request, selection)
    said: list[str] = []
    simulator = (
        find_simulator(request.simulator, request.for_simulators, (target,), said.append)
        if request.collect
        else None
    )
    recorded = gathered.dispatch.block_count if gathered.dispatch is not None else 0
    if gathered.arguments.block_count < recorded:
        said.append(f"only {gathered.arguments.block_count} of the {recorded} blocks are replayed")
    path = workspace_path(request, selection)
    with _workspace(path, request, selection.kernels) as workspace:
        replay = Replay(
            selection,
            gathered.arguments,
            gathered.dispatch,
            gathered.origin,
            simulator.name if simulator else "",
            target,
            path,
            None,
            (),
            (*gathered.arguments.warnings, *said),
            preset=request.preset,
        )
        if simulator is None:
            replay = _write_only(request, replay, workspace)
        else:
            result = simulator.run(_job(request, replay, workspace, progress))
            if result.simulation is None:
                replay = _collected(replay, result, workspace)
            else:
                replay = _exported(request, replay, result.simulation, workspace, progress, annotate)
        if replay.directory is not None:
            simulator_folder = workspace / replay.directory.relative_to(path)
            label = request.label or label_of(selection, target)
            told = write_named_traces(simulator_folder, workspace, label)
            replay = replace(replay, warnings=(*replay.warnings, *told))
        write_record(request, replay, workspace)
    return replay


@contextlib.contextmanager
def _workspace(path: Path, request: ReplayRequest, kernels: tuple[Kernel, ...]) -> Iterator[Path]:
    manifest = find_manifest(request.dump_dir) if request.dump_dir else None
    given = (request.scene, request.dump_dir, manifest, request.arg_spec, request.kernel_source)
    inputs = [*(item for item in given if item), *(kernel.source for kernel in kernels)]
    with whole_directory(path, force=request.force, record=(RECORD,), inputs=inputs) as beside:
        yield beside


def target_of(request: ReplayRequest, selection: Selection) -> str:
    """a5 when the chip, the platform, the case's only platforms, or the kernel's place say so."""
    chip = target_of_chip(request.soc_version or "")
    if chip:
        return chip
    if request.platform:
        return "a5" if request.platform.startswith("a5") else "a2a3"
    platforms = selection.case.platforms if selection.case else ()
    if platforms and all(platform.startswith("a5") for platform in platforms):
        return "a5"
    return _family_of_place(selection.kernels[0].source) or "a2a3"


def _family_of_place(source: Path) -> str:
    """The family that a checkout keeps the kernel under; folders above the checkout say nothing about it."""
    for folder in source.parents:
        if (folder / ".git").exists():
            return ""
        if folder.name in TARGETS:
            return folder.name
    return ""


def _require_target(request: ReplayRequest, selection: Selection) -> None:
    """A kernel that was written for one family is not run on the other without a word."""
    target = request.target or target_of(request, selection)
    chip = target_of_chip(request.soc_version or "")
    if chip and chip != target:
        raise RequestError(
            f"{request.soc_version} is a chip of {chip}, and --target says {target}",
            hint="leave one of the two out",
        )
    cases = (selection.case,) if selection.case else selection.scene.cases
    platforms = sorted({platform for case in cases for platform in case.platforms})
    if request.any_target or not platforms or target in {p.removesuffix("sim") for p in platforms}:
        return
    raise RequestError(
        f"{selection.kernels[0].name} was written for {', '.join(platforms)}, not for {target}",
        where=str(selection.scene.path),
        hint="add the platform to the case, or replay it all the same with --any-target"
        + (" (--force only replaces an existing workspace)" if request.force else ""),
    )


def _job(
    request: ReplayRequest, replay: Replay, workspace: Path, progress: Progress = lambda _step: None
) -> SimulatorJob:
    return SimulatorJob(
        replay.selection.kernels,
        replay.arguments,
        replay.target,
        workspace,
        replay.selection.scene.runtime,
        held_slots(request.dump_dir, replay.dispatch) if request.l2 == "trace" else (),
        progress,
    )


def _exported(
    request: ReplayRequest,
    replay: Replay,
    simulation: Simulation,
    workspace: Path,
    progress: Progress,
    annotate: Annotate,
) -> Replay:
    """Of a simulator that gives all that it saw: verified, recorded and written as an Insight directory."""
    from insight_trace.insight.writer import write_insight_directory
    from insight_trace.replay.recorded import recording_of
    from insight_trace.trace.details_figures import details_of

    if simulation.failure:
        failure = simulation.failure
        _require_slots(replay, failure.message)
        text = f"{failure.message} [{failure.fault}]"
        raise JobError(text, where=failure.where, hint=next_step(failure.fault, failure.limit, failure.log))
    progress("verify")
    checks = () if request.timing_only else _verify(request, replay, simulation)
    progress("export")
    trace = annotate(make_trace(simulation, request.preset), replay.selection.kernels)
    selection = replay.selection
    about = {
        "scene": str(selection.scene.path),
        "case": selection.case.name if selection.case else None,
        "dispatch": replay.dispatch.dispatch_id if replay.dispatch else None,
        "target": replay.target,
        "preset": request.preset,
        "timing_only": request.timing_only,
    }
    directory = write_insight_directory(
        trace,
        workspace / "insight_export",
        include_source=request.include_source,
        dump_logs=request.dump_logs,
        details=details_of(trace, [kernel.name for kernel in selection.kernels], replay.target),
        recording=recording_of(simulation, trace, selection.kernels, replay.arguments, checks, about),
    )
    return replace(
        replay,
        simulation=simulation,
        checks=checks,
        directory=replay.workspace / directory.relative_to(workspace),
        warnings=(*replay.warnings, *_degenerate(simulation.instructions, replay.arguments, checks)),
    )


def _require_slots(replay: Replay, message: str) -> None:
    """An argument that was not recorded is a null pointer to the kernel, which is not the kernel's fault."""
    touched = re.search(r"touched address 0x([0-9a-f]+)", message)
    if touched is None or int(touched[1], 16) >= _NULL_PAGE:
        return
    have = {item.slot for item in replay.arguments.slots}
    lacks = sorted(
        {slot for kernel in replay.selection.kernels for slot in kernel_shape(kernel).slots} - have
    )
    if lacks:
        listed = ", ".join(map(str, lacks))
        raise InputError(
            f"slot {listed} was not recorded, and the kernel reads it ({touched[0]})",
            where=replay.origin,
            hint="take a dump that has every argument of the dispatch, or give the slot with --arg-spec",
        )


def _verify(request: ReplayRequest, replay: Replay, simulation: Simulation) -> tuple[OutputCheck, ...]:
    recorded = replay.dispatch.block_count if replay.dispatch else replay.arguments.block_count
    partial = ""
    if request.block_dim is not None and request.block_dim < recorded:
        partial = f"only {request.block_dim} of {recorded} blocks were replayed"
    seen = functools.partial(written_bytes, simulation)
    return verify_outputs(replay.arguments, simulation.buffers, partial=partial, written=seen)


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


def _degenerate(
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


def _write_only(request: ReplayRequest, replay: Replay, workspace: Path) -> Replay:
    from insight_trace.simulate.msprof.msprof_simulator import vendor_job
    from insight_trace.simulate.msprof.vendor_workspace import write_workspace

    write_workspace(vendor_job(_job(request, replay, workspace), request.for_simulators), workspace)
    return replay


def _collected(replay: Replay, result: SimulatorResult, workspace: Path) -> Replay:
    """Of a simulator that wrote an Insight directory itself: verified."""
    assert result.directory is not None
    return replace(
        replay,
        checks=verify_outputs(replay.arguments, result.buffers, partial=result.partial),
        directory=replay.workspace / result.directory.relative_to(workspace),
        warnings=(*replay.warnings, *result.warnings),
    )
