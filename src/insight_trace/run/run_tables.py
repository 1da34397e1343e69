"""What a run on a chip says: of its kernels, of its path, of its cores. Numbers first, text and JSON from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from insight_trace.results import Result
from insight_trace.run.critical_tasks import busy, longest_chain, shares
from insight_trace.run.whole_run import WholeRun, task_names, without

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from insight_trace.run.device_comparison import DeviceComparison

MOST_ASKED = 12  # kernels whose absence is worked out: each takes as long as placing all tasks again


@dataclass(frozen=True, slots=True)
class KernelRow:
    """One kernel, or the members of a mix, over the whole run."""

    name: str
    func_ids: tuple[int, ...]
    core_type: str
    dispatches: int
    distinct: int  # 0: every dispatch was run by itself
    least: int  # cycles of a dispatch
    median: int
    most: int
    work: int  # cycles of all its blocks and members together
    on_path: int  # cycles of the critical path
    bound: str  # the pipe with most to do, and how much of the time
    estimated: float | None  # share of its cycles that rests on estimates
    verified: str
    without: int | None  # cycles of the run if it took none; None: not asked
    slowest: int  # task


def kernel_rows(
    run: WholeRun, progress: Callable[[str], None] = lambda _step: None, most_asked: int = MOST_ASKED
) -> list[KernelRow]:
    """One row for each kernel or mix, the one with most of the path first."""
    import numpy as np

    work, tasks = run.work, run.graph.tasks
    names = np.array(task_names(run.graph))
    kernels = work.members > 0
    path = np.zeros(len(names), np.int64)
    for part in run.path:
        if part.what == "kernel":
            path[part.task] += part.cycles
    longest, summed = _cycles(run)
    rows = []
    for name in dict.fromkeys(names[kernels].tolist()):
        mine = np.flatnonzero((names == name) & kernels)
        cycles = longest[mine]
        slowest = int(mine[int(np.argmax(path[mine] if path[mine].any() else cycles))])
        variants = np.unique(run.variant_of[mine])
        variants = variants[variants >= 0]
        func_ids = tuple(f for f in tasks["func"][mine[0]].tolist() if f >= 0)
        members = [k for f in func_ids for k in run.graph.scene.kernels if k.func_id == f]
        rows.append(
            KernelRow(
                name, func_ids, "mix" if len(members) > 1 else str(members[0].core_type), len(mine), len(variants),
                int(cycles.min()), int(np.median(cycles)), int(cycles.max()), int(summed[mine].sum()),
                int(path[mine].sum()), *_bound(run, variants, mine), verified_text(run), None, slowest,
            )
        )  # fmt: skip
    rows.sort(key=lambda row: (-row.on_path, -row.work, row.name))
    asked = []
    for number, row in enumerate(rows):
        total = None
        if number < most_asked:
            progress(f"without {row.name}")
            total = without(run, np.flatnonzero((names == row.name) & kernels))
        asked.append(replace(row, without=total))
    return asked


def _cycles(run: WholeRun) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of every task: its longest block and member, and all of them together."""
    import numpy as np

    work = run.work
    if not len(work.times):
        nothing = np.zeros(len(work.members), np.int64)
        return nothing, nothing
    # tasks of one variant share their rows, so sums are taken over rows and looked up
    ends = np.concatenate((np.zeros((1, 3), np.int64), np.cumsum(work.times, 0)))
    summed = (ends[work.first_time + work.blocks] - ends[work.first_time]).sum(1)
    each = work.times.max(1)
    keys, inverse = np.unique(np.stack((work.first_time, work.blocks), 1), axis=0, return_inverse=True)
    most = np.array([int(each[first : first + count].max(initial=0)) for first, count in keys.tolist()])
    runs = work.members > 0
    return np.where(runs, most[inverse.reshape(-1)], 0), np.where(runs, summed, 0)


