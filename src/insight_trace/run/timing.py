"""How long every task of a run takes: each distinct dispatch is simulated once, wherever jobs are run."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from insight_trace.arguments.slots import (
    CallerArray,
    Content,
    ReplayArguments,
    ReplayScalar,
    ReplaySlot,
    Zero,
    make_tensor,
)
from insight_trace.capture.task_graph import TaskGraph
from insight_trace.chips import Chip, load_chip
from insight_trace.digest import job_digest
from insight_trace.dtypes import DTYPES
from insight_trace.errors import JobError
from insight_trace.executor import Executor, required, run_named
from insight_trace.executor.journal import Journal
from insight_trace.job import Job
from insight_trace.model import Kernel, Pipe, Role, Tier
from insight_trace.options import RunOptions
from insight_trace.outcome import Simulation
from insight_trace.recording.busy import prologues
from insight_trace.run.calibration import core_times
from insight_trace.run.measured import TOTAL
from insight_trace.run.pages import Loaded, PageTable, TaskPages, loaded_of, task_pages
from insight_trace.simulate.embedded.embedded_simulator import EmbeddedSimulator
from insight_trace.simulate.embedded.estimates import estimate_share
from insight_trace.simulate.embedded.memory import BASE
from insight_trace.simulate.embedded.toolchain import Toolchain

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class NeedsValuesError(Exception):
    """A kernel is steered by what another one computes."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A distinct dispatch: its job, what it took, and the tasks (places in Dispatches.tasks) that are the same."""

    job: TimingJob
    timed: Timed
    tasks: NDArray[np.int64]


@dataclass(slots=True)
class _Form:
    pending: NDArray[np.int64]
    given: frozenset[int] = frozenset()
    computes: bool = False


def time_all(
    dispatches: Dispatches,
    executor: Executor,
    journal: Journal[Timed],
    progress: Callable[[int, int], None] = lambda _done, _all: None,
    assumed: Mapping[str, int] = MappingProxyType({}),
) -> list[Variant]:
    """Every task in exactly one variant. `progress` gets how many jobs are done and how many are known to be needed.

    `assumed` has the cycles of kernels that are not simulated, by name."""
    toolchain = Toolchain.find()
    forms, found = _without_assumed([_Form(group) for group in dispatches.forms()], dispatches, assumed)
    done = 0
    while forms:
        jobs = [dispatches.job(int(form.pending[0]), form.given, computes=form.computes) for form in forms]
        named = [(digest(job, toolchain), job) for job in jobs]
        progress(done, done + len(jobs))
        results = run_named(executor, run_timing_job, named, Timed, journal, lambda timed: not timed.failure)
        for place, timed in required(results):
            _take(forms[place], jobs[place], timed, dispatches, found)
            done += 1
            progress(done, done + sum(len(form.pending) > 0 for form in forms))
        forms = [form for form in forms if len(form.pending)]
    return sorted(found, key=lambda variant: int(variant.tasks[0]))


def _without_assumed(
    forms: list[_Form], dispatches: Dispatches, assumed: Mapping[str, int]
) -> tuple[list[_Form], list[Variant]]:
    """The forms to be timed, and those of kernels whose time is given: a mix takes what the longest such member does."""
    left: list[_Form] = []
    found: list[Variant] = []
    for form in forms:
        kernels = dispatches.members(int(form.pending[0]))
        given = [assumed[kernel.name] for kernel in kernels if kernel.name in assumed]
        if not given:
            left.append(form)
            continue
        job = dispatches.job(int(form.pending[0]))
        times = ((max(given),) * len(kernels),) * job.job.arguments.block_count
        found.append(Variant(job, Timed(max(given), times, {}, 1.0, 0), form.pending))
    return left, found


