"""One capture from beginning to end: load, build, run, record, compare."""

from __future__ import annotations

import os
import random
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from insight_trace import limits
from insight_trace.capture.arena import MARGIN, Arena
from insight_trace.capture.builds import Builds, build
from insight_trace.capture.golden import GoldenResult, compare, expected
from insight_trace.capture.growing_dump import RECORD, GrowingDump, Ran, dump_directory, payload_limit
from insight_trace.capture.process import RunnerReport, run_runner
from insight_trace.chips import family_named, load_chip
from insight_trace.errors import RequestError
from insight_trace.model import Case, CoreType, Scene
from insight_trace.outcome import Failure
from insight_trace.results import Result
from insight_trace.scene.live import LiveScalar, LiveScene, LiveTensor, load_scene_live
from insight_trace.simulate.embedded.job_files import job_directory
from insight_trace.simulate.embedded.memory import escape
from insight_trace.simulate.embedded.sandbox import Sandbox
from insight_trace.simulate.embedded.sandbox import job_lines as sandbox_lines
from insight_trace.simulate.embedded.toolchain import KernelBuildError, Toolchain
from insight_trace.storage import refuse_existing

LEVELS = (0, 1, 2, 3)
_MAX_WORKERS = 64  # kMaxWorkers in capture/host/workers.hpp
_LETTERS = {"IN": "I", "OUT": "O", "INOUT": "B"}


@dataclass(frozen=True)
class CaptureOptions:
    """How to run, as opposed to what."""

    level: int = 2
    seed: int = 0
    platform: str | None = None
    seconds: float = 60.0
    workers: int | None = None
    golden: bool = True
    force: bool = False
    sandbox: Sandbox = field(default_factory=Sandbox.chosen)
    shuffle: int = 0  # for tests: run ready tasks in another order
    max_payload: int | None = None  # bytes; None: what limits.PAYLOAD_BYTES says
    # Record only these and end the run when they are done: dispatches by id, or the first of these kernels
    only_dispatches: tuple[int, ...] = ()
    only_kernels: tuple[int, ...] = ()
    only_task: int | None = None  # with only_kernels: the one with this task id

    @property
    def partly(self) -> bool:
        return bool(self.only_dispatches or self.only_kernels)


@dataclass(frozen=True, repr=False)
class Capture(Result):
    """What one run of a scene gave."""

    scene: Scene
    case: str
    level: int
    directory: Path | None  # None: nothing was recorded
    tasks: int
    dispatches: int
    records: int
    payload_bytes: int
    seconds: float  # of the run itself, without loading and compiling
    golden: GoldenResult | None
    failure: Failure | None = None
    task: str = ""  # the one that failed
    note: str = ""  # why there is no dump, what the orchestration logged
    ran: tuple[Ran, ...] = ()  # the tasks that were recorded, by dispatch id
    checked: tuple[Any, ...] | None = None  # replay.examine.Examined of each kernel, where that was asked for

    @property
    def passed(self) -> bool:
        return self.failure is None and (self.golden is None or self.golden.passed)

    def summary(self) -> str:
        golden = self.golden.verdict if self.golden else "not compared"
        ended = f"failed: {self.failure}" if self.failure else f"golden {golden}"
        return f"{self.scene.class_name} · {self.case} · {self.tasks:,} tasks · {ended} · {self.directory or 'no dump'}"

    def columns(self) -> Mapping[str, Any]:
        """One row per task that was recorded."""
        names = ("dispatch_id", "task_id", "func_ids", "block_count", "cycles")
        return {name: [getattr(task, name) for task in self.ran] for name in names}

    def data(self) -> dict[str, Any]:
        failure, golden = self.failure, self.golden
        found = {} if self.checked is None else {"kernels": [one.data() for one in self.checked]}
        return {
            "scene": str(self.scene.path),
            "case": self.case,
            "level": self.level,
            "passed": self.passed,
            "directory": str(self.directory) if self.directory else None,
            "tasks": self.tasks,
            "dispatches": self.dispatches,
            "records": self.records,
            "payload_bytes": self.payload_bytes,
            "seconds": round(self.seconds, 6),
            "golden": None
            if golden is None
            else {
                "passed": golden.passed if golden.verdict != "nothing compared" else None,
                "compared": golden.compared,
                "message": golden.message,
                "largest_difference": dict(golden.differences),
            },
            "failure": None
            if failure is None
            else {
                "fault": failure.fault.value,
                "message": failure.message,
                "where": failure.where,
                "limit": failure.limit,
                "task": self.task,
            },
            "note": self.note,
            **found,
        }


