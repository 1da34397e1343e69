"""Measured tasks against simulated ones, and a chip's parameters from the difference."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from insight_trace.chips import Chip, load_chip
from insight_trace.dump.load import load_dump
from insight_trace.errors import InputError, JobError
from insight_trace.model import CoreType, Dispatch, Instructions, Kernel, Pipe, Role, TensorArg
from insight_trace.options import RunOptions
from insight_trace.outcome import Simulation
from insight_trace.recording.intervals import union
from insight_trace.recording.kinds import Kind, kinds
from insight_trace.recording.pipes import ENGINE_PIPES
from insight_trace.replay.jobs import ReplayRequest, job_of
from insight_trace.results import Result
from insight_trace.run.counters import NAMES, counted
from insight_trace.run.fitting import Fit, Quantity, fit
from insight_trace.run.measured import DURATION, TOTAL, MeasuredTask
from insight_trace.run.overlay import base_of, candidates, overlay_text
from insight_trace.scene.static import load_scene
from insight_trace.scratch import scratch_folder
from insight_trace.simulate.embedded.estimates import parameter_times
from insight_trace.simulate.embedded.simulator import EmbeddedOptions, run_embedded

if TYPE_CHECKING:
    from insight_trace.arguments.slots import ReplayArguments

# Numbers that matter only where these instructions are, or where cores share a memory.
_OF_THEIR_INSTRUCTIONS = (
    "register.write",
    "flag.latency",
    "barrier.cost",
    "cross_core.latency",
    "scalar.dcci",
)
_SHARED = ("gm.chip_rate", "l2.chip_rate", "l2.shared_cost", "l2.atomic_turn", "cross_core.turn")
_NEEDS = {"mmad": "mmad.", "fixpipe": "move.FIX", "bank": "vector.", "mask": "vector.", "function": "vector."}
_PIPES = tuple(pipe for pipe in ENGINE_PIPES if pipe is not Pipe.ALL)


@dataclass(frozen=True)
class Task:
    """Dispatches of one kernel with arguments of the same form: simulated once, measured many times."""

    name: str
    kernels: tuple[Kernel, ...]
    arguments: ReplayArguments
    held: tuple[tuple[int, bool], ...]
    task_ids: tuple[int, ...]


@dataclass(frozen=True)
class CounterRow:
    """A counter of a device, the mean over the measurements of a task, and what a simulation has of it."""

    task: str
    what: str
    measured: float
    simulated: float | None  # None: nothing here counts that


@dataclass(frozen=True, repr=False)
class Calibration(Result):
    """A chip before and after it was fitted to measurements."""

    chip: Chip
    quantities: tuple[Quantity, ...]
    result: Fit
    overlay: str  # the chip's file with what was fitted
    counters: tuple[CounterRow, ...] = ()

    def summary(self) -> str:
        fit = self.result
        return f"{self.chip.name} · {len(fit.fitted)} parameters fitted · error {fit.before:.1%}, then {fit.held_out:.1%}"

    def columns(self) -> Mapping[str, Any]:
        """One row per quantity that was measured."""
        rows = self.data()["quantities"]
        return {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}

    def data(self) -> dict[str, Any]:
        result = self.result
        return {
            "chip": self.chip.name,
            "quantities": [
                {
                    "task": q.task,
                    "what": q.what,
                    "measured": q.measured,
                    "simulated": before,
                    "calibrated": after,
                }
                for q, before, after in zip(self.quantities, result.simulated, result.after, strict=True)
            ],
            "counters": [
                {"task": c.task, "what": c.what, "measured": c.measured, "simulated": c.simulated}
                for c in self.counters
            ],
            "fitted": [{"parameter": p.name, "factor": p.factor, "within": p.within} for p in result.fitted],
            "refused": [{"parameter": p.name, "why": p.why} for p in result.refused],
            "error_before": result.before,
            "held_out_error": result.held_out,
            "unseen_kind_error": result.unseen,
            "scatter": result.scatter,
        }


def counter_rows(
    tasks: Sequence[Task], measured: Iterable[MeasuredTask], ours: Mapping[str, Mapping[str, float]]
) -> list[CounterRow]:
    """What a device counted beside busy cycles, and ours where there is such a thing."""
    by_id = {task_id: task for task in tasks for task_id in task.task_ids}
    values: dict[tuple[str, str], list[float]] = {}
    for row in measured:
        task = by_id.get(row.task_id)
        if task is None:
            continue
        found: dict[str, float] = {}
        for name, value in row.counters.items():
            what = NAMES.get(name, name)
            found[what] = found.get(what, 0.0) + value
        for what, value in found.items():
            values.setdefault((task.name, what), []).append(value)
    return [
        CounterRow(task_name, what, sum(found) / len(found), ours.get(task_name, {}).get(what))
        for (task_name, what), found in sorted(values.items())
    ]


def quantities_of(tasks: Sequence[Task], measured: Iterable[MeasuredTask]) -> list[Quantity]:
    """What was measured, for each task and each kind of core that it ran on."""
    by_id = {task_id: task for task in tasks for task_id in task.task_ids}
    values: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for row in measured:
        task = by_id.get(row.task_id)
        if task is None:
            continue
        cube = row.cube if row.cube is not None else task.kernels[0].core_type is CoreType.AIC
        for what, value in row.cycles.items():
            if value > 0:
                values.setdefault((f"{task.name} {'aic' if cube else 'aiv'}", what), []).append(
                    (row.task_id, value)
                )
    return [Quantity(task, what, tuple(found)) for (task, what), found in sorted(values.items())]


def calibrate(
    tasks: Sequence[Task],
    measured: Iterable[MeasuredTask],
    soc_version: str | None,
    target: str,
    source: str,
    name: str,
    progress: Callable[[int], None] = lambda _runs: None,
) -> Calibration:
    """Fits the chip to the tasks; `source` is what the new file says of its numbers."""
    chip = load_chip(soc_version, target=target)
    base = base_of(chip)
    with (
        scratch_folder("chip") as folder,
        Simulated(tasks, chip, base, soc_version, target, folder) as device,
    ):
        known = device({})
        measured = tuple(measured)
        counters = counter_rows(tasks, measured, device.counted)
        quantities = [q for q in quantities_of(tasks, measured) if known.get((q.task, q.what), 0) > 0]
        if not quantities:
            raise InputError(
                "no task of the dump was measured",
                hint="the dump, pmu.csv and the swimlane must be of one run",
            )

        def model(factors: Mapping[str, float]) -> list[float]:
            values = device(factors)
            progress(device.runs)
            return [values.get((q.task, q.what), 0.0) for q in quantities]

        result = fit(quantities, model, candidates(chip, device.timed_by))
    return Calibration(
        chip,
        tuple(quantities),
        result,
        overlay_text(chip, base, name, result.factors, source),
        tuple(counters),
    )


class Simulated:
    """Times of the tasks on the chip with parameters multiplied; a task runs again only if it depends on one."""

    def __init__(
        self, tasks: Sequence[Task], chip: Chip, base: str, soc_version: str | None, target: str, folder: Path
    ) -> None:
        self.tasks, self.chip, self.base, self.target = tasks, chip, base, target
        self._folder = folder  # for its chip files
        self._files = itertools.count()
        self._pool = ThreadPoolExecutor(min(8, os.cpu_count() or 1))
        self._known: dict[tuple[Any, ...], dict[tuple[str, str], float]] = {}
        options = EmbeddedOptions(soc_version=soc_version, target=target, host_cores=1)
        runs = list(self._pool.map(lambda task: simulated(task, options), tasks))
        self._uses = [
            Uses(frozenset(parameter_times(run, chip)[1]), len(run.instructions.cores)) for run in runs
        ]
        self.counted = {task.name: counted(run) for task, run in zip(tasks, runs, strict=True)}
        for number, (task, run) in enumerate(zip(tasks, runs, strict=True)):
            self._known[number, ()] = _values(task, run, chip.mhz)

    def __enter__(self) -> Simulated:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    @property
    def runs(self) -> int:
        return len(self._known)

    @property
    def timed_by(self) -> frozenset[str]:
        return frozenset().union(*(uses.parameters for uses in self._uses))

    def __call__(self, factors: Mapping[str, float]) -> dict[tuple[str, str], float]:
        """By task and core, and what was measured of it."""
        wanted = {}
        for number in range(len(self.tasks)):
            own = {name: factors[name] for name in sorted(factors) if self._uses[number].depends(name)}
            wanted[number, tuple(own.items())] = own
        missing = [(key, own) for key, own in wanted.items() if key not in self._known]
        for (key, _), found in zip(missing, self._pool.map(self._run, missing), strict=True):
            self._known[key] = found
        return {name: value for key in wanted for name, value in self._known[key].items()}

    def _run(self, missing: tuple[tuple[int, Any], Mapping[str, float]]) -> dict[tuple[str, str], float]:
        (number, _), factors = missing
        path = self._folder / f"chip{next(self._files)}.toml"
        path.write_text(
            overlay_text(self.chip, self.base, "Calibrating", factors, "calibrating"), encoding="utf-8"
        )
        options = EmbeddedOptions(soc_version=str(path), target=self.target, host_cores=1)
        run = simulated(self.tasks[number], options)
        path.unlink()
        return _values(self.tasks[number], run, self.chip.mhz)


@dataclass(frozen=True)
class Uses:
    """What a task's time can depend on."""

    parameters: frozenset[str]  # that time its instructions
    cores: int

    def depends(self, parameter: str) -> bool:
        table = parameter.partition(".")[0]
        if table in ("vector", "move"):
            return parameter.rpartition(".")[0] in self.parameters
        if parameter in _OF_THEIR_INSTRUCTIONS:
            return parameter in self.parameters
        if parameter in _SHARED:
            return self.cores > 1
        needs = _NEEDS.get(table)
        return needs is None or any(name.startswith(needs) for name in self.parameters)