def _take(form: _Form, job: TimingJob, timed: Timed, dispatches: Dispatches, found: list[Variant]) -> None:
    """Takes the tasks that this result is of out of the form, or notes what its job lacked."""
    import numpy as np

    if timed.failure:
        raise JobError(f"{job.job.name} cannot be timed: {timed.failure}")
    first = int(form.pending[0])
    inputs = frozenset(t.slot for t in job.job.arguments.tensors if t.role != Role.OUTPUT)
    looked = inputs if timed.looks_on_chip else frozenset(timed.reads) & inputs
    content = {t.slot for t in job.job.arguments.tensors if not isinstance(t.content, Zero)}
    try:
        dispatches.steered_by(first, looked)
    except KeyError as slot:
        raise NeedsValuesError(f"{job.job.name} looks at slot {slot}, which another kernel writes") from None
    if looked - content or (timed.looks_on_chip and not job.computes):
        form.given, form.computes = form.given | looked, timed.looks_on_chip
        return
    mine = dispatches.steered_by(first, looked)
    same = np.array([not looked or dispatches.steered_by(int(p), looked) == mine for p in form.pending], bool)
    found.append(Variant(job, timed, form.pending[same]))
    form.pending = form.pending[~same]


# --- one dispatch to time, and what came of it


_VERSION = 3  # of what a result holds
_SLOT = "slot "  # how a simulation names the buffers of its arguments


class TimingJob(Struct, frozen=True, eq=False):
    """A dispatch on a chip."""

    job: Job
    options: RunOptions

    @property
    def computes(self) -> bool:
        """With its arithmetic, because it looks at what it has loaded."""
        return not self.options.timing_only


@dataclass(frozen=True, slots=True)
class Timed:
    """What a job took."""

    cycles: int
    times: tuple[tuple[int, ...], ...]  # by block, cycles of each of its kernels
    busy: dict[str, float]  # pipe -> share of the time of the core that is busiest with it
    estimated: float  # share of the cycles that rests on estimates
    instructions: int
    reads: tuple[int, ...] = ()  # slots whose content the scalar unit looked at
    looks_on_chip: bool = False  # it looked at what it had loaded, too
    failure: str = ""
    hbm: int = 0  # bytes that came from HBM or went back to it
    l2: int = 0  # bytes asked of L2
    loaded: tuple[tuple[Loaded, ...], ...] = ()  # by core, in the order of blocks and members
    # "aic" or "aiv" -> pipe -> share of the time of such a core, as its counters give it: with the prologue
    counted: dict[str, dict[str, float]] = field(default_factory=dict)

    @property
    def bound(self) -> str:
        """The pipe that has most to do."""
        return max(self.busy, key=lambda pipe: self.busy[pipe]) if self.busy else ""


def digest(job: TimingJob, toolchain: Toolchain) -> str:
    """The job's name among kept results; "" for one that has none, and is always run."""
    return job_digest(job.job, job.options, toolchain, _VERSION)


def run_timing_job(job: TimingJob) -> Timed:
    """Simulates the dispatch. What goes wrong is in `failure`."""
    run = EmbeddedSimulator(job.options).run(job.job).simulation
    assert run is not None
    if run.failure is not None or run.launch is None:
        return Timed(0, (), {}, 0.0, 0, failure=str(run.failure or "it has no times"))
    spans = [end - start for start, end in zip(run.launch.starts, run.launch.ends, strict=True)]
    wide = len(job.job.kernels)
    reads, on_chip = looked_at(run)
    chip = load_chip(job.options.soc_version, target=job.job.target, preset=job.options.preset)
    cores = core_times(run)
    return Timed(
        cycles=max(run.launch.ends, default=0),
        times=tuple(tuple(spans[i : i + wide]) for i in range(0, len(spans), wide)),
        busy=_busy(run, cores),
        estimated=estimate_share(run, chip).share,
        instructions=len(run.instructions),
        reads=reads,
        looks_on_chip=on_chip,
        hbm=run.memory.fetched + run.memory.written_back if run.memory else 0,
        l2=run.memory.asked if run.memory else 0,
        loaded=loaded_of(run),
        counted={
            kind: {
                pipe: round(busy / max(times[TOTAL], 1.0), 4) for pipe, busy in times.items() if pipe != TOTAL
            }
            for kind, times in cores.items()
        },
    )


