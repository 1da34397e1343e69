"""Runs the kernels of a plan through a runner, several at a time, and keeps the books."""

from __future__ import annotations

import contextlib
import functools
import json
import shutil
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from insight_trace.errors import InsightTraceError, as_error
from insight_trace.executor import Executor, Local, Output
from insight_trace.model import CoreType
from insight_trace.profile.build_run import workload_columns
from insight_trace.profile.kernel_runner import (
    EXPORT_FAILED,
    EXPORTED,
    FAILED,
    SKIPPED,
    CorePipes,
    KernelRunner,
    Places,
    RunOutcome,
)
from insight_trace.profile.manifest import COLUMNS, OUR_COLUMNS, ManifestRow, read_manifest, write_books
from insight_trace.ptoas.planned_kernel import (
    BrokenKernel,
    BufferArg,
    Content,
    PlannedKernel,
    ProfileKernel,
    ValueArg,
)
from insight_trace.ptoas.pto_facts import CoreWork
from insight_trace.results import Result
from insight_trace.storage import whole_directory


@dataclass(frozen=True, slots=True)
class Progress:
    """What happened to one kernel."""

    kernel: str
    step: str  # "running", a step of the simulator's, then a status
    done: int
    total: int
    row: ManifestRow | None = None
    reused: bool = False


@dataclass(frozen=True, repr=False)
class ProfileResult(Result):
    """The kernels of a build, each with what came of it."""

    root: Path
    rows: tuple[ManifestRow, ...]  # in the order of the plan

    @property
    def exported(self) -> int:
        return sum(row.exported for row in self.rows)

    def summary(self) -> str:
        return f"{self.exported} of {len(self.rows)} kernels exported · {self.root}"

    def columns(self) -> Mapping[str, Any]:
        """The manifest: one row per kernel."""
        names = (*COLUMNS, *OUR_COLUMNS)
        return {name: [row.cell(name) for row in self.rows] for name in names}


def _artifacts(out: Path) -> dict[str, str]:
    """The manifest's columns about what was exported."""
    simulator = sorted(d for d in out.glob("OPPROF_*/**/simulator") if d.is_dir())
    trace = next((p for d in simulator if (p := d / "trace.json").is_file()), None)
    binary = next((p for d in simulator if (p := d / "visualize_data.bin").is_file()), None)
    cores = sum(1 for d in simulator for _ in d.glob("core*/trace.json"))
    tables = sum(1 for d in simulator for _ in d.glob("**/*instr_exe*.csv"))
    return {
        "trace_json": str(trace or ""),
        "visualize_data_bin": str(binary or ""),
        "core_trace_count": str(cores),
        "instr_csv_count": str(tables),
        "artifact_count": str((trace is not None) + (binary is not None) + cores + tables),
    }


def finished(row: ManifestRow | None, mark: str) -> bool:
    """Whether a row of an earlier run still stands: same inputs, and its trace is there."""
    return (
        row is not None
        and bool(mark)
        and row.exported
        and row.cell("fingerprint") == mark
        and Path(row.cell("trace_json") or "-").is_file()
        and Path(row.cell("visualize_data_bin") or "-").is_file()
    )


