"""One kernel of a profile: what a runner is asked, and what it answers. Simulators stand behind (simulate/simulators.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from insight_trace.ptoas.planned_kernel import ProfileKernel

EXPORTED = "exported"
COLLECT_FAILED = "collect_failed"
EXPORT_FAILED = "export_failed"
FAILED = "failed"
SKIPPED = "skipped"  # --no-keep-going, after another kernel failed


@dataclass(frozen=True, slots=True)
class CorePipes:
    """What one core did: busy cycles and executed instructions per pipe (`CUBE`, `VECTOR`, `MTE2`, …)."""

    core: str  # core0.cubecore0, core0.veccore1, …
    cycles: Mapping[str, int]
    instructions: Mapping[str, int]
    prologue: int = 0  # cycles before any pipe but the scalar unit works


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """What came of one kernel. A failure says its cause, not the command that met it."""

    status: str
    message: str = ""
    cycles: int | None = None
    bound_by: str = ""
    pipes: tuple[CorePipes, ...] = ()
    warnings: tuple[str, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)  # manifest columns: symbol, app, kernel_lib, …
    verified: bool = False  # its outputs are those of the build's own run


@dataclass(frozen=True, slots=True)
class Places:
    """Where a runner may write for one kernel, all of it private."""

    folder: Path  # of the kernel's results: its clean trace and figures. Renamed afterwards, as `out` is
    out: Path  # empty; `OPPROF_*/simulator/` goes below it. No file may hold its path
    logs: Path
    case: Path  # a launcher's sources, kept for a later run of the same kernel
    build: Path  # what was built of them
    mark: str = ""  # of everything that the result depends on: what is kept of another mark is stale
    step: Callable[[str], None] = lambda _: None  # called with what is being done now


class KernelRunner(Protocol):
    """Makes jobs of kernels for one simulator."""

    in_threads: bool  # its jobs start programs, and cannot go to other processes

    @property
    def name(self) -> str:
        """Which simulator, with what decides its result."""
        ...

    def digest(self, kernel: ProfileKernel) -> str:
        """A name that changes with everything that the kernel's results depend on; "": it is always run."""
        ...

    def call(self, kernel: ProfileKernel, places: Places) -> Callable[[], RunOutcome]:
        """What profiles the kernel, wherever it is called."""
        ...

    def stop(self) -> None:
        """Ends what is running now; a call then returns or raises soon. Called when the user interrupts."""
        ...