def _busy(run: Simulation, times: dict[str, dict[str, float]]) -> dict[str, float]:
    """Of each pipe, the larger share of its kinds of cores; of the scalar unit without the prologue."""
    found: dict[str, float] = {}
    columns = run.instructions
    prologue = prologues(columns)
    for kind, cycles in times.items():
        total = max(cycles[TOTAL], 1.0)
        cores = [
            number for number, name in enumerate(columns.cores) if ("cubecore" in name) == (kind == "aic")
        ]
        before = sum(prologue[number] for number in cores) / len(cores)
        for pipe, busy in cycles.items():
            if pipe != TOTAL:
                busy = max(0.0, busy - before) if pipe == Pipe.SCALAR.name else busy
                found[pipe] = max(found.get(pipe, 0.0), round(busy / total, 4))
    return found


def looked_at(run: Simulation) -> tuple[tuple[int, ...], bool]:
    """The slots whose content scalar loads saw, and whether one looked into the core's own memories."""
    import numpy as np

    columns = run.instructions
    if columns.operands is None or not len(columns):
        return (), False
    loads = np.array([name.startswith("LD_") for name in columns.names] or [False], bool)
    places: Any = columns.operands.value[loads[columns.name]]
    outside = places >= BASE
    found = set()
    for name, address, _, padded in run.regions:
        if name.startswith(_SLOT) and bool(((places >= address) & (places < address + padded)).any()):
            found.add(int(name.removeprefix(_SLOT)))
    return tuple(sorted(found)), bool((~outside).any())


# --- the dispatches of a run that do the same work: same kernels, geometry, scalars, state of L2, and content that steers


_LANES = range(3)  # the members that a block may have
_ALIGNED = 512  # bytes: where a view begins within such a piece is all of its address that times depend on
_ROLES = tuple(Role)
_OUTPUT = _ROLES.index(Role.OUTPUT)
_INPUT = _ROLES.index(Role.INPUT)
_MOST_CONTENT = 64 << 20  # bytes of an argument that are given without being asked for


