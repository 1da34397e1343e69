"""Runs planned kernels on the embedded core and writes their Insight directories."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from insight_trace.arguments.content import CallerArray, Zero
from insight_trace.arguments.slots import TILE_MARGIN, ReplayArguments, ReplayTensor
from insight_trace.cache import content_key
from insight_trace.digest import file_hash, job_digest
from insight_trace.errors import InputError, JobError, next_step
from insight_trace.finding import Severity, finding_data
from insight_trace.insight.memory_page import write_memory_page
from insight_trace.job import ENTRY_SHOWN, Job, PythonSource
from insight_trace.model import LOCAL_CONTEXT_SLOT, CoreType, Kernel, Tier
from insight_trace.options import KERNEL_SECONDS, RunOptions
from insight_trace.outcome import Simulation
from insight_trace.profile.kernel_figures import bound_by, core_pipes, write_figures
from insight_trace.profile.kernel_runner import EXPORTED, FAILED, Places, RunOutcome
from insight_trace.ptoas.buffer_content import content_of
from insight_trace.ptoas.planned_kernel import BufferArg, Content, KernelArg, ProfileKernel
from insight_trace.ptoas.python_lines import python_lines, tile_names
from insight_trace.replay.pipeline import Execution, execute
from insight_trace.replay.verification import Status
from insight_trace.replay.workspace import write_counters, write_import, write_insight, write_record
from insight_trace.simulate.embedded.embedded_simulator import EmbeddedSimulator
from insight_trace.simulate.embedded.toolchain import Toolchain
from insight_trace.simulate.embedded.typed_entry import ENTRY, LANE, EntryCall, EntryParameter, wrapper_source

FINDINGS = "findings.json"  # of a checked kernel, in its folder of logs
_MAX_SHAPE = 2**32 - 1
_ENTRY_FILE = Path(ENTRY_SHOWN).name
_SIDES = {
    CoreType.AIC: (CoreType.AIC,),
    CoreType.AIV: (CoreType.AIV,),
    CoreType.MIX: (CoreType.AIC, CoreType.AIV, CoreType.AIV),
}


class EmbeddedRunner:
    """Runs one kernel per call; calls may come from several threads."""

    why_made_up = ""  # it takes dispatches of a build's own run

    def __init__(self, options: RunOptions | None = None) -> None:
        # of the host's cores the others run other kernels
        self.options = replace(
            options or RunOptions(seconds=KERNEL_SECONDS), simulator="embedded", host_cores=1
        )
        self.simulator = EmbeddedSimulator(self.options)
        self._stopped = threading.Event()
        self._build = threading.Lock()

    @property
    def toolchain(self) -> Toolchain:
        return self.simulator.toolchain

    @property
    def name(self) -> str:
        return runner_name(self.options, self.toolchain.identity[:16])

    def stop(self) -> None:
        """No kernel starts any more; the one that runs ends by itself or at its time limit."""
        self._stopped.set()

    def simulate(self, kernel: ProfileKernel) -> Simulation:
        """One run, with the outputs by slot: the i-th buffer is slot i, or as the build's run dispatched it."""
        done = self._execute(self.job(kernel), record=False)
        assert done.simulation is not None
        return done.simulation

    def _execute(
        self, job: Job, *, record: bool = True, step: Callable[[str], None] = lambda _: None
    ) -> Execution:
        with self._build:  # one build of the runner, not one per thread
            self.toolchain.runner()
        return execute(job, self.options, simulator=self.simulator, record=record, progress=step)

    def job(self, kernel: ProfileKernel, copies: Path | None = None) -> Job:
        """A kernel of the plan as a job; traces name files in `copies` as those that they are copies of."""
        work = kernel.workload
        shown = {} if copies is None else {f"{copies}/": "/"}
        # the user's Python may lie beside the build, or above it
        lines = {str(path): python_lines(kernel.pto, path) for path in _generated(kernel)}
        python = PythonSource(lines, tuple(kernel.pto.parents)[1:4], tile_names(kernel.pto))
        if work is not None:
            return Job(
                work.kernels, work.arguments, kernel.arch, work.scene, dispatch=work.dispatch, name=kernel.name,
                origin=f"dispatch {work.number} of {work.count} of the build's run", python=python, shown_as=shown,
            )  # fmt: skip
        entry = self._entry(kernel)
        written = _original(kernel.source, copies)
        folders = (str(kernel.source.parent),)
        members = tuple(
            Kernel(kernel.name, entry, side, include_dirs=folders, entry=ENTRY, written=written)
            for side in _SIDES[kernel.kind]
        )
        # the entry lies in a cache: that is no place of a reader's
        shown[str(entry)] = ENTRY_SHOWN
        arguments = replay_arguments(kernel)
        return Job(
            members, arguments, kernel.arch, name=kernel.name, origin="made up", python=python, shown_as=shown
        )

    def digest(self, kernel: ProfileKernel) -> str:
        """A name that changes with everything that the kernel's results depend on."""
        options, work = self.options, kernel.workload
        files = [file_hash(path) for path in (kernel.source, kernel.pto)]
        more = (
            kernel.name,
            files,
            options.include_source,
            options.keep_outputs,
            work and (work.number, work.count),
        )
        return job_digest(self.job(kernel), options, self.toolchain, *more)

    def _entry(self, kernel: ProfileKernel) -> Path:
        """The entry's file, in one place per text, so that what is compiled from it can be kept."""
        text = entry_source(kernel)

        def write(into: Path) -> None:
            (into / _ENTRY_FILE).write_text(text, encoding="utf-8")

        return self.toolchain.cache.put("entry", content_key([text]), write) / _ENTRY_FILE

    def run(self, kernel: ProfileKernel, places: Places) -> RunOutcome:
        if self._stopped.is_set():
            raise JobError("interrupted")
        job = self.job(kernel, places.copies)
        done = self._execute(job, step=places.step)
        simulation = done.simulation
        assert simulation is not None
        said = [str(simulation.failure)] if simulation.failure else []
        said += [f"{simulation.cycles} cycles at {simulation.mhz:g} MHz", *map(str, simulation.findings)]
        (places.logs / "simulate.log").write_text("\n".join(said) + "\n", encoding="utf-8")
        if self.options.check:
            found = json.dumps([finding_data(finding) for finding in simulation.findings], indent=1)
            (places.logs / FINDINGS).write_text(found + "\n", encoding="utf-8")
        if simulation.failure:
            failure = simulation.failure
            return RunOutcome(FAILED, f"{failure}\n{next_step(failure.fault, failure.limit)}")
        places.step("write")
        self._write(kernel, done, places)
        pipes = core_pipes(simulation.instructions)
        wrong = [check.text for check in done.checks if check.status is Status.MISMATCH]
        return RunOutcome(
            EXPORTED,
            cycles=simulation.cycles,
            bound_by=bound_by(pipes),
            pipes=pipes,
            # a note is no warning: notes stand in the findings alone
            warnings=(
                *(f"not what the run gave: {text}" for text in wrong),
                *(str(f) for f in simulation.findings if f.severity is not Severity.NOTE),
                *done.warnings,
            ),
            verified=done.verified,
            facts={
                "verified": "; ".join(check.text for check in done.checks) if kernel.workload else "",
                "python": "; ".join(
                    f"{row.frame} {row.operation} {row.share:.0%}" for row in done.hot_lines[:3]
                ),
            },
        )

    def _write(self, kernel: ProfileKernel, done: Execution, places: Places) -> None:
        """The kernel's workspace: what a replay writes, and the clean trace with its figures."""
        assert done.recording is not None
        assert done.simulation is not None
        # Named by the kernel and dated by its source, so that the same kernel gives the same bytes.
        digest = hashlib.sha256(kernel.name.encode()).digest()
        letters = "".join(chr(ord("A") + byte % 26) for byte in digest[:16])
        stamp = time.strftime("%Y%m%d%H%M%S", time.gmtime(kernel.source.stat().st_mtime))
        simulator, _ = write_insight(done, places.out, self.options, name=letters, timestamp=stamp)
        write_import(done.job, simulator, places.folder)
        write_counters(done.recording, done.job, places.folder)
        write_record(done, self.options, places.folder, done.warnings)
        if self.options.keep_outputs:
            _keep_outputs(done.job.arguments, done.simulation, places.folder / "outputs")
        if done.hot_lines:
            rows = [dataclasses.asdict(row) for row in done.hot_lines]
            (places.folder / "python_lines.json").write_text(
                json.dumps(rows, indent=1) + "\n", encoding="utf-8"
            )
        source = _original(kernel.source, places.copies)
        shown = {"source": str(source), "simulator": f"embedded, preset {self.options.preset}"}
        write_figures(done.recording.trace, places.folder, kernel.name, shown)
        write_memory_page(done.recording, places.folder, kernel.name)


