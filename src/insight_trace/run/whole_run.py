"""A case on a whole chip: what it submits, how long each task takes, and when each runs on which core."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from insight_trace.capture.session import CaptureOptions
from insight_trace.capture.task_graph import TaskGraph, take_graph
from insight_trace.chips import Chip, load_chip
from insight_trace.errors import InputError, RequestError
from insight_trace.executor import Executor
from insight_trace.executor.journal import Journal
from insight_trace.model import Role
from insight_trace.options import RunOptions
from insight_trace.replay.jobs import ReplayRequest
from insight_trace.replay.replaying import replay_job
from insight_trace.run.critical_tasks import Part, critical_path
from insight_trace.run.device_records import read_deps
from insight_trace.run.placing import place
from insight_trace.run.schedule import CUBE, VECTOR0, VECTOR1, Machine, Schedule, Work, machine_of
from insight_trace.run.shared_memory import PARTS, RATE, MemoryDemand
from insight_trace.run.timing import Dispatches, NeedsValuesError, Timed, Variant, time_all

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MEMBERS = (CUBE, VECTOR0, VECTOR1)
_OUTPUT, _INOUT = (tuple(Role).index(role) for role in (Role.OUTPUT, Role.INOUT))
_MOVES = ("MTE2", "MTE3", "FIXP")  # pipes that reach global memory


@dataclass(frozen=True)
class RunRequest:
    """What to run, and on which chip."""

    scene: Path
    case: str | None = None
    chip: str | None = None
    preset: str = "device"
    platform: str | None = None
    seed: int = 0
    seconds: float = 60.0
    values: bool = False  # run every kernel, so that content of every dispatch is right
    golden: bool = True
    assumed: tuple[tuple[str, float], ...] = ()  # kernels that are not simulated, and their microseconds
    deps: Path | None = None  # deps.json of a device's run: who waits for whom, instead of what we find


@dataclass(frozen=True, eq=False)
class WholeRun:
    """A case on a chip."""

    graph: TaskGraph
    chip: Chip
    machine: Machine
    work: Work
    schedule: Schedule
    path: list[Part]
    variants: list[Variant]  # empty where every dispatch was run
    variant_of: NDArray[np.int64]  # task -> variant, or -1
    reused: int  # jobs whose result was kept from an earlier run

    @property
    def total(self) -> int:
        return self.schedule.total

    def micros(self, cycles: float) -> float:
        return cycles / self.chip.mhz


def run_case(
    request: RunRequest,
    folder: Path,
    executor: Executor,
    progress: Callable[[str], None] = lambda _step: None,
    timed: Callable[[int, int], None] = lambda _done, _all: None,
) -> WholeRun:
    """Captures, times and places a case. `folder` keeps what is known so far, and serves to go on after an end."""
    options = CaptureOptions(
        seed=request.seed, platform=request.platform, seconds=request.seconds, golden=request.golden
    )
    assumed = dict(request.assumed)
    graph = take_graph(
        request.scene, request.case, folder, options=options, values=request.values, without=assumed.keys(),
        progress=progress,
    )  # fmt: skip
    chip = load_chip(request.chip, target=graph.target, preset=request.preset)
    if chip.target != graph.target:
        raise RequestError(
            f"{chip.name} is a chip of {chip.target}, and the case runs on {graph.target}",
            hint=f"--platform {chip.target} chooses another case, if there is one",
        )
    timing = RunOptions(
        simulator="embedded", soc_version=request.chip, preset=request.preset, seconds=request.seconds
    )
    l2_bytes = round(chip.value("l2.capacity"))
    machine = machine_of(chip)
    if not graph.ran:
        with Journal(folder / "jobs.jsonl", Timed) as journal:
            try:
                cycles = {name: round(micros * chip.mhz) for name, micros in assumed.items()}
                dispatches = Dispatches(graph, timing, l2_bytes)
                variants = time_all(dispatches, executor, journal, timed, cycles)
                if dispatches.learn(variants):
                    variants = time_all(dispatches, executor, journal, timed, cycles)
                return _placed(
                    _with_deps(graph, request.deps), chip, machine, (dispatches, variants), journal.used
                )
            except NeedsValuesError as error:
                why = str(error)
        graph = take_graph(
            request.scene, request.case, folder, options=options, values=True, why=why, without=assumed.keys(),
            progress=progress,
        )  # fmt: skip
    return _placed(_with_deps(graph, request.deps), chip, machine, None, 0)


def _with_deps(graph: TaskGraph, path: Path | None) -> TaskGraph:
    """The same tasks, waiting for each other as a device's runtime recorded it."""
    import numpy as np

    if path is None:
        return graph
    numbers = {task_id: number for number, task_id in enumerate(graph.tasks["id"].tolist())}
    recorded = read_deps(path)
    strange = [task.task_id for task in recorded.tasks if task.task_id not in numbers]
    pairs = [(numbers[a], numbers[b]) for a, b in recorded.edges if a in numbers and b in numbers]
    if strange or len(pairs) < len(recorded.edges):
        which = f"task 0x{strange[0]:x}" if strange else "an edge"
        raise InputError(
            f"{which} of it is not in this case",
            where=str(path),
            hint="is it of the same scene, case and version?",
        )
    kept = graph.edges[graph.edges["orchestrator"] != 0]
    edges = np.zeros(len(pairs), graph.edges.dtype)
    if pairs:
        edges["before"], edges["after"] = np.array(pairs, np.uint32).T
    return replace(graph, edges=np.concatenate((edges, kept)))