def run_capture(path: Path, case: str | None, output: Path | None, options: CaptureOptions) -> Capture:
    """Runs one case of a scene and records it."""
    limits.seconds_given(options.seconds, "--time-limit")
    if options.level not in LEVELS:
        raise RequestError(f"there is no dump level {options.level}", hint="0, 1, 2 or 3")
    live = load_scene_live(path)
    scene = live.scene
    chosen = choose_case(live, case, options.platform)
    target = target_of_case(chosen, options.platform)
    directory = output or Path("outputs") / f"{scene.class_name}_{chosen.name}_{_now()}"
    if scene.level >= 3:
        from insight_trace.capture.node_capture import capture_node

        return capture_node(live, chosen, target, directory, options)
    inputs = [scene.path, *(kernel.source for kernel in scene.kernels)]
    most_payload = 0
    if options.level:
        refuse_existing(directory, force=options.force, record=RECORD, inputs=inputs)
        most_payload = payload_limit(directory, options.max_payload)
    seed_all(options.seed)
    args = live.generate_args(chosen)
    toolchain = Toolchain.find()
    try:
        builds = build(scene, target, toolchain)
    except KernelBuildError as error:
        return _nothing(scene, chosen, options, error.failure)
    golden = None
    if options.golden and not options.partly:
        golden = expected(live, args, chosen, live.output_names(args))
    found = live.arguments(args)
    arena = Arena([a for a in found if isinstance(a, LiveTensor)])
    try:
        with (
            job_directory() as job,
            dump_directory(directory, options.level, inputs, force=options.force) as dump,
        ):
            lines = job_lines(scene, found, builds, target, options, most_payload)
            started = time.monotonic()
            recorder = GrowingDump(dump, options.level, scene, chosen.name)
            lines += [*arena.job_lines(), *recorder.job_lines]
            lines += host_sandbox_lines(options, job, dump, toolchain)
            report = run_orchestrated(live, found, job, builds, lines, arena, recorder.look, options.sandbox)
            seconds = time.monotonic() - started
            arena.copy_back()
            result = None
            if golden is not None and report.failure is None:
                result = compare(live, chosen.name, args, golden, live.output_names(args))
            golden = None  # as large as the arguments
            overruns = arena.overruns()
            recorded = recorder.finish(report)
    finally:
        arena.close()
    records = recorded.records
    note = "" if report.failure or records or not options.level else _empty_note(options, report)
    notes = [note, *report.remarks, *overruns, report.said.strip()]
    if "full" in report.facts:  # a dump that had no room is of no use and in the way
        shutil.rmtree(directory, ignore_errors=True)
        notes.append("--dump-args 3 records no payload; --max-payload GB allows more of it")
    return Capture(
        scene=scene,
        case=chosen.name,
        level=options.level,
        directory=directory if directory.exists() and records else None,
        tasks=report.number("completed"),
        dispatches=report.number("dispatches"),
        records=records,
        payload_bytes=recorded.payload_bytes,
        seconds=seconds,
        golden=result,
        failure=report.failure,
        task=_task_text(report, scene),
        note="\n".join(filter(None, notes)),
        ran=recorded.tasks,
    )


def choose_case(live: LiveScene, name: str | None, platform: str | None) -> Case:
    """The case of that name; without one the first that runs by itself on the platform."""
    if name is not None:
        case = live.case(name)
        if platform and case.platforms and not runs_on(case, platform):
            raise RequestError(
                f"case {name} does not run on {platform}", hint=f"it runs on {', '.join(case.platforms)}"
            )
        return case
    able = [c for c in live.scene.cases if not platform or not c.platforms or runs_on(c, platform)]
    if not able:
        known = sorted({p for c in live.scene.cases for p in c.platforms})
        raise RequestError(
            f"no case of {live.scene.class_name} runs on {platform}",
            hint=f"its cases run on {', '.join(known) or 'no platform'}",
        )
    return next((c for c in able if c.manual is False), able[0])


def runs_on(case: Case, platform: str) -> bool:
    """Whether a case is for a platform; one for a device is also for its simulation."""
    return platform in case.platforms or platform.removesuffix("sim") in case.platforms


def target_of_case(case: Case, platform: str | None) -> str:
    platform = platform or next(iter(case.platforms), "a2a3")
    return family_named(platform).target


def _now() -> str:
    return time.strftime("%Y%m%d_%H%M%S")


def seed_all(seed: int) -> None:
    import numpy as np

    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)


