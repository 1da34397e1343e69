"""The dispatches of a dump as tasks to simulate: one for each kernel and form of arguments."""

from __future__ import annotations

from pathlib import Path

from insight_trace.dump.load import load_dump
from insight_trace.model import Dispatch, Role, TensorArg
from insight_trace.options import RunOptions
from insight_trace.replay.jobs import job_of
from insight_trace.replay.request import ReplayRequest
from insight_trace.run.calibration import Task
from insight_trace.scene.static import load_scene


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
