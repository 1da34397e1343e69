"""Runs planned kernels on the embedded core and writes their Insight directories."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from insight_trace.arguments.content import Given, Zero
from insight_trace.arguments.slots import TILE_MARGIN, ReplayArguments, ReplayTensor
from insight_trace.cache import content_key
from insight_trace.errors import InputError, JobError, next_step
from insight_trace.finding import Severity, finding_data
from insight_trace.insight.details_page import DetailsPage
from insight_trace.insight.memory_page import write_memory_page
from insight_trace.model import LOCAL_CONTEXT_SLOT, CoreType, Kernel, Tier, Trace
from insight_trace.outcome import Simulation
from insight_trace.profile.kernel_figures import bound_by, core_pipes, write_figures
from insight_trace.profile.kernel_runner import EXPORTED, FAILED, Places, RunnerOptions, RunOutcome
from insight_trace.ptoas.buffer_content import content_of
from insight_trace.ptoas.planned_kernel import BufferArg, Content, KernelArg, ProfileKernel
from insight_trace.ptoas.python_lines import python_lines, tile_names, with_python_lines
from insight_trace.ptoas.python_trace import python_cycles, with_python
from insight_trace.recording.store import Recording
from insight_trace.replay.verification import Status, verdict, verify_outputs
from insight_trace.replay.written import written_bytes
from insight_trace.simulate.embedded.embedded_simulator import EmbeddedSimulator
from insight_trace.simulate.embedded.toolchain import Toolchain
from insight_trace.simulate.embedded.typed_entry import ENTRY, LANE, EntryCall, EntryParameter, wrapper_source
from insight_trace.simulate.simulators import Simulator, SimulatorJob, SimulatorOptions

FINDINGS = "findings.json"  # of a checked kernel, in its folder of logs
_MAX_SHAPE = 2**32 - 1
_ENTRY_FOLDER, _ENTRY_FILE = "insight-trace", "insight_entry.cpp"  # as a trace names the generated entry
_SIDES = {
    CoreType.AIC: (CoreType.AIC,),
    CoreType.AIV: (CoreType.AIV,),
    CoreType.MIX: (CoreType.AIC, CoreType.AIV, CoreType.AIV),
}


class EmbeddedRunner:
    """Runs one kernel per call; calls may come from several threads."""

    def __init__(
        self,
        *,
        preset: str = "device",
        seconds: float = 300.0,
        include_source: bool = True,
        keep_outputs: bool = False,
        soc_version: str | None = None,
        l2: str | None = None,
        launch: bool = False,
        check: bool = False,
    ) -> None:
        self.preset = preset
        self.seconds = seconds
        self.include_source = include_source
        self.keep_outputs = keep_outputs
        self.soc_version = soc_version
        self.l2 = l2
        self.launch = launch
        self.check = check
        self.simulator = EmbeddedSimulator(
            SimulatorOptions(
                soc_version,
                preset,
                check=check,
                l2=l2,
                launch=launch,
                seconds=seconds,
                host_cores=1,  # the others run other kernels
            )
        )
        self._stopped = threading.Event()
        self._build = threading.Lock()

    why_made_up = ""  # it takes dispatches of a build's own run

    @property
    def toolchain(self) -> Toolchain:
        return self.simulator.toolchain

    @property
    def name(self) -> str:
        return runner_name(self, self.toolchain.identity[:16])

    def stop(self) -> None:
        """No kernel starts any more; the one that runs ends by itself or at its time limit."""
        self._stopped.set()

    def simulate(self, kernel: ProfileKernel) -> Simulation:
        """One run, with the outputs by slot: the i-th buffer is slot i, or as the build's run dispatched it."""
        if kernel.workload is not None:
            work = kernel.workload
            with self._build:
                self.toolchain.runner()
            return self._run(work.kernels, work.arguments, kernel.arch)
        members = [
            Kernel(
                kernel.name, self._entry(kernel), side, include_dirs=(str(kernel.source.parent),), entry=ENTRY
            )
            for side in _SIDES[kernel.kind]
        ]
        with self._build:  # one build of the runner, not one per thread
            self.toolchain.runner()
        return self._run(members, replay_arguments(kernel), kernel.arch)

    def _run(self, members: Sequence[Kernel], arguments: ReplayArguments, arch: str) -> Simulation:
        result = self.simulator.run(SimulatorJob(tuple(members), arguments, arch))
        assert result.simulation is not None
        return result.simulation

    def _entry(self, kernel: ProfileKernel) -> Path:
        """The entry's file, in one place per text, so that what is compiled from it can be kept."""
        text = entry_source(kernel)

        def write(into: Path) -> None:
            (into / _ENTRY_FILE).write_text(text, encoding="utf-8")

        return self.toolchain.cache.put("entry", content_key([text]), write) / _ENTRY_FILE

    def run(self, kernel: ProfileKernel, places: Places) -> RunOutcome:
        from insight_trace.replay.recorded import recording_of
        from insight_trace.replay.replaying import make_trace
        from insight_trace.trace.details_figures import details_of

        if self._stopped.is_set():
            raise JobError("interrupted")
        places.step("simulate")
        simulation = self.simulate(kernel)
        said = [str(simulation.failure)] if simulation.failure else []
        said += [f"{simulation.cycles} cycles at {simulation.mhz:g} MHz", *map(str, simulation.findings)]
        (places.logs / "simulate.log").write_text("\n".join(said) + "\n", encoding="utf-8")
        if self.check:
            known = {str(path): python_lines(kernel.pto, path) for path in _generated(kernel)}
            simulation = replace(simulation, findings=with_python_lines(simulation.findings, known))
            found = json.dumps([finding_data(finding) for finding in simulation.findings], indent=1)
            (places.logs / FINDINGS).write_text(found + "\n", encoding="utf-8")
        if simulation.failure:
            failure = simulation.failure
            return RunOutcome(FAILED, f"{failure}\n{next_step(failure.fault, failure.limit)}")
        places.step("write")
        # The entry lies in a cache, a copied source in a folder that goes away: neither place is a reader's.
        moves = {str(self._entry(kernel).parent): _ENTRY_FOLDER}
        source = kernel.source
        if places.origin is not None:
            moves[str(source.parent)] = str(places.origin)
            source = places.origin / source.name
        lines = {str(path): python_lines(kernel.pto, path) for path in _generated(kernel)}
        plain = make_trace(simulation, self.preset)
        hot, _ = python_cycles(plain, lines)
        trace = _as_from(with_python(plain, lines, _python_roots(kernel)), moves)
        # the entry is ours, and of no use to a reader of the kernel
        trace = replace(
            trace, sources={name: text for name, text in trace.sources.items() if not _is_entry(name)}
        )
        seen = functools.partial(written_bytes, simulation)
        checks = (
            verify_outputs(kernel.workload.arguments, simulation.buffers, written=seen)
            if kernel.workload
            else ()
        )
        arguments = kernel.workload.arguments if kernel.workload else replay_arguments(kernel)
        about: dict[str, object] = {"target": kernel.arch, "preset": self.preset, "kernel": kernel.name}
        about["tiles"] = tile_names(kernel.pto)
        members = kernel.workload.kernels if kernel.workload else ()
        kernels = members or [Kernel(kernel.name, source, side) for side in _SIDES[kernel.kind]]
        recording = recording_of(simulation, trace, kernels, arguments, checks, about)
        details = details_of(trace, [kernel.name], kernel.arch)
        _write(kernel, trace, places.out, self.include_source, recording, details)
        if self.keep_outputs:
            _keep_outputs(kernel, simulation, places.folder / "outputs")
        wrong = [check.text for check in checks if check.status is Status.MISMATCH]
        if hot:
            rows = [dataclasses.asdict(row) for row in hot]
            (places.folder / "python_lines.json").write_text(
                json.dumps(rows, indent=1) + "\n", encoding="utf-8"
            )
        shown = {"source": str(source), "simulator": f"embedded, preset {self.preset}"}
        write_figures(trace, places.folder, kernel.name, shown)
        write_memory_page(recording, places.folder, kernel.name)
        pipes = core_pipes(simulation.instructions)
        return RunOutcome(
            EXPORTED,
            cycles=simulation.cycles,
            bound_by=bound_by(pipes),
            pipes=pipes,
            # a note is no warning: notes stand in the findings alone
            warnings=(
                *(f"not what the run gave: {text}" for text in wrong),
                *(str(f) for f in simulation.findings if f.severity is not Severity.NOTE),
            ),
            verified=verdict(checks) is Status.VERIFIED,
            facts={
                "verified": "; ".join(check.text for check in checks),
                "python": "; ".join(f"{row.frame} {row.operation} {row.share:.0%}" for row in hot[:3]),
            },
        )