def runner_name(options: RunOptions, toolchain: str) -> str:
    """Which simulator, with what decides its result."""
    launched = "launched" if options.launch == "kernel" else None
    words = (options.soc_version, options.l2, launched, "checked" if options.check else None)
    return " ".join(["embedded", options.preset, *(word for word in words if word), toolchain])


def _original(path: Path, copies: Path | None) -> Path:
    """The file that this one is a copy of."""
    return path if copies is None else Path("/") / path.relative_to(copies)


def _generated(kernel: ProfileKernel) -> list[Path]:
    return [kernel.source] if kernel.workload is None else [k.source for k in kernel.workload.kernels]


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
                Zero() if zero else CallerArray(content_of(argument, kernel.seed)),
                Tier.FILLED if argument.content is Content.FILE else Tier.SYNTHETIC,
                argument.nbytes,
                argument.nbytes + TILE_MARGIN,
                role=argument.role,
                name=argument.label,
                origin=argument.why,
            )
        )
    return ReplayArguments(tuple(tensors))


def _keep_outputs(arguments: ReplayArguments, simulation: Simulation, folder: Path) -> None:
    """What the kernel wrote, one .npy per output; the element type stands in the name where NumPy has none."""
    import numpy as np

    folder.mkdir(parents=True, exist_ok=True)
    for tensor in arguments.tensors:
        if not tensor.is_output or tensor.slot not in simulation.outputs:
            continue
        array = simulation.outputs[tensor.slot]
        plain = array.dtype.kind in "fiub"
        name = f"slot{tensor.slot}" + (f"_{tensor.name}" if tensor.name else "")
        stored = array if plain else array.view(f"u{array.dtype.itemsize}")
        np.save(folder / f"{name}{'' if plain else '.' + array.dtype.name}.npy", stored)