class Dispatches:
    """The arguments of every task that runs a kernel, a row each, and which of them have one form."""

    def __init__(self, graph: TaskGraph, options: RunOptions, l2_bytes: int = 0) -> None:
        import numpy as np

        self.graph, self.l2_bytes = graph, l2_bytes
        # of the host's cores the others run other dispatches
        self.options = replace(options, l2="trace", host_cores=1)
        runs = (graph.tasks["func"] >= 0).any(1) & (graph.tasks["skipped"] == 0)
        self.tasks: NDArray[np.int64] = np.flatnonzero(runs)
        rows = graph.rows
        taken = (rows["stage"] == 0) | (rows["role"] == _OUTPUT) & (rows["scalar"] == 0)
        rows = rows[np.flatnonzero(taken)]
        starts = graph.tasks["dispatch_id"][self.tasks]
        owner = np.searchsorted(starts, rows["dispatch_id"], side="right") - 1
        order = np.lexsort((rows["arg_index"], owner))
        self.rows, self.owner = rows[order], owner[order]
        self.first = np.searchsorted(self.owner, np.arange(len(self.tasks) + 1))
        sizes = np.array([d.size for d in DTYPES], np.int64)[self.rows["dtype"]]
        self.offset = self.rows["start_offset"].astype(np.int64) * sizes  # bytes
        self.begin = self.rows["pointer"].astype(np.int64) + self.offset
        tensor = self.rows["scalar"] == 0
        shape = np.where(np.arange(5) < self.rows["ndims"][:, None], self.rows["shape"], 1).astype(np.int64)
        self.whole = np.where(tensor, shape.prod(1) * sizes, 0)  # bytes of the view
        self.moved = self.whole.copy()  # of them, what goes through L2
        self.state, self.since = self._in_l2()
        self.made_by_tasks = self._made()
        self._contents: dict[tuple[Any, ...], bytes] = {}
        self.kernels = {k.func_id: k for k in graph.scene.kernels}

    def forms(self) -> list[NDArray[np.int64]]:
        """Groups of tasks (places in `tasks`) that are alike but for the content of their arguments."""
        import numpy as np

        rows = self.rows
        tensor = rows["scalar"] == 0
        columns = [
            rows["arg_index"], rows["role"], rows["scalar"], rows["dtype"], rows["ndims"], *rows["shape"].T,
            *rows["strides"].T, np.where(tensor, 0, rows["value"]), np.where(tensor, self.offset % _ALIGNED, 0),
            np.where(tensor, self.state, 0), self._shared(),
        ]  # fmt: skip
        mixed = [_mixed(columns, seed) for seed in (1, 2)]
        starts = self.first[:-1]
        sums = [np.add.reduceat(m, np.minimum(starts, len(m) - 1)) if len(m) else starts * 0 for m in mixed]
        empty = self.first[1:] == starts
        for column in sums:
            column[empty] = 0
        tasks = self.graph.tasks[self.tasks]
        keys = np.stack([*sums, *tasks["func"].T, tasks["block_count"]], 1).astype(np.uint64)
        _, form = np.unique(keys, axis=0, return_inverse=True)
        form = form.reshape(-1)
        order = np.argsort(form, kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(form[order])) + 1) if len(order) else []
        return sorted(groups, key=lambda group: int(group[0]))

    def _shared(self) -> NDArray[np.int64]:
        """For each tensor the lowest slot of its task with the same buffer."""
        import numpy as np

        order = np.lexsort((np.arange(len(self.rows)), self.rows["pointer"], self.owner))
        same = np.zeros(len(order), bool)
        a, b = order[:-1], order[1:]
        tensor = self.rows["scalar"] == 0
        same[1:] = (self.owner[a] == self.owner[b]) & (self.rows["pointer"][a] == self.rows["pointer"][b])
        same[1:] &= tensor[a] & tensor[b]
        heads = np.maximum.accumulate(np.where(same, 0, np.arange(len(order))))
        found = np.zeros(len(order), np.int64)
        found[order] = self.rows["arg_index"][order[heads]] if len(order) else 0
        return found

    def _in_l2(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """0: not there, 1: read before, 2: written before; and the row that used it last.

        A view is in L2 if no more than its capacity went through since the last task that used it began. Of a view that
        a task takes a part of, another task may have had another part: whole views count then.
        """
        import numpy as np

        before = self._earlier()
        partly = self.moved < self.whole
        moved, whole = np.cumsum(self.moved), np.cumsum(self.whole)
        since = np.where(partly, whole - whole[before], moved - moved[before])
        near = (before >= 0) & (since <= self.l2_bytes)
        state = np.where(near, np.where(self.rows["role"][before] == _INPUT, 1, 2), 0)
        return state, np.where(near, before, -1)

    def _earlier(self) -> NDArray[np.int64]:
        """Of each view the row of the last task that used it; -1: none."""
        import numpy as np

        tensor = self.rows["scalar"] == 0
        order = np.lexsort((np.arange(len(self.rows)), self.begin, ~tensor))
        before = np.full(len(self.rows), -1, np.int64)
        a, b = order[:-1], order[1:]
        again = tensor[a] & tensor[b] & (self.begin[a] == self.begin[b]) & (self.owner[a] != self.owner[b])
        before[b[again]] = a[again]
        return before

    def learn(self, variants: Sequence[Variant]) -> bool:
        """Takes it that inputs move what kernels loaded of them, not their whole views; whether L2 holds others then."""
        import numpy as np

        for variant in variants:
            place = int(variant.tasks[0])
            loaded: dict[int, int] = defaultdict(int)
            for slot, begin, end in chain.from_iterable(variant.timed.loaded):
                loaded[slot] += end - begin
            for slot, size in loaded.items():
                row = self.row_of_slot(place, slot)
                if self.rows["role"][row] == _INPUT:
                    rows = self.first[variant.tasks] + row - int(self.first[place])
                    self.moved[rows] = np.minimum(self.moved[rows], size)
        before = self.state
        self.state, self.since = self._in_l2()
        return bool((before != self.state).any())

    def written_back(self) -> NDArray[np.int64]:
        """Of each task (place in `tasks`), bytes that it writes and that leave L2 before they are written again.

        Where a run moves more than L2 holds, lines that the run before it left leave it, too.
        """
        import numpy as np

        moved, before = np.cumsum(self.moved), self._earlier()
        writes = (self.rows["scalar"] == 0) & (self.rows["role"] != _INPUT)
        kept = np.zeros(len(writes), bool)
        again = (before >= 0) & writes & (moved - moved[before] <= self.l2_bytes)
        kept[before[again]] = True
        leaves = writes & ~kept & (len(moved) > 0 and int(moved[-1]) > self.l2_bytes)
        return np.bincount(self.owner[leaves], self.moved[leaves], len(self.tasks)).astype(np.int64)

    def _made(self) -> NDArray[np.bool_]:
        """Whether a row's content is what tasks of this run have written, or is the runtime's memory."""
        import numpy as np

        rows = self.rows
        made = np.ones(len(rows), bool)
        writes = (rows["role"] != _INPUT) & (rows["scalar"] == 0)
        for address, tensor in self.graph.tensors:
            inside = (rows["pointer"] >= address) & (rows["pointer"] < address + max(tensor.array.nbytes, 1))
            writers = self.owner[inside & writes]
            first = int(writers.min()) if len(writers) else len(self.tasks)
            made[inside] = self.owner[inside] > first
        return made

    # --- one task

    def rows_of(self, place: int) -> range:
        return range(int(self.first[place]), int(self.first[place + 1]))

    def members(self, place: int) -> tuple[Kernel, ...]:
        ids = self.graph.tasks["func"][self.tasks[place]].tolist()
        return tuple(self.kernels[func_id] for func_id in ids if func_id >= 0)

    def job(self, place: int, given: frozenset[int] = frozenset(), *, computes: bool = False) -> TimingJob:
        """The job that times the task; whole numbers of the scene's go with it, and the slots in `given`."""
        import numpy as np

        slots: list[ReplaySlot] = []
        held = []
        owners: dict[int, int] = {}
        for row in self.rows_of(place):
            data = self.rows[row]
            dtype = DTYPES[int(data["dtype"])]
            slot = int(data["arg_index"])
            if data["scalar"]:
                slots.append(ReplayScalar(slot, dtype, int(data["value"]), Tier.EXACT, origin="submitted"))
                continue
            dims, role = int(data["ndims"]), _ROLES[int(data["role"])]
            shape = tuple(data["shape"][:dims].tolist())
            owner = owners.setdefault(int(data["pointer"]), slot)
            wanted = slot in given or (not dtype.is_float and _bytes(data, dtype.size) <= _MOST_CONTENT)
            content: Content = Zero()
            tier, origin = Tier.OUTPUT if role == Role.OUTPUT else Tier.SYNTHETIC, "not looked at: zero"
            if wanted and role != Role.OUTPUT and not self.made_by_tasks[row]:
                array = np.frombuffer(self.content(row), dtype.numpy).reshape(shape)
                content, tier, origin = CallerArray(array), Tier.EXACT, "the scene's"
            made = make_tensor(
                slot, dtype, shape, content, tier, strides=tuple(data["strides"][:dims].tolist()),
                start_offset=self._start(place, row) // dtype.size, role=role, origin=origin,
            )  # fmt: skip
            slots.append(made if owner == slot else replace(made, shares=owner))
            if self.state[row]:
                held.append((int(self.since[row]), slot, bool(self.state[row] == 2)))
        kernels = self.members(place)
        slots.sort(key=lambda one: isinstance(one, ReplayScalar))
        arguments = ReplayArguments(tuple(slots), int(self.graph.tasks["block_count"][self.tasks[place]]))
        job = Job(
            kernels, arguments, self.graph.target, name="+".join(kernel.name for kernel in kernels),
            held=tuple((slot, dirty) for _, slot, dirty in sorted(held)),
        )  # fmt: skip
        return TimingJob(job, replace(self.options, timing_only=not computes))

    def _start(self, place: int, row: int) -> int:
        """Where a view begins in its buffer of the job, in bytes; the same for all that have a buffer for themselves."""
        shared = any(
            r != row and self.rows[r]["pointer"] == self.rows[row]["pointer"] and not self.rows[r]["scalar"]
            for r in self.rows_of(place)
        )
        return int(self.offset[row]) if shared else int(self.offset[row]) % _ALIGNED

    def pages(self, variants: Sequence[Variant], chip: Chip) -> TaskPages:
        """What every kernel loads from, numbered by task of the run, block and member."""
        import numpy as np

        blocks = self.graph.tasks["block_count"].astype(np.int64)
        before = np.cumsum(blocks) - blocks
        table = PageTable(chip, [(address, tensor.array.nbytes) for address, tensor in self.graph.tensors])
        kernels, pages = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for variant in variants:
            place = int(variant.tasks[0])
            wide = len(variant.job.job.kernels)
            lanes = np.flatnonzero(self.graph.tasks["func"][self.tasks[place]] >= 0)
            tasks = before[self.tasks[variant.tasks]]
            for core, ranges in enumerate(variant.timed.loaded):
                number = (tasks + core // wide) * len(_LANES) + int(lanes[core % wide])
                for slot, begin, end in ranges:
                    row = self.row_of_slot(place, slot)
                    view = self.begin[self.first[variant.tasks] + row - int(self.first[place])]
                    start = view - self._start(place, row)
                    found = table.between(number, start + begin, start + end)
                    kernels.append(found[0])
                    pages.append(found[1])
        kernel, page = np.concatenate(kernels), np.concatenate(pages)
        return task_pages(kernel, page, int(blocks.sum()) * len(_LANES))

    def content(self, row: int) -> bytes:
        """The view's elements, row by row, of a tensor of the scene's."""
        import numpy as np

        data = self.rows[row]
        dtype = DTYPES[int(data["dtype"])]
        dims = int(data["ndims"])
        shape, strides = tuple(data["shape"][:dims].tolist()), tuple(data["strides"][:dims].tolist())
        key = (int(self.begin[row]), dtype.name, shape, strides)
        if key not in self._contents:
            address, tensor = next(
                (a, t) for a, t in self.graph.tensors if a <= data["pointer"] < a + max(t.array.nbytes, 1)
            )
            flat = (
                np.ascontiguousarray(tensor.array)
                .reshape(-1)
                .view(np.uint8)[int(self.begin[row]) - address :]
            )
            steps = tuple(stride * dtype.size for stride in strides)
            seen = np.ndarray(shape, dtype.numpy, flat, 0, steps) if shape else flat[: dtype.size]
            self._contents[key] = np.ascontiguousarray(seen).tobytes()
        return self._contents[key]

    def row_of_slot(self, place: int, slot: int) -> int:
        return next(
            r for r in self.rows_of(place) if self.rows["arg_index"][r] == slot and not self.rows["scalar"][r]
        )

    def steered_by(self, place: int, slots: frozenset[int]) -> str:
        """What the task has in these slots, as one word to compare. KeyError names a slot that a task writes."""
        parts = []
        for slot in sorted(slots):
            row = self.row_of_slot(place, slot)
            if self.made_by_tasks[row]:
                raise KeyError(slot)
            parts.append(hashlib.sha256(self.content(row)).hexdigest())
        return " ".join(parts)


def _bytes(row: Any, size: int) -> int:
    total = size
    for extent in row["shape"][: int(row["ndims"])].tolist():
        total *= extent
    return total


def _mixed(columns: list[NDArray[Any]], seed: int) -> NDArray[np.uint64]:
    """A number for each row; equal rows have equal ones, and sums of them tell sets of rows apart (splitmix64)."""
    import numpy as np

    found = np.full(len(columns[0]), seed, np.uint64)
    with np.errstate(over="ignore"):
        for column in columns:
            x = (found ^ column.astype(np.uint64)) + np.uint64(0x9E3779B97F4A7C15)
            x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            found = x ^ (x >> np.uint64(31))
    return found
