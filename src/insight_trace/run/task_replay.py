"""From a task of a run to its own Insight directory."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec.structs import replace

from insight_trace.errors import RequestError
from insight_trace.options import RunOptions
from insight_trace.replay.jobs import ReplayRequest
from insight_trace.replay.replaying import replay_job
from insight_trace.run.whole_run import RunRequest, WholeRun, task_names


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
    wanted = replace(
        job, scene=graph.scene, case=graph.case, origin=f"task {task} of the run", name="", held=()
    )
    asked = ReplayRequest(request.scene, case=graph.case.name, options=options, output=place, force=True)
    done = replay_job(wanted, asked)
    assert done.directory is not None
    return done.directory
