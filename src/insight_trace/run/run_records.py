"""A run as simpler's runtime records one on a device: swimlane, dependences, names and counters.

The folder `dfx_outputs/` of a run has the files that simpler's own tools (swimlane_converter, critical_path, deps_viewer,
sched_overhead_analysis) and the PyPTO Toolkit read. Stamps are cycles of the core's clock from `_ORIGIN` on, because a
stamp of 0 means "none" to them. They ignore keys that they do not know: one says that this run was simulated.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from insight_trace.run.schedule import ActivityKind
from insight_trace.run.whole_run import WholeRun
from insight_trace.trace.other_simulators import PIPE_COUNTERS, PIPE_UTILIZATION, PMU_HEAD

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FOLDER = "dfx_outputs"
SWIMLANE, DEPS, PMU = "chip_swimlane_records.json", "deps.json", "pmu.csv"
_LEVEL = 4  # the most: cores, schedulers' stamps and phases, the orchestrator
_ORIGIN = 1_000_000
_SIMULATED = {"simulated_by": "insight-trace"}


def write_records(run: WholeRun, folder: Path) -> None:
    """Fills `folder`, which the caller made."""
    label = f"{run.graph.scene.class_name or run.graph.scene.name}_{run.graph.case.name}"
    names = {str(kernel.func_id): kernel.name for kernel in run.graph.scene.kernels}
    _write(folder / SWIMLANE, swimlane(run))
    _write(folder / DEPS, dependences(run))
    known = {"level": 2, "orchestrator_name": None, "callable_id_to_name": names}
    _write(folder / f"name_map_{re.sub(r'[^A-Za-z0-9_.-]+', '-', label)}.json", known)
    (folder / PMU).write_text(_counters(run), encoding="utf-8")


def _write(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, separators=(",", ":")) + "\n", encoding="utf-8")


def _kernels(run: WholeRun) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Kernels by core and start, and the number that each has on its core, from 1 on."""
    import numpy as np

    schedule = run.schedule
    rows = np.flatnonzero(schedule.kind == ActivityKind.KERNEL)
    rows = rows[np.lexsort((schedule.start[rows], schedule.place[rows]))]
    place = schedule.place[rows]
    first = np.searchsorted(place, place, side="left")
    return rows, np.arange(len(rows)) - first + 1