def simulated(task: Task, options: EmbeddedOptions) -> Simulation:
    options = replace(options, timing_only=True, l2="trace", held=task.held)
    run = run_embedded(task.kernels, task.arguments, options)
    if run.failure:
        raise JobError(f"{task.name}: {run.failure.message}", where=run.failure.where)
    return run


def _values(task: Task, run: Simulation, mhz: float) -> dict[tuple[str, str], float]:
    values = {}
    for kind, cycles in core_times(run).items():
        for what, value in cycles.items():
            values[f"{task.name} {kind}", what] = value
        values[f"{task.name} {kind}", DURATION] = cycles[TOTAL] / mhz
    return values


def core_times(run: Simulation) -> dict[str, dict[str, float]]:
    """Total and busy cycles by pipe, the mean over the cores of a kind, as counters give them."""
    import numpy as np

    assert run.launch is not None
    columns = run.instructions
    cubes = np.array(["cubecore" in name for name in columns.cores])
    spans = np.array(run.launch.ends) - np.array(run.launch.starts)
    found: dict[str, dict[str, float]] = {}
    for kind, cores in (("aic", cubes), ("aiv", ~cubes)):
        if not cores.any():
            continue
        times = {TOTAL: float(spans[cores].mean())}
        for pipe in _PIPES:
            if busy := _busy(columns, pipe, np.flatnonzero(cores)):
                times[pipe.name] = busy / int(cores.sum())
        found[kind] = times
    return found


