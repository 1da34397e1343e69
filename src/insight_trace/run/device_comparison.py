"""What a device measured of a run beside what is simulated of it, task by task and kernel by kernel."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from insight_trace.errors import InputError
from insight_trace.run.device_records import find_records, read_deps, read_names
from insight_trace.run.measured import DURATION, TOTAL, MeasuredTask, read_pmu, read_swimlane
from insight_trace.run.schedule import ActivityKind
from insight_trace.run.whole_run import WholeRun, task_names


@dataclass(frozen=True, slots=True)
class ComparedTask:
    """One task, measured and simulated; microseconds of its longest part."""

    task_id: int
    kernel: str
    measured: float
    simulated: float | None  # None: the case has no such task

    @property
    def ratio(self) -> float | None:
        return None if self.simulated is None or not self.measured else self.simulated / self.measured


@dataclass(frozen=True, slots=True)
class ComparedKernel:
    name: str
    tasks: int
    measured: float  # microseconds, the median of its tasks
    simulated: float | None
    most: float  # measured


@dataclass(frozen=True, slots=True)
class DeviceComparison:
    tasks: tuple[ComparedTask, ...]  # the slowest measured first
    kernels: tuple[ComparedKernel, ...]  # that with most measured time first
    only_here: int  # tasks with a kernel that the device did not measure


def read_measured(folder: Path) -> tuple[list[MeasuredTask], dict[int, str], dict[int, int]]:
    """Measurements of a folder, names of its kernels, and which func id each task has, where that is recorded."""
    records = find_records(folder)
    found = read_swimlane(records.swimlane) if records.swimlane else []
    found += read_pmu(records.pmu) if records.pmu and not found else []
    names = read_names(records.names) if records.names else {}
    func_of = {m.task_id: m.func_id for m in found if m.func_id is not None}
    if records.deps:
        for task in read_deps(records.deps).tasks:
            if task.func_ids is not None:
                first = next((f for f in task.func_ids if f >= 0), None)
                if first is not None:
                    func_of.setdefault(task.task_id, first)
    return found, names, func_of


def beside(run: WholeRun, folder: Path) -> DeviceComparison:
    """Joins a device's records with a simulated run of the same case, by task id."""
    measured, names, func_of = read_measured(folder)
    longest: dict[int, float] = {}
    for row in measured:
        micros = row.cycles[DURATION] if DURATION in row.cycles else row.cycles[TOTAL] / run.chip.mhz
        longest[row.task_id] = max(longest.get(row.task_id, 0.0), micros)
    ours = _simulated(run)
    kernels = dict(zip(run.graph.tasks["id"].tolist(), task_names(run.graph), strict=True))
    own = {k.func_id: k.name for k in run.graph.scene.kernels}
    tasks = []
    for task_id, micros in longest.items():
        func_id = func_of.get(task_id)
        name = names.get(func_id, own.get(func_id, "")) if func_id is not None else ""
        tasks.append(
            ComparedTask(task_id, kernels.get(task_id) or name or "(unknown)", micros, ours.get(task_id))
        )
    if not any(task.simulated is not None for task in tasks):
        raise InputError(
            f"no task that {folder} measured is one of this case",
            hint="are they of the same scene, case and version?",
        )
    tasks.sort(key=lambda task: (-task.measured, task.task_id))
    by_kernel: dict[str, list[ComparedTask]] = {}
    for task in tasks:
        by_kernel.setdefault(task.kernel, []).append(task)
    rows = []
    for name, mine in by_kernel.items():
        simulated = [task.simulated for task in mine if task.simulated is not None]
        rows.append(
            ComparedKernel(
                name,
                len(mine),
                median(t.measured for t in mine),
                median(simulated) if simulated else None,
                mine[0].measured,
            )
        )
    rows.sort(key=lambda row: -row.measured * row.tasks)
    return DeviceComparison(tuple(tasks), tuple(rows), len(set(ours) - set(longest)))


def _simulated(run: WholeRun) -> dict[int, float]:
    """Microseconds of the longest part of every task, by its id."""
    import numpy as np

    schedule = run.schedule
    rows = np.flatnonzero(schedule.kind == ActivityKind.KERNEL)
    found = np.zeros(len(run.graph.tasks), np.int64)
    np.maximum.at(found, schedule.task[rows], schedule.end[rows] - schedule.start[rows])
    ids = run.graph.tasks["id"].tolist()
    return {ids[task]: run.micros(int(found[task])) for task in np.unique(schedule.task[rows]).tolist()}


def as_data(found: DeviceComparison) -> dict[str, Any]:
    import dataclasses

    return {
        "tasks": [{**dataclasses.asdict(task), "task_id": f"0x{task.task_id:016x}"} for task in found.tasks],
        "kernels": [dataclasses.asdict(kernel) for kernel in found.kernels],
        "not_measured": found.only_here,
    }


def text_lines(found: DeviceComparison, shown: int = 5) -> list[str]:
    """Kernels, then the slowest measured tasks."""
    width = max(6, *(len(kernel.name) for kernel in found.kernels))
    lines = [
        f"measured   {'kernel':<{width}} {'tasks':>8} {'measured us':>12} {'simulated':>10} {'ratio':>6}"
    ]
    for kernel in found.kernels:
        cells = (
            f"{kernel.simulated:>10.2f} {kernel.simulated / kernel.measured:>6.2f}"
            if kernel.simulated
            else ""
        )
        lines.append(f"           {kernel.name:<{width}} {kernel.tasks:>8,} {kernel.measured:>12.2f} {cells}")
    for task in found.tasks[:shown]:
        other = "" if task.simulated is None else f" · simulated {task.simulated:.2f} us"
        lines.append(
            f"slowest    0x{task.task_id:016x} {task.kernel:<{width}} measured {task.measured:.2f} us{other}"
        )
    if found.only_here:
        lines.append(f"           {found.only_here:,} tasks of the case were not measured")
    return lines