def _bound(run: WholeRun, variants: NDArray[Any], mine: NDArray[Any]) -> tuple[str, float | None]:
    """Of the variant that has most of the kernel's time."""
    import numpy as np

    if not len(variants):
        return "", None
    counts = [
        int((run.variant_of[mine] == v).sum()) * run.variants[v].timed.cycles for v in variants.tolist()
    ]
    timed = run.variants[int(variants[int(np.argmax(counts))])].timed
    text = f"{timed.bound} {timed.busy[timed.bound]:.0%}" if timed.bound else ""
    return text, timed.estimated


def verified_text(run: WholeRun) -> str:
    """Whether the numbers of the kernels are known to be right."""
    golden = run.graph.golden
    if not run.graph.ran:
        return "no"
    if golden is None or golden.verdict == "nothing compared":
        return "no golden"
    return "golden" if golden.passed else "golden differs"


def occupancy(run: WholeRun) -> dict[str, float]:
    """How much of the run cube cores, vector cores and schedulers work, in the mean."""
    import numpy as np

    total = max(run.total, 1)
    at_work, clusters = busy(run.schedule), run.machine.clusters
    spans = run.schedule.end - run.schedule.start
    schedulers = np.isin(run.schedule.kind, (1, 3))
    return {
        "cube": float(at_work[:clusters].mean()) / total,
        "vector": float(at_work[clusters:].mean()) / total,
        "schedulers": float(spans[schedulers].sum()) / run.machine.threads / total,
        "orchestrator": float(spans[run.schedule.kind == 0].sum()) / total,
    }


_SCHEDULING = ("submit", "dispatch", "complete", "start", "switch", "doorbell", "seen")


def bound_by(run: WholeRun, rows: Sequence[KernelRow]) -> str:
    """One sentence: what most of the critical path is spent on."""
    parts, total = shares(run.path), max(run.total, 1)
    scheduling = sum(parts.get(what, 0) for what in _SCHEDULING) / total
    kernels = parts.get("kernel", 0) / total
    if not rows:
        return ""
    if scheduling > kernels:
        dispatches = sum(row.dispatches for row in rows)
        each = _time(run, round(sum(row.work for row in rows) / max(dispatches, 1)))
        tasks = f"{dispatches:,} {'task' if dispatches == 1 else 'tasks'}"
        return (
            f"bound by scheduling: {scheduling:.0%} of the path hands out {tasks} of {each} in the mean; "
            f"kernels are {kernels:.0%} of it"
        )
    first = rows[0]
    return f"bound by {first.name}: {first.on_path / total:.0%} of the path, all kernels {kernels:.0%}"


def as_data(run: WholeRun, rows: list[KernelRow]) -> dict[str, Any]:
    """All of it, for `--json` and run.json."""
    graph = run.graph
    chain = longest_chain(run.work, run.schedule)
    return {
        "version": 1,
        "scene": str(graph.scene.path),
        "class": graph.scene.class_name,
        "case": graph.case.name,
        "chip": run.chip.name,
        "mhz": run.chip.mhz,
        "cycles": run.total,
        "micros": run.micros(run.total),
        "tasks": len(graph.tasks),
        "dispatches": sum(row.dispatches for row in rows),
        "distinct": len(run.variants),
        "timed_before": run.reused,
        "kernels_ran": graph.ran,
        "why_kernels_ran": graph.why_ran,
        "golden": None if graph.golden is None or not graph.golden.compared else graph.golden.passed,
        "machine": asdict(run.machine),
        "longest_chain": chain.cycles,
        "longest_chain_tasks": [f"0x{int(graph.tasks['id'][task]):016x}" for task in chain.tasks],
        "bound": bound_by(run, rows),
        "path": shares(run.path),
        "occupancy": occupancy(run),
        "kernels": [
            {
                **asdict(row),
                "func_ids": list(row.func_ids),
                "path_share": row.on_path / max(run.total, 1),
                "slowest_task_id": f"0x{int(graph.tasks['id'][row.slowest]):016x}",
            }
            for row in rows
        ],
    }


