"""Dispatches of the build's own run: what a kernel is traced on, where the build can be run."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from insight_trace.arguments.dispatch import from_dispatch
from insight_trace.capture.growing_dump import Ran
from insight_trace.capture.session import Capture, CaptureOptions, run_capture
from insight_trace.dump.load import Dump, load_dump
from insight_trace.errors import InsightTraceError, RequestError
from insight_trace.model import Dispatch, Scene
from insight_trace.ptoas.planned_kernel import PlannedKernel, ProfileKernel, Workload
from insight_trace.scene.build_directory import CONFIG, GOLDEN
from insight_trace.scene.static import load_scene

_SMALL_PAYLOAD = 1 << 30  # of a run that is recorded whole; a larger one is run twice
CHOICES = ("median", "first", "slowest", "all")


def check_choice(choice: str) -> str:
    """`median`, `first`, `slowest`, `all`, or the number of one of a kernel's dispatches."""
    if choice not in CHOICES and not choice.isdecimal():
        raise RequestError(
            f"--dispatch {choice}: there is no such choice", hint=f"{', '.join(CHOICES)}, or a number from 0"
        )
    return choice


def with_workloads(
    planned: Sequence[PlannedKernel],
    build: Path,
    into: Path,
    choice: str,
    *,
    target: str = "",
    seconds: float = 300.0,
    warn: Callable[[str], None] = lambda _: None,
    instead: str = "",
) -> tuple[PlannedKernel, ...]:
    """The kernels, each on a dispatch of the run of its build, if that can be run.

    A kernel whose arguments were given by hand keeps them. `into` gets one dump per program of the build.
    With `instead`, why the simulator takes no dispatches, nothing is run.
    """
    able = [k for k in planned if isinstance(k, ProfileKernel) and not k.has_given]
    programs = {folder: None for k in able if (folder := _program(k.source, build)) is not None}
    runs = {
        folder: _BuildRun(None, instead) if instead else _run(folder, into, target, seconds, warn)
        for folder in programs
    }
    for folder, run in runs.items():
        if run.problem and not instead:
            warn(
                f"{folder}: its kernels get made-up arguments, for the build could not be run: {run.problem}"
            )
    result: list[PlannedKernel] = []
    for kernel in planned:
        folder = _program(kernel.source, build)
        if not isinstance(kernel, ProfileKernel) or kernel.has_given:
            why = "" if not isinstance(kernel, ProfileKernel) else "its arguments were given"
        elif folder is None:
            why = f"there is no {CONFIG} or no {GOLDEN}"
        else:
            found = runs[folder].of(kernel, choice)
            if found:
                result += found
                continue
            why = runs[folder].problem or "the build's run does not dispatch it"
        result.append(
            dataclasses.replace(kernel, synthetic_because=why)
            if isinstance(kernel, ProfileKernel)
            else kernel
        )
    return tuple(result)


def _program(source: Path, build: Path) -> Path | None:
    """The folder of the program that a kernel belongs to, if it can be run."""
    for folder in source.parents:
        if (folder / CONFIG).is_file():
            return folder if (folder / GOLDEN).is_file() else None
        if folder == build:
            break
    return None


class _BuildRun:
    """One run of a program, and the dispatches that were taken from it."""

    def __init__(self, scene: Scene | None, problem: str) -> None:
        self.scene = scene
        self.problem = problem
        self.ran: tuple[Ran, ...] = ()
        self.record: Callable[[Sequence[int]], Dump] | None = None
        self.passed: bool | None = None

    def of(self, kernel: ProfileKernel, choice: str) -> list[ProfileKernel]:
        """The kernel on the dispatches of that choice; none where the run has none."""
        if self.scene is None or self.record is None:
            return []
        by_name = {k.name: k for k in self.scene.kernels}
        names = [function.name for function in kernel.functions]
        if not all(name in by_name for name in names):
            return []
        members = {by_name[name].func_id for name in names}
        mine = [ran for ran in self.ran if set(ran.func_ids) == members]
        if not mine:
            return []
        chosen = _chosen(mine, choice, kernel.name)
        dump = self.record([ran.dispatch_id for ran in chosen])
        by_id = {d.dispatch_id: d for d in dump.dispatches}
        return [
            dataclasses.replace(
                kernel,
                name=kernel.name if len(chosen) == 1 else f"{kernel.name}.d{ran.dispatch_id}",
                workload=self._workload(by_id[ran.dispatch_id], dump, mine),
            )
            for ran in chosen
        ]

    def _workload(self, dispatch: Dispatch, dump: Dump, mine: Sequence[Ran]) -> Workload:
        assert self.scene is not None
        by_id = {k.func_id: k for k in self.scene.kernels}
        arguments = from_dispatch(dispatch, earlier=dump.earlier)
        return Workload(
            kernels=tuple(by_id[func_id] for func_id in dispatch.func_ids),
            arguments=arguments,
            dispatch_id=dispatch.dispatch_id,
            number=[ran.dispatch_id for ran in mine].index(dispatch.dispatch_id),
            count=len(mine),
            golden=self.passed,
            scene=self.scene,
            dispatch=dispatch,
        )