class ProfileRun:
    """One run directory: `funcs/<kernel>/collect/out/OPPROF_*/simulator/`, logs, books."""

    def __init__(self, root: Path, runner: KernelRunner) -> None:
        self.root = root
        self.runner = runner

    def _begin(
        self, kernel: ProfileKernel, mark: str, step: Callable[[str], None]
    ) -> tuple[_Begun, Callable[[], RunOutcome]]:
        """Makes room for a kernel's results, and says what is to be called."""
        logs = self.root / "logs" / kernel.name
        logs.mkdir(parents=True, exist_ok=True, mode=0o700)
        place = self.root / "funcs" / kernel.name
        shutil.rmtree(place, ignore_errors=True)  # of an earlier run whose inputs were others
        folder = whole_directory(place, force=True, record=("collect",), mode=0o700)
        begun = _Begun(kernel, mark, folder)
        try:
            beside = folder.__enter__()
            out = beside / "collect" / "out"
            out.mkdir(parents=True, mode=0o700)
            places = Places(
                beside, out, logs, self.root / "cases" / kernel.name, self.root / "builds" / kernel.name, mark, step
            )  # fmt: skip
            call = self.runner.call(kernel, places)
            return begun, functools.partial(_called, call, Output(logs), self.runner.name)
        except (InsightTraceError, OSError) as error:
            return begun, functools.partial(RunOutcome, FAILED, str(as_error(error)))

    def _end(self, begun: _Begun, outcome: RunOutcome | InsightTraceError) -> ManifestRow:
        """Publishes the results of a kernel that was exported, and no others."""
        if isinstance(outcome, InsightTraceError):
            outcome = RunOutcome(FAILED, str(outcome))
        failure = None if outcome.status == EXPORTED else _NotExported()
        try:
            begun.folder.__exit__(type(failure) if failure else None, failure, None)
        except _NotExported:
            pass
        except (InsightTraceError, OSError) as error:  # a full disk is no fault of the runner
            outcome = RunOutcome(FAILED, str(as_error(error)))
        return self._row(begun.kernel, outcome, begun.mark, time.monotonic() - begun.since)

    def _row(self, kernel: ProfileKernel, outcome: RunOutcome, mark: str, seconds: float) -> ManifestRow:
        out = self.root / "funcs" / kernel.name / "collect" / "out"
        columns = {
            "source_cpp": str(kernel.source),
            "entry": kernel.entry,
            "kind": kernel.kind.value,
            "arch": kernel.arch,
            "duration_sec": f"{seconds:.2f}",
            "fingerprint": mark,
        }
        columns |= workload_columns(kernel)
        columns |= outcome.facts
        status, message = outcome.status, outcome.message
        warnings = [*kernel.warnings, *outcome.warnings]
        if status == EXPORTED:
            columns |= {"collect_dir": str(out.parent), "export_dir": str(out), "export_src": str(out)}
            columns |= _artifacts(out)
            if not columns["trace_json"] or not columns["visualize_data_bin"]:
                status, message = EXPORT_FAILED, "the simulator left no trace.json or no visualize_data.bin"
            empty = "" if outcome.verified else near_empty(kernel, outcome.pipes)
            if empty:
                warnings = [empty, *(text for text in warnings if not text.startswith("degenerate"))]
                message = "; ".join(filter(None, (message, empty)))
            columns["cycles"] = "" if outcome.cycles is None else str(outcome.cycles)
            columns["bound_by"] = outcome.bound_by
            columns["pipe_cycles"] = json.dumps(
                {core.core: dict(sorted(core.cycles.items())) for core in outcome.pipes},
                separators=(",", ":"),
            )
        columns |= {"message": message, "warnings": " | ".join(warnings)}
        return ManifestRow(kernel.name, status, columns)

    def run(
        self,
        kernels: Sequence[PlannedKernel],
        executor: Executor | None = None,
        *,
        keep_going: bool = True,
        resume: bool = False,
        report: Callable[[Progress], None] = lambda _: None,
    ) -> ProfileResult:
        """Runs what is not finished yet; rows and their order do not depend on where kernels run.

        `report` is called from the threads that run kernels too, one call at a time.
        """
        executor = executor or Local(1)
        told, rows, total = threading.Lock(), dict[str, ManifestRow](), len(kernels)

        def tell(
            kernel: str, step: str, row: ManifestRow | None = None, done: int = 0, kept: bool = False
        ) -> None:
            with told:
                report(Progress(kernel, step, done or len(rows), total, row, kept))

        def write() -> None:
            write_books(self.root, (rows[k.name] for k in kernels if k.name in rows), total)

        def book(row: ManifestRow) -> None:
            rows[row.func] = row
            write()
            tell(row.func, row.status, row)

        for directory in (self.root, self.root / "funcs", self.root / "logs"):
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        for leftover in (self.root / "funcs").glob(".*"):  # of a run that was killed
            shutil.rmtree(leftover, ignore_errors=True)
        earlier = read_manifest(self.root) if resume else {}
        waiting: deque[tuple[ProfileKernel, str]] = deque()
        marks = self._marks([k for k in kernels if isinstance(k, ProfileKernel)], executor.width)
        for kernel in kernels:
            mark = kernel.problem if isinstance(kernel, BrokenKernel) else marks[kernel.name]
            old = earlier.get(kernel.name)
            if isinstance(kernel, BrokenKernel) or isinstance(mark, InsightTraceError):
                rows[kernel.name] = _not_run(kernel, FAILED, str(mark))
            elif old is not None and finished(old, mark):
                rows[kernel.name] = old
            else:
                waiting.append((kernel, mark))
        if rows:
            write()  # at once: who is killed in between must not find fewer than before
        for number, row in enumerate(list(rows.values()), 1):
            tell(row.func, row.status, row, number, row is earlier.get(row.func))

        failed = any(not row.exported for row in rows.values())
        begun, first = dict[int, _Begun](), len(waiting)

        def calls() -> Iterator[Callable[[], RunOutcome]]:
            while waiting and (keep_going or not failed):
                kernel, mark = waiting.popleft()
                tell(kernel.name, "running")
                number = first - len(waiting) - 1
                begun[number], call = self._begin(kernel, mark, functools.partial(tell, kernel.name))
                yield call

        try:
            for number, outcome in executor.run(_run, calls(), RunOutcome, ahead=1):
                row = self._end(begun.pop(number), outcome)
                failed = failed or not row.exported
                book(row)
        finally:
            for left in begun.values():  # nobody waits for them any more
                with contextlib.suppress(_NotExported):
                    left.folder.__exit__(_NotExported, _NotExported(), None)
        for kernel, _ in waiting:
            book(
                _not_run(
                    kernel, SKIPPED, "not run: another kernel failed before, and --no-keep-going was given"
                )
            )
        return ProfileResult(self.root, tuple(rows[kernel.name] for kernel in kernels))

    def _marks(self, kernels: Sequence[ProfileKernel], width: int) -> dict[str, str | InsightTraceError]:
        """The digest of each kernel's job; what compiles for it is kept for its run."""
        marks = Local(width, threads=True).run(self.runner.digest, kernels, str, ahead=1)
        return {kernels[place].name: mark for place, mark in marks}


