"""One dispatch to time, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from insight_trace.chips import load_chip
from insight_trace.digest import job_digest
from insight_trace.job import Job
from insight_trace.model import Pipe
from insight_trace.options import RunOptions
from insight_trace.outcome import Simulation
from insight_trace.recording.busy import prologues
from insight_trace.run.calibration import core_times
from insight_trace.run.measured import TOTAL
from insight_trace.simulate.embedded.embedded_simulator import EmbeddedSimulator
from insight_trace.simulate.embedded.estimates import estimate_share
from insight_trace.simulate.embedded.memory import BASE
from insight_trace.simulate.embedded.toolchain import Toolchain

_VERSION = 2  # of what a result holds
_SLOT = "slot "  # how a simulation names the buffers of its arguments


class TimingJob(Struct, frozen=True, eq=False):
    """A dispatch on a chip."""

    job: Job
    options: RunOptions

    @property
    def computes(self) -> bool:
        """With its arithmetic, because it looks at what it has loaded."""
        return not self.options.timing_only


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


def digest(job: TimingJob, toolchain: Toolchain) -> str:
    """The job's name among kept results; "" for one that has none, and is always run."""
    return job_digest(job.job, job.options, toolchain, _VERSION)


def run_timing_job(job: TimingJob) -> Timed:
    """Simulates the dispatch. What goes wrong is in `failure`."""
    run = EmbeddedSimulator(job.options).run(job.job).simulation
    assert run is not None
    if run.failure is not None or run.launch is None:
        return Timed(0, (), {}, 0.0, 0, failure=str(run.failure or "it has no times"))
    spans = [end - start for start, end in zip(run.launch.starts, run.launch.ends, strict=True)]
    wide = len(job.job.kernels)
    reads, on_chip = looked_at(run)
    chip = load_chip(job.options.soc_version, target=job.job.target, preset=job.options.preset)
    return Timed(
        cycles=max(run.launch.ends, default=0),
        times=tuple(tuple(spans[i : i + wide]) for i in range(0, len(spans), wide)),
        busy=_busy(run),
        estimated=estimate_share(run, chip).share,
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