def text_lines(run: WholeRun, rows: Sequence[KernelRow]) -> list[str]:
    """As the command prints it."""
    graph, total = run.graph, max(run.total, 1)
    dispatches = sum(row.dispatches for row in rows)
    how = f"{len(run.variants):,} distinct" if not graph.ran else "every one run"
    how += f", {run.reused:,} known before" if run.reused else ""
    lines = [
        f"scene      {graph.scene.name} · {graph.case.name} · {dispatches:,} dispatches · {how}",
        f"chip       {run.chip.name} · {run.machine.clusters} cube and {2 * run.machine.clusters} vector cores · "
        f"{run.machine.threads} schedulers",
        f"run        {_time(run, run.total)} · {run.total:,} cycles at {run.chip.mhz:g} MHz",
    ]
    if graph.why_ran:
        lines.append(f"           every kernel was run: {graph.why_ran}")
    spent = sorted(shares(run.path).items(), key=lambda item: -item[1])
    bound = bound_by(run, rows)
    if bound:
        lines.append(f"bound      {bound.removeprefix('bound ')}")
    lines.append("path       " + " · ".join(f"{what} {cycles / total:.1%}" for what, cycles in spent))
    lines.append(
        f"           kernels that wait for each other alone: {_time(run, longest_chain(run.work, run.schedule).cycles)}"
    )
    lines.append("busy       " + " · ".join(f"{who} {share:.1%}" for who, share in occupancy(run).items()))
    width = max(6, *(len(row.name) for row in rows)) if rows else 6
    lines.append(
        f"           {'kernel':<{width}}  core  dispatches  distinct {'cycles: least':>14} {'median':>9} {'most':>9}"
        f"   path  {'bound':<11} verified   without it"
    )
    for row in rows:
        less = "" if row.without is None else f"{_time(run, row.without)} ({row.without / total - 1:+.1%})"
        lines.append(
            f"           {row.name:<{width}}  {row.core_type:<4} {row.dispatches:>11,} {row.distinct or '':>9}"
            f" {row.least:>14,} {row.median:>9,} {row.most:>9,} {row.on_path / total:>6.1%}  {row.bound:<11}"
            f" {row.verified:<10} {less}"
        )
    return lines


def _time(run: WholeRun, cycles: int) -> str:
    micros = run.micros(cycles)
    return f"{micros / 1000:,.3f} ms" if micros >= 1000 else f"{micros:,.2f} us"


@dataclass(frozen=True, eq=False, repr=False)
class RunResult(Result):
    """A case on a chip, and the folder that was written of it."""

    run: WholeRun
    rows: tuple[KernelRow, ...]
    directory: Path
    figures: Mapping[str, Any]  # what run.json holds
    measured: DeviceComparison | None = None  # what a device measured of the same case
    number: int = 0  # in the index of runs; 0: it is in none
    notes: tuple[str, ...] = ()
    assumed: Mapping[str, float] = field(default_factory=dict)

    @property
    def cycles(self) -> int:
        return self.run.total

    @property
    def micros(self) -> float:
        return self.run.micros(self.run.total)

    @property
    def slowest_task(self) -> int:
        """Which task to replay, -1 where there is none: the slowest measured, else the one with most of the path."""
        if self.measured is None:
            return self.rows[0].slowest if self.rows else -1
        known = {task_id: number for number, task_id in enumerate(self.run.graph.tasks["id"].tolist())}
        return next((known[task.task_id] for task in self.measured.tasks if task.task_id in known), -1)

    def summary(self) -> str:
        graph = self.run.graph
        took = f"{_time(self.run, self.cycles)} on {self.run.chip.name}"
        return f"{graph.scene.name} · {graph.case.name} · {took} · {self.directory}"

    def columns(self) -> Mapping[str, Any]:
        """One row per kernel or mix."""
        names = ("name", "core_type", "dispatches", "distinct", "least", "median", "most", "on_path", "bound")
        return {name: [getattr(row, name) for row in self.rows] for name in names}

    def data(self) -> dict[str, Any]:
        return {**self.figures, "directory": str(self.directory)}