def runner_name(options: EmbeddedRunner | RunnerOptions, toolchain: str) -> str:
    """Which simulator, with what decides its result."""
    launched = options.launch in (True, "kernel")
    words = (options.soc_version, options.l2, "launched" * launched, "checked" * options.check)
    return " ".join(["embedded", options.preset, *(word for word in words if word), toolchain])


def _is_entry(name: str) -> bool:
    return name == f"{_ENTRY_FOLDER}/{_ENTRY_FILE}"


def _generated(kernel: ProfileKernel) -> list[Path]:
    return [kernel.source] if kernel.workload is None else [k.source for k in kernel.workload.kernels]


def _python_roots(kernel: ProfileKernel) -> list[Path]:
    """Where the user's Python may lie: beside the build, or above it."""
    return list(kernel.pto.parents)[1:4]


def entry_source(kernel: ProfileKernel) -> str:
    """C++ with an entry that calls the kernel's functions, each on its core; buffers come from their slots."""
    calls = []
    for function in kernel.functions:
        only = ""
        if len(kernel.functions) > 1:
            only = "__DAV_CUBE__" if function is kernel.functions[0] else "__DAV_VEC__"
        parameters = tuple(_parameter(argument) for argument in kernel.arguments_of(function))
        calls.append(EntryCall(function.name, parameters, only))
    return wrapper_source(kernel.source.name, calls)


