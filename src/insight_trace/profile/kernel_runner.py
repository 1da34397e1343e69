"""One kernel of a profile: what a runner is asked, and what it answers. Simulators stand behind (simulate/simulators.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from insight_trace.model import Instructions, Trace
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


# --- what a kernel's trace says: its pipes for the manifest, and beside it the clean trace and its figures


def core_pipes(columns: Instructions) -> tuple[CorePipes, ...]:
    """Busy cycles and working instructions of each pipe of each core."""
    import numpy as np

    from insight_trace.recording.busy import prologues
    from insight_trace.recording.intervals import union
    from insight_trace.recording.kinds import SETTINGS, Kind, kinds
    from insight_trace.recording.pipes import pipe_name

    kind = kinds(columns)
    settings = [index for index, name in enumerate(columns.names) if name in SETTINGS]
    works = ((kind == Kind.WORK) | (kind == Kind.SCALAR)) & ~np.isin(columns.name, settings)
    before, found = prologues(columns), []
    for number, core in enumerate(columns.cores):
        cycles, counts = {}, {}
        mine = works & (columns.core == number)
        for pipe in np.unique(columns.pipe[mine]):
            rows = mine & (columns.pipe == pipe)
            label = pipe_name(int(pipe))
            cycles[label] = union(columns.start[rows], columns.end[rows]).length
            counts[label] = int(rows.sum())
        found.append(CorePipes(core, cycles, counts, before[number]))
    return tuple(found)


def bound_by(pipes: tuple[CorePipes, ...]) -> str:
    """The pipe that is busy longest on any core; the parts of the 950's vector unit are one pipe here."""
    busy = [
        (cycles - (core.prologue if pipe == "SCALAR" else 0), pipe)
        for core in pipes
        for pipe, cycles in core.cycles.items()
    ]
    longest = max(busy, default=(0, ""), key=lambda pair: pair[0])[1]
    return "VECTOR" if longest.startswith(("RVEC", "PUSHQ")) else longest


def cycles_of(columns: Instructions) -> int | None:
    """From the first instruction to the end of the last; None for a trace without any."""
    if not len(columns):
        return None
    return int(columns.end.max() - columns.start.min())


def write_figures(trace: Trace, folder: Path, kernel: str, about: dict[str, str]) -> None:
    """`<kernel>.clean.json`, `instr_metrics.json`, `stats.json` and `summary.txt` in the kernel's folder."""
    import msgspec

    from insight_trace.trace.advice import advise
    from insight_trace.trace.clean import clean
    from insight_trace.trace.instr_metrics import write_metrics
    from insight_trace.trace.run_folder import CleanForm, summary_text, write_clean
    from insight_trace.trace.stats import stats
    from insight_trace.trace.text import stats_data

    cleaned, figures = clean(trace), stats(trace)
    with (folder / f"{kernel}.clean.json").open("wb") as file:
        write_clean(cleaned, file, CleanForm())
    with (folder / "instr_metrics.json").open("wb") as file:
        write_metrics(trace, file)
    data = msgspec.json.encode(stats_data(trace, figures, advise(trace, figures)))
    (folder / "stats.json").write_bytes(msgspec.json.format(data, indent=2) + b"\n")
    text = summary_text(trace, cleaned, figures, kernel, about)
    (folder / "summary.txt").write_text(text, encoding="utf-8")
