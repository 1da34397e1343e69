"""Simulator protocol, its two implementations by name, and what `--simulator auto` takes.

`auto`, for every command alike: the vendor's simulator where CANN is named, by an option or by CANN_SET_ENV or
ASCEND_HOME_PATH, and works; the embedded one everywhere else. An installation that only the environment names and that
does not work is passed over with a warning; one that the user named is an error. A chip's name says nothing about CANN,
as both simulators know it; a chip file is the embedded simulator's.

`replay` runs every dispatch through this protocol, and so does `profile`, but for kernels with made-up arguments under
msprof: those have no slots to pass, and `profile/msprof_runner.py` builds a program around each. `capture` runs a whole
orchestration, thousands of dispatches in one memory, which no simulator of single dispatches does: it has the embedded
core inside its own program, and no option to choose by.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct, field

from insight_trace.errors import InsightTraceError
from insight_trace.options import RunOptions, VendorOptions

if TYPE_CHECKING:
    from insight_trace.job import Job
    from insight_trace.outcome import Simulation

Progress = Callable[[str], None]
_NO_VENDOR = VendorOptions()
_CANN_VARIABLES = ("CANN_SET_ENV", "ASCEND_HOME_PATH")


class SimulatorResult(Struct, frozen=True, eq=False):
    """What came of a job. The embedded simulator gives all that it saw, the vendor's an Insight directory."""

    buffers: Mapping[int, Any] = field(default_factory=dict)  # what output slots hold afterwards, as bytes
    simulation: Simulation | None = None
    directory: Path | None = None  # in the job's workspace
    partial: str = ""  # why the kernel was not run to its end
    warnings: tuple[str, ...] = ()


class Simulator(Protocol):
    """Runs one dispatch at a time; may be called from several threads."""

    @property
    def name(self) -> str:
        """One of options.SIMULATORS."""
        ...

    def require(self, targets: Iterable[str]) -> None:
        """Raises what keeps kernels of these targets from running, before anything is written."""
        ...

    def run(
        self, job: Job, workspace: Path | None = None, progress: Progress = lambda _step: None
    ) -> SimulatorResult:
        """Runs a job; what it leaves goes into the workspace. A kernel that fails is a result; what the machine
        lacks is an error. `progress` hears each step as it begins."""
        ...


def find_simulator(
    options: RunOptions,
    vendor: VendorOptions = _NO_VENDOR,
    targets: Iterable[str] = (),
    warn: Callable[[str], None] = lambda _text: None,
    environ: Mapping[str, str] = os.environ,
) -> Simulator:
    """The simulator that the options name, ready to run kernels of these targets."""
    targets = tuple(targets)
    if options.simulator == "msprof":
        return _vendors(options, vendor, targets, environ)
    if options.simulator == "auto":
        found = _vendors_if_asked_for(options, vendor, targets, warn, environ)
        if found is not None:
            return found
    from insight_trace.simulate.embedded.embedded_simulator import EmbeddedSimulator

    return EmbeddedSimulator(options)


def _vendors_if_asked_for(
    options: RunOptions,
    vendor: VendorOptions,
    targets: tuple[str, ...],
    warn: Callable[[str], None],
    environ: Mapping[str, str],
) -> Simulator | None:
    if (options.soc_version or "").endswith(".toml"):
        return None
    if not vendor.names_the_vendor and not any(environ.get(name) for name in _CANN_VARIABLES):
        return None
    try:
        return _vendors(options, vendor, targets, environ)
    except InsightTraceError as error:
        if vendor.names_the_vendor:
            raise
        warn(f"CANN is not used: {error}")
        return None


def _vendors(
    options: RunOptions, vendor: VendorOptions, targets: tuple[str, ...], environ: Mapping[str, str]
) -> Simulator:
    # where no CANN is named, nothing of the vendor's simulator is loaded
    from insight_trace.simulate.msprof.msprof_simulator import MsprofSimulator

    simulator = MsprofSimulator(options, vendor, environ)
    simulator.require(targets)
    return simulator