def _parameter(argument: KernelArg) -> EntryParameter:
    if isinstance(argument, BufferArg):
        return EntryParameter(argument.dtype.cpp, pointer=True)
    if argument.per_lane:
        return EntryParameter(argument.cpp_type, hidden=LANE)
    return EntryParameter(argument.cpp_type, literal=argument.literal)


def replay_arguments(kernel: ProfileKernel) -> ReplayArguments:
    """The kernel's buffers as flat tensors, by slot."""
    if len(kernel.buffers) > LOCAL_CONTEXT_SLOT:
        raise InputError(
            f"takes {len(kernel.buffers)} buffers; {LOCAL_CONTEXT_SLOT} are possible",
            where=str(kernel.source),
        )
    tensors = []
    for slot, argument in enumerate(kernel.buffers):
        if argument.elements > _MAX_SHAPE:
            raise InputError(
                f"{argument.label} has {argument.elements} elements, more than a tensor can have",
                hint="choose a smaller --dynamic-dim, or set the scalars that decide its size with --scalar",
            )
        zero = argument.content is Content.ZERO
        tensors.append(
            ReplayTensor(
                slot,
                argument.dtype,
                (argument.elements,),
                (1,),
                Zero() if zero else Given(content_of(argument, kernel.seed)),
                Tier.FILLED if argument.content is Content.FILE else Tier.SYNTHETIC,
                argument.nbytes,
                argument.nbytes + TILE_MARGIN,
                role=argument.role,
                name=argument.label,
                origin=argument.why,
            )
        )
    return ReplayArguments(tuple(tensors))


def _keep_outputs(kernel: ProfileKernel, simulation: Simulation, folder: Path) -> None:
    """What the kernel wrote, one .npy per output; the element type stands in the name where NumPy has none."""
    import numpy as np

    folder.mkdir(parents=True, exist_ok=True)
    arguments = kernel.workload.arguments if kernel.workload else replay_arguments(kernel)
    for tensor in arguments.tensors:
        if not tensor.is_output or tensor.slot not in simulation.outputs:
            continue
        array = simulation.outputs[tensor.slot]
        plain = array.dtype.kind in "fiub"
        name = f"slot{tensor.slot}" + (f"_{tensor.name}" if tensor.name else "")
        stored = array if plain else array.view(f"u{array.dtype.itemsize}")
        np.save(folder / f"{name}{'' if plain else '.' + array.dtype.name}.npy", stored)


def _write(
    kernel: ProfileKernel,
    trace: Trace,
    out: Path,
    include_source: bool,
    recording: Recording,
    details: DetailsPage,
) -> None:
    from insight_trace.insight.writer import write_insight_directory

    # Named by the kernel and dated by its source, so that the same kernel gives the same bytes.
    digest = hashlib.sha256(kernel.name.encode()).digest()
    letters = "".join(chr(ord("A") + byte % 26) for byte in digest[:16])
    stamp = time.strftime("%Y%m%d%H%M%S", time.gmtime(kernel.source.stat().st_mtime))
    write_insight_directory(
        trace,
        out,
        name=letters,
        timestamp=stamp,
        include_source=include_source,
        recording=recording,
        details=details,
    )


def _as_from(trace: Trace, moves: Mapping[str, str]) -> Trace:
    """The trace with sources under other folders."""

    def named(text: str) -> str:
        for here, there in moves.items():
            text = text.replace(f"{here}/", f"{there}/")
        return text

    columns = trace.instructions
    return replace(
        trace,
        instructions=replace(columns, stacks=tuple(map(named, columns.stacks))),
        sources={named(name): text for name, text in trace.sources.items()},
    )


def make(options: RunnerOptions, _simulator: Simulator | None = None) -> EmbeddedRunner:
    """The embedded runner for the command line's options."""
    return EmbeddedRunner(
        preset=options.preset,
        seconds=options.step_timeout,
        include_source=options.include_source,
        keep_outputs=options.keep_outputs,
        soc_version=options.soc_version or None,
        l2=options.l2,
        launch=options.launch == "kernel",
        check=options.check,
    )
