"""Runs planned kernels on the embedded core and writes their Insight directories."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from insight_trace.arguments.slots import TILE_MARGIN, CallerArray, ReplayArguments, ReplayTensor, Zero
from insight_trace.cache import content_key
from insight_trace.digest import file_hash, job_digest
from insight_trace.errors import InputError, next_step
from insight_trace.executor import Output
from insight_trace.finding import Severity, finding_data
from insight_trace.insight.memory_page import write_memory_page
from insight_trace.job import ENTRY_SHOWN, Job, PythonSource
from insight_trace.model import LOCAL_CONTEXT_SLOT, CoreType, Kernel, Tier
from insight_trace.options import KERNEL_SECONDS, RunOptions
from insight_trace.outcome import Simulation
from insight_trace.profile.kernel_runner import (
    EXPORTED,
    FAILED,
    Places,
    RunOutcome,
    bound_by,
    core_pipes,
    write_figures,
)
from insight_trace.ptoas.buffer_content import content_of
from insight_trace.ptoas.planned_kernel import BufferArg, Content, KernelArg, ProfileKernel
from insight_trace.ptoas.python_lines import python_lines, tile_names
from insight_trace.replay.pipeline import Execution, execute
from insight_trace.replay.verification import Status
from insight_trace.replay.workspace import write_counters, write_import, write_insight, write_record
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


class KernelJob(Struct, frozen=True, eq=False):
    """A kernel of a build to run, and where what comes of it goes."""

    job: Job
    options: RunOptions
    source: str  # as a reader knows it
    timestamp: str  # of the source, which dates the result
    folder: Output
    logs: Output


class EmbeddedRunner:
    """Makes jobs of the kernels of a plan."""

    why_made_up = ""  # it takes dispatches of a build's own run
    in_threads = False

    def __init__(self, options: RunOptions | None = None) -> None:
        # of the host's cores the others run other kernels
        self.options = replace(
            options or RunOptions(seconds=KERNEL_SECONDS), simulator="embedded", host_cores=1
        )
        self.toolchain = Toolchain.find(self.options.pto_isa_root, self.options.ascendc_root)

    @property
    def name(self) -> str:
        """Which simulator, with what decides its result."""
        options = self.options
        launched = {"kernel": "launched", "first": "first-launch"}.get(options.launch or "")
        words = (options.soc_version, options.l2, launched, "checked" if options.check else None)
        return " ".join(
            ["embedded", options.preset, *(word for word in words if word), self.toolchain.identity[:16]]
        )

    def stop(self) -> None:
        """A kernel that runs ends with its process, or at its time limit."""

    def call(self, kernel: ProfileKernel, places: Places) -> Callable[[], RunOutcome]:
        self.toolchain.runner()  # built once, before there are many
        # Dated by its source, so that the same kernel gives the same bytes.
        stamp = time.strftime("%Y%m%d%H%M%S", time.gmtime(kernel.source.stat().st_mtime))
        places.step("simulate")
        return functools.partial(
            profile_kernel,
            KernelJob(
                self.job(kernel), self.options, str(kernel.source), stamp, Output(places.folder), Output(places.logs)
            ),
        )  # fmt: skip

    def job(self, kernel: ProfileKernel) -> Job:
        """A kernel of the plan as a job."""
        work = kernel.workload
        # the user's Python may lie beside the build, or above it
        lines = {str(path): python_lines(kernel.pto, path) for path in _generated(kernel)}
        python = PythonSource(lines, tuple(kernel.pto.parents)[1:4], tile_names(kernel.pto))
        if work is not None:
            return Job(
                work.kernels, work.arguments, kernel.arch, work.scene, dispatch=work.dispatch, name=kernel.name,
                origin=f"dispatch {work.number} of {work.count} of the build's run", python=python,
            )  # fmt: skip
        entry = self._entry(kernel)
        folders = (str(kernel.source.parent),)
        members = tuple(
            Kernel(kernel.name, entry, side, include_dirs=folders, entry=ENTRY, written=kernel.source)
            for side in _SIDES[kernel.kind]
        )
        # the entry lies in a cache: that is no place of a reader's
        return Job(
            members, replay_arguments(kernel), kernel.arch, name=kernel.name, origin="made up", python=python,
            shown_as={str(entry): ENTRY_SHOWN},
        )  # fmt: skip

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


def profile_kernel(asked: KernelJob) -> RunOutcome:
    """Runs a kernel and writes its workspace: what a replay writes, and the clean trace with its figures."""
    job, options, logs = asked.job, asked.options, asked.logs.path
    done = execute(job, options)
    simulation = done.simulation
    assert simulation is not None
    said = [str(simulation.failure)] if simulation.failure else []
    said += [f"{simulation.cycles} cycles at {simulation.mhz:g} MHz", *map(str, simulation.findings)]
    (logs / "simulate.log").write_text(job.shown("\n".join(said)) + "\n", encoding="utf-8")
    if options.check:
        found = json.dumps([finding_data(finding) for finding in simulation.findings], indent=1)
        (logs / FINDINGS).write_text(job.shown(found) + "\n", encoding="utf-8")
    if simulation.failure:
        failure = simulation.failure
        return RunOutcome(FAILED, f"{failure}\n{next_step(failure.fault, failure.limit)}")
    _write(asked, done)
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
            "verified": "; ".join(check.text for check in done.checks) if job.dispatch else "",
            "python": "; ".join(f"{row.frame} {row.operation} {row.share:.0%}" for row in done.hot_lines[:3]),
        },
    )


def _write(asked: KernelJob, done: Execution) -> None:
    assert done.recording is not None
    assert done.simulation is not None
    job, options, folder = asked.job, asked.options, asked.folder.path
    # Named by the kernel, so that the same kernel gives the same bytes.
    digest = hashlib.sha256(job.name.encode()).digest()
    letters = "".join(chr(ord("A") + byte % 26) for byte in digest[:16])
    out = folder / "collect" / "out"
    out.mkdir(parents=True, exist_ok=True, mode=0o700)
    simulator, _, figures = write_insight(done, out, options, name=letters, timestamp=asked.timestamp)
    write_import(job, simulator, folder)
    write_counters(done.recording, job, folder, figures)
    write_record(done, options, folder, done.warnings)
    if options.keep_outputs:
        _keep_outputs(job.arguments, done.simulation, folder / "outputs")
    if done.hot_lines:
        rows = json.dumps([dataclasses.asdict(row) for row in done.hot_lines], indent=1)
        (folder / "python_lines.json").write_text(rows + "\n", encoding="utf-8")
    shown = {"source": asked.source, "simulator": f"embedded, preset {options.preset}"}
    write_figures(done.recording.trace, folder, job.name, shown)
    write_memory_page(done.recording, folder, job.name)


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
