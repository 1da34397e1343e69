"""One dispatch to time: what its kernels get, as plain data that can be sent elsewhere, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from insight_trace.arguments.content import CallerArray, Content, Zero
from insight_trace.arguments.slots import ReplayArguments, ReplayScalar, ReplaySlot, make_tensor
from insight_trace.digest import job_digest
from insight_trace.dtypes import dtype_named
from insight_trace.errors import InputError
from insight_trace.job import Job
from insight_trace.model import Kernel, Pipe, Role, Tier
from insight_trace.options import RunOptions
from insight_trace.outcome import Simulation
from insight_trace.recording.busy import prologues
from insight_trace.run.calibration import core_times
from insight_trace.run.measured import TOTAL
from insight_trace.simulate.embedded.estimates import estimate_share
from insight_trace.simulate.embedded.memory import BASE
from insight_trace.simulate.embedded.simulator import EmbeddedOptions, chip_of, run_embedded
from insight_trace.simulate.embedded.toolchain import Toolchain

if TYPE_CHECKING:
    from insight_trace.dtypes import DType

_VERSION = 2  # of what a result holds
_SLOT = "slot "  # how a simulation names the buffers of its arguments


@dataclass(frozen=True, slots=True)
class TensorSlot:
    slot: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # elements
    start_offset: int  # elements
    role: str
    content: bytes | None = None  # the view's elements row by row; None: zeros, which nothing looks at
    shares: int | None = None  # the lower slot that has the same buffer


@dataclass(frozen=True, slots=True)
class ScalarSlot:
    slot: int
    dtype: str
    bits: int


@dataclass(frozen=True, slots=True)
class TimingJob:
    """A dispatch on a chip. `computes`: with its arithmetic, because it looks at what it has loaded."""

    name: str
    kernels: tuple[Kernel, ...]  # cube, first and second vector member, those that there are
    tensors: tuple[TensorSlot, ...]
    scalars: tuple[ScalarSlot, ...]
    block_count: int = 1
    held: tuple[tuple[int, bool], ...] = ()  # slots that L2 holds, the longest ago first, and whether dirty
    soc_version: str | None = None
    target: str = "a2a3"
    preset: str = "device"
    seconds: float = 60.0
    computes: bool = False


@dataclass(frozen=True, slots=True)
class Timed:
    """What a job took."""

    cycles: int
    times: tuple[tuple[int, ...], ...]  # by block, cycles of each of its kernels
    busy: dict[str, float]  # pipe -> share of the time of the core that is busiest with it
    estimated: float  # share of the cycles that rests on estimates
    instructions: int
    reads: tuple[int, ...] = ()  # slots whose content the scalar unit looked at
    looks_on_chip: bool = False  # it looked at what it had loaded, too
    failure: str = ""
    hbm: int = 0  # bytes that came from HBM or went back to it
    l2: int = 0  # bytes asked of L2

    @property
    def bound(self) -> str:
        """The pipe that has most to do."""
        return max(self.busy, key=lambda pipe: self.busy[pipe]) if self.busy else ""


def arguments_of(job: TimingJob) -> ReplayArguments:
    """The arguments as a simulation takes them."""

    slots: list[ReplaySlot] = []
    for tensor in job.tensors:
        dtype = _dtype(tensor.dtype)
        content, tier = _content(tensor, dtype)
        made = make_tensor(
            tensor.slot, dtype, tensor.shape, content, tier, strides=tensor.strides,
            start_offset=tensor.start_offset, role=Role(tensor.role),
            origin="the scene's" if tensor.content is not None else "not looked at: zero",
        )  # fmt: skip
        slots.append(made if tensor.shares is None else replace(made, shares=tensor.shares))
    for scalar in job.scalars:
        slots.append(
            ReplayScalar(scalar.slot, _dtype(scalar.dtype), scalar.bits, Tier.EXACT, origin="submitted")
        )
    return ReplayArguments(tuple(slots), job.block_count)


def _dtype(name: str) -> DType:
    found = dtype_named(name)
    if found is None:
        raise InputError(f"there is no element type {name}")
    return found


def _content(tensor: TensorSlot, dtype: DType) -> tuple[Content, Tier]:
    import numpy as np

    if tensor.content is None:
        return Zero(), Tier.OUTPUT if tensor.role == Role.OUTPUT else Tier.SYNTHETIC
    return CallerArray(np.frombuffer(tensor.content, dtype.numpy).reshape(tensor.shape)), Tier.EXACT


def digest(job: TimingJob, toolchain: Toolchain) -> str:
    """The job's name among kept results; "" for one that has none, and is always run."""
    options = RunOptions(
        soc_version=job.soc_version, preset=job.preset, timing_only=not job.computes, l2="trace"
    )
    whole = Job(job.kernels, arguments_of(job), job.target, held=job.held)
    return job_digest(whole, options, toolchain, _VERSION)