def _thread_of(run: WholeRun) -> list[int]:
    """The scheduler that owns each core."""
    clusters, threads = run.machine.clusters, run.machine.threads
    own = [cluster % threads for cluster in range(clusters)]
    return own + [own[vector // 2] for vector in range(2 * clusters)]


def swimlane(run: WholeRun) -> dict[str, Any]:
    """chip_swimlane_records.json."""
    schedule, clusters = run.schedule, run.machine.clusters
    ids = run.graph.tasks["id"].tolist()
    threads = _thread_of(run)
    rows, numbers = _kernels(run)
    start, end = (schedule.start + _ORIGIN).tolist(), (schedule.end + _ORIGIN).tolist()
    given, noted = _dispatched(run, rows, threads), _noted(run)
    cores, stamps = [], []
    for row, number in zip(rows.tolist(), numbers.tolist(), strict=True):
        core, task = int(schedule.place[row]), int(schedule.task[row])
        cores.append([core, ids[task], number, start[row], end[row], 0])
        stamps.append([core, number, given[row] + _ORIGIN, max(end[row], noted.get(row, 0) + _ORIGIN)])
    return {
        "chip_swimlane_level": _LEVEL,
        "metadata": {
            "clock_freq_hz": round(run.chip.mhz * 1e6),
            "num_cores": run.machine.cores,
            "core_types": ["aic"] * clusters + ["aiv"] * (2 * clusters),
            "core_to_thread": threads,
            **_SIMULATED,
        },
        "aicore_tasks": cores,
        "aicpu_tasks": stamps,
        "aicpu_scheduler_phases": _phases(run, rows, given),
        "aicpu_orchestrator_phases": [_submits(run, ids)],
    }


def _dispatched(run: WholeRun, rows: NDArray[np.int64], threads: list[int]) -> dict[int, int]:
    """When a scheduler gave each kernel to its core: its thread's last dispatch of the task before the start."""
    import numpy as np

    schedule = run.schedule
    dispatches: dict[tuple[int, int], list[int]] = {}
    for row in np.flatnonzero(schedule.kind == ActivityKind.DISPATCH).tolist():
        dispatches.setdefault((int(schedule.task[row]), int(schedule.place[row])), []).append(
            int(schedule.end[row])
        )
    found = {}
    for row in rows.tolist():
        ends = dispatches.get((int(schedule.task[row]), threads[int(schedule.place[row])]), [])
        begun = int(schedule.start[row])
        found[row] = max((end for end in ends if end <= begun), default=begun)
    return found


def _noted(run: WholeRun) -> dict[int, int]:
    """By kernel, when a scheduler saw its end."""
    import numpy as np

    schedule = run.schedule
    rows = np.flatnonzero(schedule.kind == ActivityKind.COMPLETE)
    causes = zip(schedule.cause[rows].tolist(), schedule.start[rows].tolist(), strict=True)
    return {cause: start for cause, start in causes if cause >= 0}


def _phases(run: WholeRun, kernels: NDArray[np.int64], given: dict[int, int]) -> list[list[dict[str, Any]]]:
    """What every scheduler did, in the order of time; a loop of it is one dispatch or one completion."""
    import numpy as np

    schedule = run.schedule
    threads = _thread_of(run)
    parts: dict[tuple[int, int, int], int] = {}  # thread, task and end of a dispatch: cores that it served
    for row in kernels.tolist():
        key = threads[int(schedule.place[row])], int(schedule.task[row]), given[row]
        parts[key] = parts.get(key, 0) + 1
    kinds = (ActivityKind.DISPATCH, ActivityKind.COMPLETE)
    found: list[list[dict[str, Any]]] = [[] for _ in range(run.machine.threads)]
    for row in np.flatnonzero(np.isin(schedule.kind, kinds)).tolist():
        thread, task = int(schedule.place[row]), int(schedule.task[row])
        start, end = int(schedule.start[row]), int(schedule.end[row])
        if schedule.kind[row] == ActivityKind.COMPLETE:
            found[thread].append(_phase("complete", start, end, tasks_processed=1))
        else:
            served = parts.get((thread, task, end), 0)
            found[thread].append(
                _phase("dispatch", start, end, tasks_processed=served, pop_hit=1, pop_miss=0)
            )
    found[0] += _without_kernel(run)
    for phases in found:
        phases.sort(key=lambda phase: (phase["start_cycles"], phase["end_cycles"]))
        for number, phase in enumerate(phases, 1):
            phase["loop_iter"] = number
    return found


def _phase(kind: str, start: int, end: int, **more: int) -> dict[str, Any]:
    """Nobody counts here what waits in the queues."""
    stamps = {"start_cycles": start + _ORIGIN, "end_cycles": end + _ORIGIN, "loop_iter": 0}
    return {"kind": kind, **stamps, **more, "shared_at_start": [0, 0, 0], "shared_at_end": [0, 0, 0]}


def _without_kernel(run: WholeRun) -> list[dict[str, Any]]:
    """Marks of the tasks that run nothing: they are done when they are submitted."""
    schedule, tasks = run.schedule, run.graph.tasks
    found = []
    for row in (schedule.kind == ActivityKind.SUBMIT).nonzero()[0].tolist():
        task = int(schedule.task[row])
        if run.work.members[task] == 0:
            kind = "predicated_skip" if tasks["skipped"][task] else "dummy_task"
            end = int(schedule.end[row])
            found.append(_phase(kind, end, end, tasks_processed=0, task_id=int(tasks["id"][task])))
    return found


def _submits(run: WholeRun, ids: list[int]) -> list[dict[str, int]]:
    import numpy as np

    schedule = run.schedule
    rows = np.flatnonzero(schedule.kind == ActivityKind.SUBMIT)
    rows = rows[np.argsort(schedule.start[rows], kind="stable")]
    return [
        {
            "submit_idx": number,
            "task_id": ids[int(schedule.task[row])],
            "start_cycles": int(schedule.start[row]) + _ORIGIN,
            "end_cycles": int(schedule.end[row]) + _ORIGIN,
        }
        for number, row in enumerate(rows.tolist())
    ]


def dependences(run: WholeRun) -> dict[str, Any]:
    """deps.json. A task that its predicate switched off has no kernels: nothing of it ran."""
    graph = run.graph
    ids = [str(task_id) for task_id in graph.tasks["id"].tolist()]
    tasks = [
        {
            "task_id": ids[number],
            "scope": "auto",
            "early_dispatch": bool(early),
            "kernel_ids": [-1, -1, -1] if skipped else functions,
            "block_num": blocks,
            "args": [],
        }
        for number, (functions, blocks, early, skipped) in enumerate(
            zip(
                *(graph.tasks[name].tolist() for name in ("func", "block_count", "early", "skipped")),
                strict=True,
            )
        )
    ]
    # what only the orchestrator waits for orders no tasks
    pairs = dict.fromkeys(
        (before, after)
        for before, after, held in zip(
            *(graph.edges[name].tolist() for name in ("before", "after", "orchestrator")), strict=True
        )
        if not held
    )
    edges = [
        {
            "pred": ids[before],
            "succ": ids[after],
            "arg": -1,
            "source": "explicit",
            "flags": ["wait", "retain"],
        }
        for before, after in pairs
    ]
    return {"tasks": tasks, "tensors": [], "edges": edges, **_SIMULATED}


def _counters(run: WholeRun) -> str:
    """pmu.csv: cycles of every kernel on every core, and the busy ones of its pipes."""
    schedule, threads = run.schedule, _thread_of(run)
    tasks = run.graph.tasks
    rows, _ = _kernels(run)
    counted = bool(run.variants)
    lines = [",".join([*PMU_HEAD, *(name for name, _ in PIPE_COUNTERS if counted), "event_type"])]
    for row in rows.tolist():
        core, task = int(schedule.place[row]), int(schedule.task[row])
        is_cube = core < run.machine.clusters
        cycles = int(schedule.end[row] - schedule.start[row])
        # members are the cube and the two vector cores of a cluster; a vector task alone may be on either
        functions = tasks["func"][task].tolist()
        member = 0 if is_cube else 1 + (core - run.machine.clusters) % 2
        function = functions[member] if functions[member] >= 0 else max(functions[1:])
        cells = [threads[core], core, f"0x{int(tasks['id'][task]):016x}", function, int(not is_cube), cycles]
        if counted:
            variant = int(run.variant_of[task])
            shares = run.variants[variant].timed.counted if variant >= 0 else {}
            busy = shares.get("aic" if is_cube else "aiv", {})
            cells += [round(cycles * busy.get(pipe, 0.0)) for _, pipe in PIPE_COUNTERS]
        lines.append(",".join(map(str, [*cells, PIPE_UTILIZATION])))
    return "\n".join(lines) + "\n"
