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
from insight_trace.model import Scene
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
    runs: dict[Path, _BuildRun] = {}
    result: list[PlannedKernel] = []
    for kernel in planned:
        if not isinstance(kernel, ProfileKernel):
            result.append(kernel)
            continue
        folder = _program(kernel.source, build)
        if kernel.has_given:
            why = "its arguments were given"
        elif folder is None:
            why = f"there is no {CONFIG} or no {GOLDEN}"
        else:
            if folder not in runs:
                runs[folder] = (
                    _BuildRun(instead, folder) if instead else _run(folder, into, target, seconds, warn)
                )
                if runs[folder].problem and not instead:
                    warn(
                        f"{folder}: its kernels get made-up arguments, for the build could not be run: "
                        f"{runs[folder].problem}"
                    )
            found = runs[folder].of(kernel, choice)
            if found:
                result += found
                continue
            why = runs[folder].problem or "the build's run does not dispatch it"
        result.append(dataclasses.replace(kernel, synthetic_because=why))
    return tuple(result)


def _program(source: Path, build: Path) -> Path | None:
    """The folder of the program that a kernel belongs to, if it can be run."""
    for folder in source.parents:
        if (folder / CONFIG).is_file():
            return folder if (folder / GOLDEN).is_file() else None
        if folder == build:
            break
    return None


@dataclasses.dataclass(slots=True)
class _BuildRun:
    """One run of a program, and the dispatches that were taken from it."""

    problem: str  # why there is none
    folder: Path
    scene: Scene | None = None
    capture: Capture | None = None
    options: CaptureOptions = dataclasses.field(default_factory=CaptureOptions)
    whole: Dump | None = None

    def of(self, kernel: ProfileKernel, choice: str) -> list[ProfileKernel]:
        """The kernel on the dispatches of that choice; none where the run has none."""
        if self.scene is None or self.capture is None:
            return []
        by_name = {k.name: k for k in self.scene.kernels}
        names = [function.name for function in kernel.functions]
        if not all(name in by_name for name in names):
            return []
        members = {by_name[name].func_id for name in names}
        mine = [ran.dispatch_id for ran in self.capture.ran if set(ran.func_ids) == members]
        if not mine:
            return []
        chosen = _chosen([ran for ran in self.capture.ran if ran.dispatch_id in mine], choice, kernel.name)
        dump = self._recorded(self.capture, chosen)
        golden, by_id = self.capture.golden, {k.func_id: k for k in self.scene.kernels}
        found = {d.dispatch_id: d for d in dump.dispatches if d.dispatch_id in chosen}
        return [
            dataclasses.replace(
                kernel,
                name=kernel.name if len(chosen) == 1 else f"{kernel.name}.d{number}",
                workload=Workload(
                    kernels=tuple(by_id[func_id] for func_id in found[number].func_ids),
                    arguments=from_dispatch(found[number], earlier=dump.earlier),
                    dispatch_id=number,
                    number=mine.index(number),
                    count=len(mine),
                    golden=golden.passed if golden and golden.verdict != "nothing compared" else None,
                    scene=self.scene,
                    dispatch=found[number],
                ),
            )
            for number in chosen
        ]

    def _recorded(self, capture: Capture, dispatches: Sequence[int]) -> Dump:
        """A dump with these dispatches: that of the run, or of one more that records them alone."""
        assert capture.directory is not None
        if capture.level == 2:
            self.whole = self.whole or load_dump(capture.directory, capture.scene)
            return self.whole
        name = "_".join(map(str, dispatches[:4]))
        again = dataclasses.replace(self.options, only_dispatches=tuple(dispatches), golden=False)
        place = capture.directory.with_name(f"{capture.directory.name}_{name}")
        part = run_capture(self.folder, None, place, again)
        if part.directory is None:
            why = part.failure or part.note
            raise RequestError(f"dispatch {name} of {self.folder} cannot be recorded: {why}")
        return load_dump(part.directory, capture.scene)


def _chosen(mine: Sequence[Ran], choice: str, name: str) -> list[int]:
    """Dispatches of a kernel, by their ids."""
    by_cycles = sorted(mine, key=lambda ran: (ran.cycles, ran.dispatch_id))
    named = {"first": mine[0], "slowest": by_cycles[-1], "median": by_cycles[(len(by_cycles) - 1) // 2]}
    if choice == "all":
        return [ran.dispatch_id for ran in mine]
    if choice not in named and int(choice) >= len(mine):
        raise RequestError(
            f"--dispatch {choice}: {name} is dispatched {len(mine)} times", hint=f"0 to {len(mine) - 1}"
        )
    return [(named.get(choice) or mine[int(choice)]).dispatch_id]


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
        return _BuildRun(str(error), folder)
    if capture.failure is not None or capture.directory is None:
        shutil.rmtree(dump, ignore_errors=True)
        return _BuildRun(f"the build's run failed: {capture.failure or capture.note}", folder)
    if capture.golden is not None and not capture.golden.passed:
        warn(f"{folder}: its run does not give what its golden says: {capture.golden.message}")
    return _BuildRun("", folder, scene, capture, whole)


def workload_columns(kernel: ProfileKernel) -> Mapping[str, str]:
    """What the manifest says about where a kernel's arguments come from."""
    work = kernel.workload
    if work is None:
        return {"workload": "synthetic", "workload_note": kernel.synthetic_because}
    return {"workload": "run", "workload_note": f"dispatch {work.number} of {work.count}"}