def _not_run(kernel: PlannedKernel, status: str, message: str) -> ManifestRow:
    kind = kernel.kind if isinstance(kernel, BrokenKernel) else kernel.kind.value
    columns = {"source_cpp": str(kernel.source), "kind": kind, "arch": kernel.arch, "message": message}
    return ManifestRow(kernel.name, status, columns)


def _run(call: Callable[[], RunOutcome]) -> RunOutcome:
    return call()


def _called(call: Callable[[], RunOutcome], logs: Output, simulator: str) -> RunOutcome:
    """A fault of a runner must not take the other kernels with it."""
    try:
        return call()
    except (InsightTraceError, OSError) as error:  # a full disk is no fault of the runner
        return RunOutcome(FAILED, str(as_error(error)))
    except Exception as error:
        import traceback

        (logs.path / "error.log").write_text(traceback.format_exc(), encoding="utf-8")
        cause = f"{type(error).__name__}: {error}; see {logs.path / 'error.log'}"
        return RunOutcome(FAILED, f"fault in the simulator {simulator}: {cause}")


class _NotExported(Exception):  # noqa: N818 - leaves whole_directory without its directory
    """Of a kernel that failed."""


@dataclass(slots=True)
class _Begun:
    """A kernel that runs."""

    kernel: ProfileKernel
    mark: str
    folder: AbstractContextManager[Path]
    since: float = field(default_factory=time.monotonic)


# --- whether a trace shows the kernel at work, or one that found nothing to do


# The 950's vector core shows a tile operation as a function that is pushed to its own pipes.
_WORK = {"CUBE": ("CUBE",), "VECTOR": ("VECTOR", "PUSHQ")}
_TRANSFERS = ("MTE1", "MTE2", "MTE3", "FIXPIPE")
_GUESSED = frozenset({"loop bound", "condition", "no use of it seen", "index", "valid length of a tile"})


def _count(core: CorePipes, pipes: tuple[str, ...]) -> int:
    return sum(core.instructions.get(pipe, 0) for pipe in pipes)


def _core_complaint(core: CorePipes, work: CoreWork, pipe: str, moves_only: bool) -> str:
    if moves_only:
        if _count(core, _TRANSFERS) == 0:
            return f"{core.core} moved no data"
        return ""
    done = _count(core, _WORK[pipe])
    if work.certain and done < work.certain:
        return (
            f"{core.core} executed {done} {pipe} instructions where the .pto asks for {work.certain} at least"
        )
    if work.written and not done:
        return f"{core.core} executed no {pipe} instruction"
    if not work.written and not done and _count(core, _TRANSFERS) == 0:
        return f"{core.core} did nothing but scalar and sync work"
    return ""


def suspects(kernel: ProfileKernel) -> tuple[str, ...]:
    """Arguments whose made-up value may have kept the kernel from its work, as flags to set them."""
    found = []
    for argument in kernel.arguments:
        if isinstance(argument, BufferArg):
            zero = argument.content is Content.ZERO and argument.why.startswith("use not seen")
            if zero or argument.content in (Content.CONSTANT, Content.INDEX):
                found.append(f"--input {argument.label}=FILE")
        elif isinstance(argument, ValueArg) and argument.why in _GUESSED and not argument.per_lane:
            found.append(f"--scalar {argument.label}=VALUE")
    return tuple(found)


def near_empty(kernel: ProfileKernel, pipes: tuple[CorePipes, ...]) -> str:
    """Why a trace counts as near-empty, core by core; "" for one that shows work."""
    if not kernel.has_operations:
        return "empty kernel: its .pto has no tile operation"
    complaints = []
    for core in pipes:
        cube = "cube" in core.core
        work, pipe = (kernel.cube, "CUBE") if cube else (kernel.vector, "VECTOR")
        complaints.append(_core_complaint(core, work, pipe, kernel.moves_only))
    expected = {CoreType.AIC: ("cube",), CoreType.AIV: ("vec",), CoreType.MIX: ("cube", "vec")}[kernel.kind]
    if pipes:
        for side in expected:
            if not any(side in core.core for core in pipes):
                complaints.append(f"no {side} core is in the trace")
    complaints = [complaint for complaint in complaints if complaint]
    if not complaints:
        return ""
    flags = suspects(kernel)
    remedy = f"; perhaps set {' or '.join(flags[:4])}" if flags else ""
    return f"degenerate: {'; '.join(complaints)}{remedy}"
