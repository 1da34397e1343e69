"""The tasks of a case and who waits for whom, by running its orchestration alone: no kernel is run unless one must be."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from insight_trace.capture.arena import Arena
from insight_trace.capture.builds import build
from insight_trace.capture.golden import GoldenResult, compare, expected
from insight_trace.capture.session import (
    CaptureOptions,
    choose_case,
    host_sandbox_lines,
    job_lines,
    run_orchestrated,
    seed_all,
    target_of_case,
)
from insight_trace.errors import JobError, RequestError, next_step
from insight_trace.limits import RUN_FILE_BYTES
from insight_trace.model import Case, Scene
from insight_trace.outcome import Failure
from insight_trace.reading import read_regular
from insight_trace.scene.live import LiveTensor, load_scene_live
from insight_trace.simulate.embedded.job_files import job_directory
from insight_trace.simulate.embedded.memory import escape
from insight_trace.simulate.embedded.toolchain import KernelBuildError, Toolchain
from insight_trace.storage import scratch_directory

if TYPE_CHECKING:
    from numpy.typing import NDArray

# struct GraphTask and GraphEdge in capture/host/graph.hpp
_TASK_FIELDS = [
    ("id", "<u8"), ("cycles", "<i8"), ("func", "<i4", 3), ("dispatch_id", "<u4"), ("block_count", "<u4"), ("line", "<i4"),
    ("sync_start", "u1"), ("early", "u1"), ("skipped", "u1"), ("reserved", "u1", 5),
]  # fmt: skip
_EDGE_FIELDS = [("before", "<u4"), ("after", "<u4"), ("orchestrator", "<u4")]
_WRITTEN_OVER = "the run wrote over what the runner says of its tasks"


@dataclass(frozen=True, eq=False)
class TaskGraph:
    """What an orchestration submitted, in its order. `rows` are its arguments as capture/dump_rows.py has them."""

    scene: Scene
    case: Case
    target: str
    tasks: NDArray[Any]
    edges: NDArray[Any]
    rows: NDArray[Any]
    tensors: tuple[tuple[int, LiveTensor], ...]  # the scene's own, by address, as they were before the run
    ran: bool  # kernels were run: tasks have cycles
    why_ran: str = ""  # who asked for what a task computes
    golden: GoldenResult | None = None


def take_graph(
    path: Path,
    case: str | None,
    folder: Path,
    *,
    options: CaptureOptions,
    values: bool = False,
    why: str = "",
    without: Collection[str] = frozenset(),
    progress: Callable[[str], None] = lambda _step: None,
) -> TaskGraph:
    """Runs the orchestration; with `values`, or where it asks for what a task computes, with its kernels, none of which may
    be in `without` then.

    Arguments go to `folder`, which must stay as long as the graph is used.
    """
    options = replace(options, level=3)
    live = load_scene_live(path)
    chosen = choose_case(live, case, options.platform)
    target = target_of_case(chosen, options.platform)
    names = [kernel.name for kernel in live.scene.kernels]
    unknown = sorted(set(without).difference(names))
    if unknown:
        raise RequestError(f"the scene has no kernel {', '.join(unknown)}", hint=f"it has {', '.join(names)}")
    toolchain = Toolchain.find()
    progress("compile")
    try:
        builds = build(live.scene, target, toolchain, without)
    except KernelBuildError as error:
        told = _job_error(live.scene, chosen, error.failure)
        raise JobError(
            told.what, where=told.where, hint=f"{told.hint}; --assume KERNEL=US does without it"
        ) from None
    for run_kernels in (values, True):
        if run_kernels and without:
            reason = f"every kernel has to run ({why or '--values'})"
            raise RequestError(f"{reason}, and {', '.join(sorted(without))} cannot")
        seed_all(options.seed)
        args = live.generate_args(chosen)
        wanted = run_kernels and options.golden
        golden = expected(live, args, chosen, live.output_names(args)) if wanted else None
        found = live.arguments(args)
        tensors = [a for a in found if isinstance(a, LiveTensor)]
        arena = Arena(tensors)
        try:
            progress("run every kernel" if run_kernels else "submit")
            with job_directory() as job, scratch_directory(folder.resolve()) as place:
                lines = job_lines(live.scene, found, builds, target, options, 0)
                lines = [line for line in lines if run_kernels or not line.startswith("workers\t")]
                lines += [] if run_kernels else ["workers\t0", "hollow\t1"]
                lines += [
                    f"records\t{escape(str(place / 'rows'))}",
                    f"payload\t{escape(str(place / 'payload'))}",
                ]
                lines += [f"graph\t{escape(str(place / 'graph'))}", *arena.job_lines()]
                lines += host_sandbox_lines(options, job, place, toolchain)
                report = run_orchestrated(
                    live, found, job, builds, lines, arena, lambda: None, options.sandbox
                )
                failure = report.failure
                if failure and not run_kernels and failure.message.startswith("values: "):
                    why = f"{failure.message.removeprefix('values: ')} ({failure.where})"
                    continue
                if failure is not None:
                    raise _job_error(live.scene, chosen, failure)
                tasks, edges = _read_graph(place / "graph")
                shutil.move(place / "rows", folder / "rows")
            placed = tuple((address, tensor) for tensor, address in arena.placed())
            result = None
            if run_kernels:
                # content that steers a kernel is that of the beginning, so results are compared in a second set
                before = [tensor.array.copy() for tensor in tensors]
                arena.copy_back()
                if golden is not None:
                    result = compare(live, chosen.name, args, golden, live.output_names(args))
                for tensor, array in zip(tensors, before, strict=True):
                    tensor.array[...] = array
        finally:
            arena.close()
        from insight_trace.capture.dump_rows import read_rows, require_known

        rows = read_rows(folder / "rows")
        require_known(rows)
        return TaskGraph(
            live.scene,
            chosen,
            target,
            tasks,
            edges,
            rows,
            placed,
            run_kernels,
            why if run_kernels else "",
            result,
        )
    raise AssertionError("a run with values needs no other")


def _read_graph(path: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    import numpy as np

    task, edge = np.dtype(_TASK_FIELDS), np.dtype(_EDGE_FIELDS)
    content = read_regular(path, most=RUN_FILE_BYTES, follow=False)
    task_count, edge_count = np.frombuffer(content, "<u8", 2).tolist() if len(content) >= 16 else (0, 0)
    middle = 16 + task_count * task.itemsize
    if len(content) != middle + edge_count * edge.itemsize:
        raise JobError(_WRITTEN_OVER, hint=next_step("kernel"))
    tasks = np.frombuffer(content, task, task_count, 16)
    edges = np.frombuffer(content, edge, edge_count, middle)
    if edge_count and max(int(edges["before"].max()), int(edges["after"].max())) >= task_count:
        raise JobError(_WRITTEN_OVER, hint=next_step("kernel"))
    return tasks, edges


def _job_error(scene: Scene, case: Case, failure: Failure) -> JobError:
    return JobError(
        f"{scene.class_name} {case.name} does not run: {failure.message} [{failure.fault}]",
        where=failure.where,
        hint=next_step(failure.fault, failure.limit, failure.log),
    )