def _busy(columns: Instructions, pipe: Pipe, cores: Any) -> int:
    """Cycles in which a pipe of these cores works, all together."""
    import numpy as np

    kind = kinds(columns)
    works = (kind == Kind.WORK) | ((kind == Kind.SCALAR) & (columns.name != _named(columns, "END")))
    rows = np.flatnonzero((columns.pipe == pipe) & works & np.isin(columns.core, cores))
    if not rows.size:
        return 0
    start, end = columns.start[rows].astype(np.int64), columns.end[rows].astype(np.int64)
    shift = columns.core[rows].astype(np.int64) * (int(end.max()) + 1)  # cores far apart on one axis
    return union(start + shift, end + shift).length


def _named(columns: Instructions, name: str) -> int:
    return columns.names.index(name) if name in columns.names else -1


# --- the dispatches of a dump as tasks to simulate: one for each kernel and form of arguments


def recorded_tasks(scene_path: Path, dump_dir: Path, case: str | None, wanted: set[int]) -> list[Task]:
    """Tasks of a dump that `wanted` task ids belong to, named by kernel and the first of their dispatches."""
    scene = load_scene(scene_path)
    forms: dict[object, list[Dispatch]] = {}
    used: set[int | None] = set()  # tensors that an earlier dispatch used: where they are read, L2 has them
    for dispatch in load_dump(dump_dir, scene).dispatches:
        tensors = [a for a in dispatch.arguments if isinstance(a, TensorArg)]
        if dispatch.func_ids and dispatch.task_id in wanted:
            held = frozenset(a.slot for a in tensors if a.role is not Role.OUTPUT and a.pointer in used)
            forms.setdefault((dispatch.form, held), []).append(dispatch)
        used.update(a.pointer for a in tensors)
    tasks = []
    for dispatches in forms.values():
        first = dispatches[0]
        job = job_of(
            ReplayRequest(
                scene=scene_path,
                case=case,
                func_ids=first.func_ids,
                dump_dir=dump_dir,
                dispatch_id=first.dispatch_id,
                options=RunOptions(l2="trace", any_target=True),
            )
        )
        tasks.append(
            Task(
                f"{job.label}@{first.dispatch_id}",
                job.kernels,
                job.arguments,
                job.held,
                tuple(sorted({d.task_id for d in dispatches})),
            )
        )
    return tasks
