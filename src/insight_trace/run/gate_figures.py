"""The figures of a case that a gate looks at: exact cycles, the golden's verdict, what the checker says."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from insight_trace.capture.session import CaptureOptions, run_capture
from insight_trace.errors import JobError
from insight_trace.executor import Executor
from insight_trace.finding import Finding
from insight_trace.options import RunOptions
from insight_trace.replay.examine import examine
from insight_trace.replay.request import ReplayRequest
from insight_trace.run.baseline import Baseline, CaseFigures, KernelFigures
from insight_trace.run.run_tables import kernel_rows
from insight_trace.run.whole_run import RunRequest, run_case
from insight_trace.scratch import scratch_folder


@dataclass(frozen=True, slots=True)
class Subject:
    """A case to measure."""

    scene: Path
    case: str | None
    chip: str | None = None


def subjects_of(words: Sequence[str], chip: str | None, baseline: Baseline, root: Path) -> list[Subject]:
    """What SCENE::CASE words name; without any, the cases of the baseline in the folder `root`."""
    if not words:
        return [Subject(root / case.scene, case.case, case.chip) for case in baseline.cases]
    found = []
    for text in words:
        scene, _, case = text.rpartition("::") if "::" in text else (text, "", "")
        found.append(Subject(Path(scene), case or None, chip))
    return found


def measure(
    subject: Subject,
    root: Path,
    executor: Executor,
    folder: Path,
    progress: Callable[[str], None] = lambda _step: None,
) -> tuple[CaseFigures, list[Finding]]:
    """Figures of a case, and what the checker found; paths are relative to `root`, the baseline's folder."""
    progress(f"{subject.scene.name}: time")
    run = run_case(RunRequest(subject.scene, subject.case, subject.chip), folder, executor, progress)
    case = run.graph.case
    progress(f"{subject.scene.name}: run, and compare with its golden")
    with scratch_folder("gate") as dumped:
        dump = dumped / "dump"
        platform = next((p for p in case.platforms if p.removesuffix("sim") == run.graph.target), None)
        done = run_capture(subject.scene, case.name, dump, CaptureOptions(platform=platform))
        if done.failure is not None:
            raise JobError(
                f"{subject.scene} {case.name} does not run: {done.failure}", where=done.failure.where
            )
        rows = kernel_rows(run, most_asked=0)
        examined = []
        for row in rows:
            progress(f"{subject.scene.name}: check {row.name}")
            ids = tuple(dict.fromkeys(row.func_ids))
            request = ReplayRequest(
                subject.scene,
                case=case.name,
                func_ids=ids,
                dump_dir=dump,
                options=RunOptions(soc_version=subject.chip, target=run.graph.target),
            )
            examined += [(row.name, one) for one in examine(request)]
    golden = done.golden
    found: dict[str, Counter[str]] = {}
    findings: list[Finding] = []
    for name, one in examined:
        counts = found.setdefault(name, Counter())
        if one.failure is not None:
            counts["error failure"] += 1
        for finding in one.findings:
            counts[f"{finding.severity.value} {finding.category}"] += 1
        findings += one.findings
    sources = {k.func_id: k.source for k in run.graph.scene.kernels}
    kernels = {
        row.name: KernelFigures(
            row.dispatches, row.work, row.most, _relative(sources[row.func_ids[0]], root),
            dict(sorted(found.get(row.name, Counter()).items())),
        )
        for row in rows
    }  # fmt: skip
    verdict = "none" if golden is None or golden.verdict == "nothing compared" else golden.verdict
    figures = CaseFigures(
        _relative(subject.scene, root),
        case.name,
        run.chip.name,
        run.total,
        verdict,
        dict(sorted(kernels.items())),
    )
    return figures, findings


def _relative(path: Path, root: Path) -> str:
    return Path(os.path.relpath(path.resolve(), root.resolve())).as_posix()
