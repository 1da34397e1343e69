"""The embedded simulator behind the simulator protocol."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from insight_trace.job import Job
from insight_trace.options import RunOptions
from insight_trace.simulate.embedded.simulator import EmbeddedOptions, run_embedded
from insight_trace.simulate.embedded.toolchain import Toolchain
from insight_trace.simulate.simulators import Progress, SimulatorResult


class EmbeddedSimulator:
    """Runs dispatches on modelled cores of this machine."""

    name = "embedded"

    def __init__(self, options: RunOptions) -> None:
        self.options = options

    @cached_property
    def toolchain(self) -> Toolchain:
        return Toolchain.find(self.options.pto_isa_root, self.options.ascendc_root)

    def require(self, targets: Iterable[str]) -> None:
        """Nothing: it runs wherever there is a compiler, which is looked for when one is wanted."""

    def run(
        self, job: Job, workspace: Path | None = None, progress: Progress = lambda _step: None
    ) -> SimulatorResult:
        del workspace  # all that it leaves is in the result
        progress("simulate")
        how = self._how(job)
        if self.options.check:
            from insight_trace.simulate.embedded.checked_run import run_checked  # loads the checker

            simulation = run_checked(job.kernels, job.arguments, how, self.toolchain, self.options.orders)
        else:
            simulation = run_embedded(job.kernels, job.arguments, how, self.toolchain)
        return SimulatorResult(simulation.buffers, simulation)

    def _how(self, job: Job) -> EmbeddedOptions:
        asked = self.options
        return EmbeddedOptions(
            asked.soc_version,
            job.target,
            asked.preset,
            asked.timing_only,
            asked.seconds,
            l2=asked.l2,
            held=job.held,
            launch=asked.launch,
            mark_cost=asked.mark_cost,
            host_cores=asked.host_cores,
        )
