"""Runs planned kernels on the embedded core and writes their Insight directories."""

from __future__ import annotations

import hashlib
import threading
import time
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from insight_trace.arguments.content import Given, Zero
from insight_trace.arguments.slots import TILE_MARGIN, ReplayArguments, ReplayTensor
from insight_trace.errors import InputError, JobError
from insight_trace.model import LOCAL_CONTEXT_SLOT, CoreType, Kernel, Pipe, Simulation, Tier, Trace
from insight_trace.ptoas.inputs import content_of
from insight_trace.ptoas.runner import EXPORTED, FAILED, CorePipes, RunOutcome
from insight_trace.ptoas.spec import BufferArg, Content, ProfileKernel, ValueArg
from insight_trace.ptoas.testcase import template_environment
from insight_trace.simulate.embedded.cache import content_key
from insight_trace.simulate.embedded.simulator import EmbeddedOptions, run_embedded
from insight_trace.simulate.embedded.toolchain import Toolchain

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# What a pipe executes without working: it waits, or it is told something.
_NO_WORK = frozenset({"SET_FLAG", "WAIT_FLAG", "BAR", "BARRIER", "MOV_SPR_XN", "MOVEMASK"})
_MAX_SHAPE = 2**32 - 1
_SIDES = {
    CoreType.AIC: (CoreType.AIC,),
    CoreType.AIV: (CoreType.AIV,),
    CoreType.MIX: (CoreType.AIC, CoreType.AIV, CoreType.AIV),
}


class EmbeddedRunner:
    """Runs one kernel per call; calls may come from several threads."""

    def __init__(self, *, preset: str = "device", seconds: float = 300.0) -> None:
        self.preset = preset
        self.seconds = seconds
        self._stopped = threading.Event()
        self._build = threading.Lock()

    @cached_property
    def toolchain(self) -> Toolchain:
        return Toolchain.find()

    @property
    def name(self) -> str:
        return f"embedded {self.preset} {self.toolchain.identity[:16]}"

    def stop(self) -> None:
        """No kernel starts any more; the one that runs ends by itself or at its time limit."""
        self._stopped.set()

    def simulate(self, kernel: ProfileKernel) -> Simulation:
        """One run, with the outputs by slot: the i-th buffer is slot i."""
        members = [
            Kernel(kernel.name, self._entry(kernel), side, include_dirs=(str(kernel.source.parent),))
            for side in _SIDES[kernel.kind]
        ]
        options = EmbeddedOptions(target=kernel.arch, preset=self.preset, seconds=self.seconds)
        with self._build:  # one build of the runner, not one per thread
            self.toolchain.runner()
        return run_embedded(members, replay_arguments(kernel), options, self.toolchain)

    def _entry(self, kernel: ProfileKernel) -> Path:
        """The entry's file, in one place per text, so that what is compiled from it can be kept."""
        text = entry_source(kernel)

        def write(into: Path) -> None:
            (into / "insight_entry.cpp").write_text(text, encoding="utf-8")

        return self.toolchain.cache.put("entry", content_key([text]), write) / "insight_entry.cpp"

    def run(self, kernel: ProfileKernel, out: Path, logs: Path) -> RunOutcome:
        if self._stopped.is_set():
            raise JobError("interrupted")
        simulation = self.simulate(kernel)
        said = [str(simulation.failure)] if simulation.failure else []
        said += [f"{simulation.cycles} cycles at {simulation.mhz:g} MHz", *simulation.findings]
        (logs / "simulate.log").write_text("\n".join(said) + "\n", encoding="utf-8")
        if simulation.failure:
            return RunOutcome(FAILED, str(simulation.failure))
        _write(kernel, simulation, out)
        pipes = core_pipes(simulation)
        return RunOutcome(
            EXPORTED,
            cycles=simulation.cycles,
            bound_by=bound_by(pipes),
            pipes=pipes,
            warnings=simulation.findings,
        )


def entry_source(kernel: ProfileKernel) -> str:
    """C++ with a `kernel_entry` that calls the kernel's functions, each on its core."""
    environment = template_environment()
    slots = {argument.position: slot for slot, argument in enumerate(kernel.buffers)}
    calls: list[dict[str, Any]] = []
    for function in kernel.functions:
        arguments = []
        for argument in kernel.arguments_of(function):
            arguments.append(
                {
                    "slot": slots.get(argument.position),
                    "type": argument.dtype.cpp if isinstance(argument, BufferArg) else "",
                    "lane": isinstance(argument, ValueArg) and argument.per_lane,
                    "value": argument,
                }
            )
        guard = ""
        if len(kernel.functions) > 1:
            guard = "__DAV_CUBE__" if function is kernel.functions[0] else "__DAV_VEC__"
        calls.append({"name": function.name, "arguments": arguments, "guard": guard})
    context = {"case": kernel.name, "source": kernel.source.name, "calls": calls}
    text: str = environment.get_template("entry.cpp.j2").render(context)
    return text


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


def _write(kernel: ProfileKernel, simulation: Simulation, out: Path) -> None:
    from insight_trace.insight.writer import write_insight_directory

    sources = {}
    for name, path in simulation.sources.items():
        try:
            sources[name] = path.read_bytes()
        except OSError:  # the entry is gone, and nobody wants to see it
            continue
    trace = Trace(simulation.instructions, simulation.mhz, simulation.soc_version, sources)
    # Named by the kernel and dated by its source, so that the same kernel gives the same bytes.
    digest = hashlib.sha256(kernel.name.encode()).digest()
    letters = "".join(chr(ord("A") + byte % 26) for byte in digest[:16])
    stamp = time.strftime("%Y%m%d%H%M%S", time.gmtime(kernel.source.stat().st_mtime))
    write_insight_directory(trace, out, name=letters, timestamp=stamp)


def core_pipes(simulation: Simulation) -> tuple[CorePipes, ...]:
    """Busy cycles and working instructions of each pipe of each core."""
    import numpy as np

    columns = simulation.instructions
    idle = np.array([name in _NO_WORK for name in columns.names], dtype=bool)
    works = ~idle[columns.name] if len(columns) else np.zeros(0, dtype=bool)
    found = []
    for number, core in enumerate(columns.cores):
        cycles, counts = {}, {}
        mine = works & (columns.core == number)
        for pipe in np.unique(columns.pipe[mine]):
            rows = mine & (columns.pipe == pipe)
            label = Pipe(int(pipe)).name
            cycles[label] = _busy(columns.start[rows], columns.end[rows])
            counts[label] = int(rows.sum())
        found.append(CorePipes(core, cycles, counts))
    return tuple(found)


def _busy(start: NDArray[np.int64], end: NDArray[np.int64]) -> int:
    """Cycles in which at least one of the intervals runs."""
    import numpy as np

    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    reached = np.maximum.accumulate(end)
    before = np.concatenate((start[:1], reached[:-1]))
    return int(np.maximum(0, end - np.maximum(start, before)).sum())


def bound_by(pipes: tuple[CorePipes, ...]) -> str:
    """The pipe that is busy longest on any core."""
    busy = [(cycles, pipe) for core in pipes for pipe, cycles in core.cycles.items()]
    return max(busy, default=(0, ""), key=lambda pair: pair[0])[1]


def make(options: Any) -> EmbeddedRunner:
    """The embedded runner for the command line's RunnerOptions."""
    return EmbeddedRunner(preset=options.preset, seconds=options.step_timeout)