def _chosen(mine: Sequence[Ran], choice: str, name: str) -> list[Ran]:
    if choice == "all":
        return list(mine)
    if choice == "first":
        return [mine[0]]
    by_cycles = sorted(mine, key=lambda ran: (ran.cycles, ran.dispatch_id))
    if choice == "slowest":
        return [by_cycles[-1]]
    if choice == "median":
        return [by_cycles[(len(by_cycles) - 1) // 2]]
    if int(choice) >= len(mine):
        raise RequestError(
            f"--dispatch {choice}: {name} is dispatched {len(mine)} times", hint=f"0 to {len(mine) - 1}"
        )
    return [mine[int(choice)]]


def _run(folder: Path, into: Path, target: str, seconds: float, warn: Callable[[str], None]) -> _BuildRun:
    """Runs a program once, whole; where its payload is too large, a second time for what was chosen."""
    dump = into / folder.name
    # a small run is recorded whole, a large one without payload first
    whole = CaptureOptions(level=2, seconds=seconds, max_payload=None, platform=target or None, force=True)
    limited = dataclasses.replace(whole, max_payload=_SMALL_PAYLOAD)
    try:
        scene = load_scene(folder)
        capture = run_capture(folder, None, dump, limited)
        if capture.directory is None and capture.failure is not None and "payload" in capture.failure.message:
            capture = run_capture(folder, None, dump, dataclasses.replace(whole, level=3))
    except InsightTraceError as error:
        return _BuildRun(None, str(error))
    if capture.failure is not None or capture.directory is None:
        why = str(capture.failure or capture.note)
        shutil.rmtree(dump, ignore_errors=True)
        return _BuildRun(None, f"the build's run failed: {why}")
    if capture.golden is not None and not capture.golden.passed:
        warn(f"{folder}: its run does not give what its golden says: {capture.golden.message}")
    run = _BuildRun(scene, "")
    run.ran = capture.ran
    compared = capture.golden is not None and capture.golden.verdict != "nothing compared"
    run.passed = capture.golden.passed if capture.golden is not None and compared else None
    run.record = _recorder(capture, folder, dump, whole)
    return run


def _recorder(
    capture: Capture, folder: Path, dump: Path, options: CaptureOptions
) -> Callable[[Sequence[int]], Dump]:
    loaded: dict[str, Dump] = {}

    def record(dispatches: Sequence[int]) -> Dump:
        if capture.level == 2:
            if "whole" not in loaded:
                assert capture.directory is not None
                loaded["whole"] = load_dump(capture.directory, capture.scene)
            return loaded["whole"]
        name = "_".join(map(str, dispatches[:4]))
        again = dataclasses.replace(options, only_dispatches=tuple(dispatches), golden=False)
        part = run_capture(folder, None, dump.with_name(f"{dump.name}_{name}"), again)
        if part.directory is None:
            raise RequestError(f"dispatch {name} of {folder} cannot be recorded: {part.failure or part.note}")
        return load_dump(part.directory, capture.scene)

    return record


def workload_columns(kernel: ProfileKernel) -> Mapping[str, str]:
    """What the manifest says about where a kernel's arguments come from."""
    work = kernel.workload
    if work is None:
        return {"workload": "synthetic", "workload_note": kernel.synthetic_because}
    return {"workload": "run", "workload_note": f"dispatch {work.number} of {work.count}"}