def job_lines(
    scene: Scene, found: Any, builds: Builds, target: str, options: CaptureOptions, most_payload: int
) -> list[str]:
    assert scene.orchestration is not None
    workers = max(1, min(options.workers or os.cpu_count() or 2, _MAX_WORKERS))
    lines = [
        *load_chip(target=target).job_lines,
        f"level\t{options.level}",
        f"margin\t{MARGIN}",
        f"most_payload\t{most_payload}",
        *(f"picked\t{dispatch}" for dispatch in options.only_dispatches),
        *(f"picked_kernel\t{func_id}" for func_id in options.only_kernels),
        *([] if options.only_task is None else [f"picked_task\t{options.only_task}"]),
        f"workers\t{workers}",
        f"shuffle\t{options.shuffle}",
        f"seconds\t{options.seconds}",
        f"rings\t{int(scene.runtime != 'host_build_graph')}",
        *(f"scalar\t{a.bits}" for a in found if isinstance(a, LiveScalar)),
    ]
    if builds.orchestration is not None:
        config = scene.orchestration.config_name or "aicpu_orchestration_config"
        names = f"{scene.orchestration.function_name}\t{config}"
        lines.append(f"orchestration\t{escape(str(builds.orchestration))}\t{names}")
    for kernel, made in zip(scene.kernels, builds.kernels, strict=True):
        kind = "aic" if kernel.core_type is CoreType.AIC else "aiv"
        letters = "".join(_LETTERS.get(d, "S") for d in kernel.signature or ())
        fields = ["kernel", str(kernel.func_id), kind, escape(str(made)), kernel.entry, letters]
        lines.append("\t".join(fields))
    return lines


def host_sandbox_lines(
    options: CaptureOptions, job: Path, dump: Path | None, toolchain: Toolchain
) -> list[str]:
    """Where it may write beside its own folder is the dump; what may finish that for a dead caller is Python."""
    package = Path(__file__).resolve().parents[2]
    readable = (toolchain.cache.root, Path(sys.prefix), Path(sys.base_prefix), package)
    lines = sandbox_lines(options.sandbox, job, readable)
    if dump is not None and options.sandbox is not Sandbox.OFF:
        lines.append(f"allow\twrite\t{escape(str(dump.resolve()))}")
    return lines


def run_orchestrated(
    live: LiveScene,
    found: Any,
    job: Path,
    builds: Builds,
    lines: list[str],
    arena: Arena,
    look: Callable[[], None],
    sandbox: Sandbox,
) -> RunnerReport:
    """Runs the orchestration: a compiled one in the runner; one in Python here, talking to the runner over a socket."""
    import socket

    order, result = job / "job", job / "result"

    def run(more: list[str], files: tuple[int, ...]) -> RunnerReport:
        order.write_text("\n".join([f"result\t{result}", *lines, *more]) + "\n", encoding="utf-8")
        return run_runner(builds.runner, order, result, (arena.file, *files), look, sandbox)

    if builds.orchestration is not None:
        return run([], ())
    from insight_trace.capture.orchestrate import orchestrating, python_function

    assert live.scene.orchestration is not None
    function = python_function(live.scene_class, live.scene.orchestration.function_name)
    scalars = [a for a in found if isinstance(a, LiveScalar)]
    ours, theirs = socket.socketpair()
    with ours, theirs, orchestrating(function, arena, scalars, ours):
        return run([f"channel\t{theirs.fileno()}"], (theirs.fileno(),))


def _empty_note(options: CaptureOptions, report: RunnerReport) -> str:
    if options.partly:
        return "nothing was recorded: the run has no such dispatch"
    if options.level == 1 and report.number("marked") == 0:
        return (
            "nothing was recorded: level 1 records what CoreTaskArgs::dump(...) marks, and nothing is marked"
        )
    return "nothing was recorded: no task was submitted"


def _task_text(report: RunnerReport, scene: Scene) -> str:
    if report.failure is None or "task" not in report.facts:
        return ""
    task, dispatch, *funcs = report.facts["task"]
    names = {str(k.func_id): k.name for k in scene.kernels}
    place = report.facts.get("submitted", ["", "0"])
    line = f", submitted at {place[0]}:{place[1]}" if place[0] else ""
    return f"task {task}, dispatch {dispatch}, kernel {'+'.join(names.get(f, f) for f in funcs)}{line}"


def _nothing(scene: Scene, case: Case, options: CaptureOptions, failure: Failure) -> Capture:
    return Capture(
        scene=scene,
        case=case.name,
        level=options.level,
        directory=None,
        tasks=0,
        dispatches=0,
        records=0,
        payload_bytes=0,
        seconds=0.0,
        golden=None,
        failure=failure,
    )
