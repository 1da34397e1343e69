"""From a task of a run to its own Insight directory."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

from insight_trace.errors import RequestError
from insight_trace.replay.gathering import Gathered
from insight_trace.replay.replaying import replay_gathered
from insight_trace.replay.request import ReplayRequest
from insight_trace.replay.selection import Selection
from insight_trace.run.timing_job import arguments_of
from insight_trace.run.whole_run import RunRequest, WholeRun, task_names


def replay_task(run: WholeRun, request: RunRequest, task: int, folder: Path) -> Path:
    """Writes the workspace of a task below `folder` and gives its Insight directory; times only, no numbers."""
    number = int(run.variant_of[task])
    if number < 0:
        raise RequestError(
            "every kernel of this run was run with its numbers: replay a task of a capture instead",
            hint="insight-trace replay SCENE --case C --func-id F --task-id T",
        )
    job = run.variants[number].job
    name = re.sub(r"[^A-Za-z0-9.-]+", "-", task_names(run.graph)[task])
    replay = ReplayRequest(
        request.scene, case=run.graph.case.name, soc_version=request.chip, target=run.graph.target,
        preset=request.preset, timing_only=True, seconds=request.seconds, simulator="embedded",
        output=folder / "dispatches" / f"{name}_{task}", force=True,
        func_ids=tuple(k.func_id for k in job.kernels if k.func_id is not None),
    )  # fmt: skip
    arguments = arguments_of(dataclasses.replace(job, computes=False))
    selection = Selection(run.graph.scene, run.graph.case, job.kernels)
    done = replay_gathered(replay, selection, Gathered(arguments, f"task {task} of the run"))
    assert done.directory is not None
    return done.directory
