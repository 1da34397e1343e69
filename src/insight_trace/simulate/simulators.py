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

from insight_trace.errors import InsightTraceError, RequestError
from insight_trace.simulate import SIMULATORS

if TYPE_CHECKING:
    from insight_trace.arguments.slots import ReplayArguments
    from insight_trace.model import Kernel
    from insight_trace.outcome import Simulation

_CANN_VARIABLES = ("CANN_SET_ENV", "ASCEND_HOME_PATH")


class SimulatorOptions(Struct, frozen=True):
    """How to run, in the words of the commands. A simulator reads its own."""

    soc_version: str | None = None  # a chip by name; for the embedded one also a chip file
    # of the embedded simulator, as EmbeddedOptions has them
    preset: str = "device"
    timing_only: bool = False
    check: bool = False
    l2: str | None = None
    launch: bool = False
    mark_cost: bool = False
    seconds: float = 60.0
    host_cores: int | None = None
    # of both: the checkout of pto-isa whose headers kernels compile against
    pto_isa_root: Path | None = None
    # of the vendor's
    cann_home: Path | None = None
    cann_set_env: Path | None = None
    ptoas_root: Path | None = None  # a generator of the programs around kernels with made-up arguments
    msopprof: Path | None = None  # a worker from another installation
    auto_msopprof: bool = False
    hardware_blocks: int = 1
    launch_count: int = 1
    timeout_minutes: int = 120
    device: int = 0

    @property
    def names_the_vendor(self) -> bool:
        """Whether something was said that only the vendor's simulator reads."""
        return any((self.cann_home, self.cann_set_env, self.ptoas_root, self.msopprof))


class SimulatorJob(Struct, frozen=True, eq=False):
    """One dispatch to run."""

    kernels: tuple[Kernel, ...]  # members in the order of the dispatch's func ids
    arguments: ReplayArguments
    target: str
    workspace: Path | None = None  # where a simulator may write; the vendor's needs one
    runtime: str = ""  # whose headers the kernel includes; "": the usual one
    # slots in L2, the longest ago first, and whether they were written
    held: tuple[tuple[int, bool], ...] = ()
    progress: Callable[[str], None] = lambda _step: None  # hears each step as it begins


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
        """One of SIMULATORS."""
        ...

    def require(self, targets: Iterable[str]) -> None:
        """Raises what keeps kernels of these targets from running, before anything is written."""
        ...

    def run(self, job: SimulatorJob) -> SimulatorResult:
        """Runs a dispatch. A kernel that fails is a result; what the machine lacks is an error."""
        ...


def require_known(simulator: str) -> str:
    """The name, if it is one that `--simulator` takes."""
    if simulator not in ("auto", *SIMULATORS):
        raise RequestError(
            f"there is no simulator '{simulator}'", hint=f"there are: auto, {', '.join(SIMULATORS)}"
        )
    return simulator


def find_simulator(
    name: str,
    options: SimulatorOptions,
    targets: Iterable[str] = (),
    warn: Callable[[str], None] = lambda _text: None,
    environ: Mapping[str, str] = os.environ,
) -> Simulator:
    """The simulator of that name, ready to run kernels of these targets."""
    targets = tuple(targets)
    if require_known(name) == "auto":
        return _vendors_if_asked_for(options, targets, warn, environ) or _embedded(options)
    return _vendors(options, targets, environ) if name == "msprof" else _embedded(options)


def _vendors_if_asked_for(
    options: SimulatorOptions,
    targets: tuple[str, ...],
    warn: Callable[[str], None],
    environ: Mapping[str, str],
) -> Simulator | None:
    if (options.soc_version or "").endswith(".toml"):
        return None
    if not options.names_the_vendor and not any(environ.get(name) for name in _CANN_VARIABLES):
        return None
    try:
        return _vendors(options, targets, environ)
    except InsightTraceError as error:
        if options.names_the_vendor:
            raise
        warn(f"CANN is not used: {error}")
        return None


def _vendors(options: SimulatorOptions, targets: tuple[str, ...], environ: Mapping[str, str]) -> Simulator:
    # where no CANN is named, nothing of the vendor's simulator is loaded
    from insight_trace.simulate.msprof.msprof_simulator import MsprofSimulator

    simulator = MsprofSimulator(options, environ)
    simulator.require(targets)
    return simulator


def _embedded(options: SimulatorOptions) -> Simulator:
    from insight_trace.simulate.embedded.embedded_simulator import EmbeddedSimulator

    return EmbeddedSimulator(options)