def options_of(job: TimingJob) -> EmbeddedOptions:
    return EmbeddedOptions(
        soc_version=job.soc_version,
        target=job.target,
        preset=job.preset,
        timing_only=not job.computes,
        l2="trace",
        held=job.held,
        seconds=job.seconds,
        host_cores=1,  # the others run other dispatches
    )


def run_timing_job(job: TimingJob) -> Timed:
    """Simulates the dispatch. What goes wrong is told in `failure`."""
    options = options_of(job)
    run = run_embedded(job.kernels, arguments_of(job), options)
    if run.failure is not None or run.launch is None:
        return Timed(0, (), {}, 0.0, 0, failure=str(run.failure or "it told no times"))
    spans = [end - start for start, end in zip(run.launch.starts, run.launch.ends, strict=True)]
    wide = len(job.kernels)
    reads, on_chip = looked_at(run)
    return Timed(
        cycles=max(run.launch.ends, default=0),
        times=tuple(tuple(spans[i : i + wide]) for i in range(0, len(spans), wide)),
        busy=_busy(run),
        estimated=estimate_share(run, chip_of(options)).share,
        instructions=len(run.instructions),
        reads=reads,
        looks_on_chip=on_chip,
        hbm=run.memory.fetched + run.memory.written_back if run.memory else 0,
        l2=run.memory.asked if run.memory else 0,
    )


def _busy(run: Simulation) -> dict[str, float]:
    """Of each pipe, the larger share of its kinds of cores; of the scalar unit without the prologue."""
    found: dict[str, float] = {}
    columns = run.instructions
    prologue = prologues(columns)
    for kind, cycles in core_times(run).items():
        total = max(cycles[TOTAL], 1.0)
        cores = [
            number for number, name in enumerate(columns.cores) if ("cubecore" in name) == (kind == "aic")
        ]
        before = sum(prologue[number] for number in cores) / len(cores)
        for pipe, busy in cycles.items():
            if pipe != TOTAL:
                busy = max(0.0, busy - before) if pipe == Pipe.SCALAR.name else busy
                found[pipe] = max(found.get(pipe, 0.0), round(busy / total, 4))
    return found


def looked_at(run: Simulation) -> tuple[tuple[int, ...], bool]:
    """The slots whose content scalar loads saw, and whether one looked into the core's own memories."""
    import numpy as np

    columns = run.instructions
    if columns.operands is None or not len(columns):
        return (), False
    loads = np.array([name.startswith("LD_") for name in columns.names] or [False], bool)
    places: Any = columns.operands.value[loads[columns.name]]
    outside = places >= BASE
    found = set()
    for name, address, _, padded in run.regions:
        if name.startswith(_SLOT) and bool(((places >= address) & (places < address + padded)).any()):
            found.add(int(name.removeprefix(_SLOT)))
    return tuple(sorted(found)), bool((~outside).any())