def _placed(
    graph: TaskGraph,
    chip: Chip,
    machine: Machine,
    timed: tuple[Dispatches, list[Variant]] | None,
    reused: int,
) -> WholeRun:
    import numpy as np

    runs = (graph.tasks["func"] >= 0) & (graph.tasks["skipped"] == 0)[:, None]
    members = (runs * np.array(MEMBERS)).sum(1).astype(np.uint8)
    blocks = graph.tasks["block_count"].astype(np.int64)
    variant_of = np.full(len(members), -1, np.int64)
    demand = pages = None
    variants: list[Variant] = []
    if timed is None:
        first = np.concatenate(([0], np.cumsum(blocks)[:-1])).astype(np.int64) if len(blocks) else blocks
        times = np.repeat(graph.tasks["cycles"], blocks)[:, None] * np.repeat(runs, blocks, axis=0)
    else:
        dispatches, variants = timed
        pages, written_back = dispatches.pages(variants, chip), dispatches.written_back()
        tables, first, at = [np.zeros((0, 3), np.int64)], np.zeros(len(members), np.int64), 0
        asked: list[tuple[int, int, int, int]] = []
        places = np.flatnonzero(members)
        for number, variant in enumerate(variants):
            tasks = places[variant.tasks]
            table = np.zeros((len(variant.timed.times), 3), np.int64)
            table[:, np.flatnonzero(runs[tasks[0]])] = variant.timed.times
            first[tasks], variant_of[tasks] = at, number
            at += len(table)
            tables.append(table)
            asked.append((len(table), *_asked(variant.timed, int(written_back[variant.tasks[0]]))))
        times = np.concatenate(tables)
        rows = np.repeat(np.array(asked, np.int64).reshape(-1, 4), [rows for rows, *_ in asked], axis=0)
        part, hbm, l2 = (np.where(times > 0, rows[:, [i]], 0) for i in (1, 2, 3))
        demand = MemoryDemand(part.astype(np.uint8), hbm, l2)
    work = Work(
        members, blocks, first, times.astype(np.int64), graph.tasks["sync_start"] != 0,
        graph.tasks["early"] != 0, graph.edges["before"].astype(np.int64),
        graph.edges["after"].astype(np.int64), graph.edges["orchestrator"] != 0, _arguments(graph), demand, pages,
    )  # fmt: skip
    schedule = place(work, machine)
    path = critical_path(schedule)
    return WholeRun(graph, chip, machine, work, schedule, path, variants, variant_of, reused)


def _asked(timed: Timed, written_back: int) -> tuple[int, int, int]:
    """The part of its time that moves data, in eighths, and what each of its cores asks of HBM and of L2 a cycle."""
    cycles = max(1, sum(sum(block) for block in timed.times))
    part = round(PARTS * max((timed.busy.get(pipe, 0.0) for pipe in _MOVES), default=0.0))
    hbm = timed.hbm + written_back
    return min(PARTS, part), hbm * RATE // cycles, timed.l2 * RATE // cycles


def _arguments(graph: TaskGraph) -> NDArray[np.int64]:
    """Of each task, the tensors that are looked up (what it reads) and entered (what it writes)."""
    import numpy as np

    rows = graph.rows
    tensors = (
        (rows["scalar"] == 0) & ((rows["stage"] == 0) | (rows["role"] == _OUTPUT)) & (rows["block_idx"] == 0)
    )
    rows = rows[np.flatnonzero(tensors)]
    owner = np.searchsorted(graph.tasks["dispatch_id"], rows["dispatch_id"], side="right") - 1
    found = np.zeros(len(graph.tasks), np.int64)
    np.add.at(found, owner, np.where(rows["role"] == _INOUT, 2, 1))
    return found


def without(run: WholeRun, tasks: NDArray[Any]) -> int:
    """Cycles that the run would take if these tasks took none."""
    import numpy as np

    tasks = np.asarray(tasks)
    work = run.work
    blocks = work.blocks[tasks]
    rows = np.repeat(work.first_time[tasks], blocks) + (
        np.arange(int(blocks.sum())) - np.repeat(np.cumsum(blocks) - blocks, blocks)
    )
    times = work.times.copy()
    times[rows] = 0
    return place(replace(work, times=times), run.machine).total


def task_names(graph: TaskGraph) -> Sequence[str]:
    """A name for each task: its kernels, or what it is instead."""
    names = {k.func_id: k.name for k in graph.scene.kernels}
    found = {}
    words = []
    for ids in map(tuple, graph.tasks["func"].tolist()):
        if ids not in found:
            found[ids] = "+".join(names[f] for f in ids if f >= 0) or "(no kernel)"
        words.append(found[ids])
    return words


def replay_task(run: WholeRun, request: RunRequest, task: int, folder: Path) -> Path:
    """Writes the workspace of a task below `folder` and gives its Insight directory; times only, no numbers."""
    number = int(run.variant_of[task])
    if number < 0:
        raise RequestError(
            "every kernel of this run was run with its numbers: replay a task of a capture instead",
            hint="insight-trace replay SCENE --case C --func-id F --task-id T",
        )
    job = run.variants[number].job.job
    name = re.sub(r"[^A-Za-z0-9.-]+", "-", task_names(run.graph)[task])
    options = RunOptions(
        simulator="embedded", soc_version=request.chip, target=run.graph.target, preset=request.preset,
        timing_only=True, seconds=request.seconds,
    )  # fmt: skip
    place = folder / "dispatches" / f"{name}_{task}"
    graph = run.graph
    wanted = structs.replace(
        job, scene=graph.scene, case=graph.case, origin=f"task {task} of the run", name="", held=()
    )
    asked = ReplayRequest(request.scene, case=graph.case.name, options=options, output=place, force=True)
    done = replay_job(wanted, asked)
    assert done.directory is not None
    return done.directory
