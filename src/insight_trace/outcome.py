"""What one run of a dispatch gave, or why it did not end well."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from insight_trace.finding import Finding
from insight_trace.model import Instructions, Launch, MemoryUse
from insight_trace.results import Result

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from insight_trace import StatsResult


class Fault(enum.StrEnum):
    """Whose fault it is that a run did not end well."""

    KERNEL = "kernel"
    INPUT = "input"
    ENVIRONMENT = "environment"
    NOT_SUPPORTED = "not_supported"
    OUR_BUG = "our_bug"


class Failure(Struct, frozen=True):
    """Why a run did not end well."""

    fault: Fault
    message: str
    file: str = ""
    line: int = 0
    signal: int = 0  # the signal that ended the runner, 0 if none
    limit: str = ""  # "time" or "memory" where a limit was reached
    log: str = ""  # a file that says more

    @property
    def where(self) -> str:
        return f"{self.file}:{self.line}" if self.file else ""

    def __str__(self) -> str:
        place = f" at {self.where}" if self.file else ""
        return f"{self.message}{place} [{self.fault}]"


class Simulation(Result, Struct, frozen=True, eq=False):
    """What one run of a dispatch gave."""

    outputs: Mapping[int, NDArray[Any]]  # by slot, in the shape of the argument's view
    instructions: Instructions
    mhz: float
    soc_version: str
    failure: Failure | None = None
    findings: tuple[Finding, ...] = ()  # what the run revealed about the kernel
    # by slot, whole, mapped not copied
    buffers: Mapping[int, NDArray[np.uint8]] = field(default_factory=dict)
    printed: str = ""  # what the kernel printed (TPRINT, printf)
    parameters: tuple[str, ...] = ()  # of the chip, as the engine was given them
    # buffers of global memory: name, address, declared size, bytes that may be touched
    regions: tuple[tuple[str, int, int, int], ...] = ()
    sources: Mapping[str, Path] = field(default_factory=dict)  # paths in `stacks` -> where they are
    read: tuple[Path, ...] = ()  # every file that the kernels were compiled from, but for the tool's own
    memory: MemoryUse | None = None
    launch: Launch | None = None
    chip_file: str = ""  # where the chip is a file of the user's own

    def summary(self) -> str:
        if self.failure is not None:
            return f"failed: {self.failure}"
        micros = self.cycles / self.mhz
        return f"{self.cycles:,} cycles · {micros:.3f} us on {self.soc_version} · {len(self.instructions):,} instructions"

    def columns(self) -> Mapping[str, Any]:
        """One row per executed instruction."""
        from insight_trace import table

        return table(self)

    def stats(self) -> StatsResult:
        """Where its cycles go, and what to fix first."""
        import insight_trace

        return insight_trace.stats(self)

    @property
    def cycles(self) -> int:
        """From cycle 0 to the end of the last instruction."""
        return int(self.instructions.end.max()) if len(self.instructions) else 0
