"""The door to a simulator: what it is asked, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from insight_trace.ptoas.spec import ProfileKernel

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


class KernelRunner(Protocol):
    """A simulator that runs one kernel at a time; called from several threads."""

    @property
    def name(self) -> str:
        """Which simulator, with what decides its result: part of what makes a finished run reusable."""
        ...

    def run(self, kernel: ProfileKernel, out: Path, logs: Path) -> RunOutcome:
        """Runs a kernel; writes `OPPROF_*/simulator/` below `out` (private, empty) and logs to `logs`.

        `out` is renamed into its final place afterwards, so nothing in it may hold its path.
        """
        ...

    def stop(self) -> None:
        """Ends what is running now; `run` then returns or raises soon. Called when the user interrupts."""
        ...
