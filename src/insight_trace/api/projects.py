"""Keep figures, and set up: baselines, chips from measurements, runs that were made, the machine, a first kernel."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from insight_trace.api import PathName, as_path
from insight_trace.errors import RequestError
from insight_trace.results import Progress, silent, steps_of

if TYPE_CHECKING:
    from insight_trace.demo import Demo
    from insight_trace.doctor import MachinePart
    from insight_trace.run.baseline import GateResult
    from insight_trace.run.calibration import Calibration
    from insight_trace.run.run_store import RunStore


def gate(
    baseline: PathName,
    subjects: Sequence[str] = (),
    *,
    update: bool = False,
    threshold: float | None = None,
    chip: str | None = None,
    jobs: int | None = None,
    cluster: str | None = None,
    junit: PathName | None = None,
    sarif: PathName | None = None,
    progress: Progress = silent,
) -> GateResult:
    """Cases, SCENE::CASE or those of the baseline, against a committed baseline: cycles, verdicts, findings.

    `update` writes the figures of now into the baseline; `junit` and `sarif` are files to write.
    """
    import json

    from insight_trace.executor import open_executor
    from insight_trace.run.baseline import (
        Baseline,
        GateResult,
        differences,
        junit_text,
        measure,
        read_baseline,
        require_share,
        sarif_of,
        subjects_of,
        update_baseline,
    )
    from insight_trace.scratch import scratch_folder
    from insight_trace.storage import require_reports, write_whole

    require_reports(*(None if given is None else Path(given) for given in (sarif, junit)))
    if threshold is not None:
        require_share(threshold, "--threshold")
    file = Path(baseline)
    kept = Baseline(()) if update and not file.exists() else read_baseline(file)
    root = file.resolve().parent
    wanted = subjects_of(subjects, chip, kept, root)
    if not wanted:
        raise RequestError("no case to look at", hint="insight-trace gate BASELINE SCENE::CASE --update")
    now, findings = [], []
    with contextlib.closing(open_executor(jobs, cluster)) as executor:
        for subject in wanted:
            with scratch_folder("gate") as folder:
                figures, found = measure(subject, root, executor, folder, steps_of(progress))
            now.append(figures)
            findings += found
    asked = {(case.name, case.chip) for case in now}
    before = [case for case in kept.cases if not subjects or (case.name, case.chip) in asked]
    limit = threshold if threshold is not None else kept.threshold
    changes = differences(before, now, limit)
    if junit is not None:
        write_whole(Path(junit), junit_text(now, changes), force=True)
    if sarif is not None:
        write_whole(Path(sarif), json.dumps(sarif_of(changes, findings, root), indent=1) + "\n", force=True)
    if update:
        update_baseline(file, kept.cases, now, threshold, replace_all=not subjects)
    return GateResult(tuple(now), tuple(changes), tuple(findings), limit)


def calibrate(
    scene: PathName,
    dump_dir: PathName,
    *,
    case: str | None = None,
    pmu: Sequence[PathName] = (),
    swimlane: PathName | None = None,
    soc_version: str | None = None,
    target: str = "a2a3",
    output: PathName | None = None,
    progress: Callable[[int], None] = lambda _runs: None,
) -> Calibration:
    """A chip's numbers from what a device measured of a run; written to `output` where something could be fitted."""
    from insight_trace.run.calibration import calibrate as fitted
    from insight_trace.run.calibration import recorded_tasks
    from insight_trace.run.measured import read_pmu, read_swimlane
    from insight_trace.run.overlay import write_overlay

    if not pmu and swimlane is None:
        raise RequestError("nothing to calibrate with", hint="give --pmu, --swimlane or both")
    files = [*map(Path, pmu), *([Path(swimlane)] if swimlane is not None else [])]
    measured = [
        *(row for path in pmu for row in read_pmu(Path(path))),
        *(read_swimlane(Path(swimlane)) if swimlane is not None else ()),
    ]
    tasks = recorded_tasks(Path(scene), Path(dump_dir), case, {m.task_id for m in measured})
    named = " and ".join(path.name for path in files)
    source = f"calibrated from {named}: {len(measured)} measurements of {len(tasks)} kinds of tasks"
    place = as_path(output)
    name = place.stem if place else "Calibrated"
    done = fitted(tasks, measured, soc_version, target, source, name, progress)
    if place is not None and done.result.fitted:
        write_overlay(place, done.overlay)
    return done


def runs(index: PathName | None = None) -> RunStore:
    """The runs that `run` made: list, show, compare, forget."""
    from insight_trace.run.run_store import RunStore, default_index

    return RunStore(Path(index) if index is not None else default_index())


def demo(output: PathName = "outputs/demo", *, progress: Progress = silent) -> Demo:
    """The whole way on the bundled paged attention."""
    from insight_trace.demo import run_demo

    return run_demo(Path(output), steps_of(progress))


def doctor(ptoas_bin: PathName | None = None) -> Sequence[MachinePart]:
    """What this machine has: compiler, CANN, msprof, ptoas, and what follows."""
    from insight_trace.doctor import examine

    return examine(as_path(ptoas_bin))


def new(name: str, output: PathName | None = None) -> tuple[Path, Path]:
    """A kernel and a scene that run, to begin with; both files."""
    import importlib.resources
    import re

    from insight_trace.storage import whole_directory

    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise RequestError(
            f"'{name}' is no name for a kernel", hint="use letters, digits and _, and begin with a letter"
        )
    folder = Path(name if output is None else output)
    if folder.exists():
        raise RequestError(
            f"{folder} is there already", hint="choose another name, or another folder with -o"
        )
    words = {
        "NAME": name,
        "CLASS": "".join(part.capitalize() for part in name.split("_") if part) or "Scene",
        "KERNEL": name.upper(),
    }
    files = importlib.resources.files("insight_trace").joinpath("starter")
    kernel = files.joinpath("kernel.cpp").read_text("utf-8")
    scene = re.sub(
        "|".join(words), lambda found: words[found[0]], files.joinpath("scene.txt").read_text("utf-8")
    )
    folder.absolute().parent.mkdir(parents=True, exist_ok=True)
    with whole_directory(folder) as made:
        (made / f"{name}.cpp").write_text(kernel, encoding="utf-8")
        (made / "scene.py").write_text(scene, encoding="utf-8")
    return folder / f"{name}.cpp", folder / "scene.py"
