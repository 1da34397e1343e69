"""What a team holds its kernels to: figures of cases in one committed file, and what differs from them now."""

from __future__ import annotations

import dataclasses
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import msgspec

from insight_trace.capture.session import CaptureOptions, run_capture
from insight_trace.check.sarif import sarif
from insight_trace.errors import InputError, JobError, RequestError
from insight_trace.executor import Executor
from insight_trace.finding import Finding, Place, Severity
from insight_trace.limits import RECORD_BYTES, visible
from insight_trace.options import RunOptions
from insight_trace.reading import prepared, read_regular
from insight_trace.replay.examine import examine
from insight_trace.replay.jobs import ReplayRequest
from insight_trace.results import Result
from insight_trace.run.run_tables import kernel_rows
from insight_trace.run.whole_run import RunRequest, run_case
from insight_trace.scratch import scratch_folder
from insight_trace.storage import locked, write_whole

VERSION = 1
THRESHOLD = 0.01  # a kernel may become this much slower, relative


@dataclass(frozen=True, slots=True)
class KernelFigures:
    """One kernel, or the members of a mix, in one case."""

    dispatches: int
    cycles: int  # of all its dispatches together
    most: int  # of the slowest
    source: str = ""  # relative to the baseline, for reports
    findings: dict[str, int] = field(default_factory=dict)  # "error race" -> how many


@dataclass(frozen=True, slots=True)
class CaseFigures:
    """One case on one chip."""

    scene: str  # relative to the baseline
    case: str
    chip: str
    cycles: int  # of the whole run
    verdict: str  # of its golden: passed, failed, or none
    kernels: dict[str, KernelFigures]

    @property
    def name(self) -> str:
        return f"{self.scene}::{self.case}"


@dataclass(frozen=True, slots=True)
class Baseline:
    cases: tuple[CaseFigures, ...]
    threshold: float = THRESHOLD
    version: int = VERSION


@dataclass(frozen=True, slots=True)
class BaselineChange:
    """Something that is not as the baseline has it."""

    case: str
    kernel: str  # "": the case as a whole
    what: str  # slower, faster, finding, fixed, verdict, dispatches, new, gone
    text: str
    worse: bool
    source: str = ""


def require_share(threshold: float, name: str) -> None:
    if not 0 <= threshold < 10:
        raise RequestError(f"{name} {threshold}: a share such as 0.02 for 2 % is wanted")


def read_baseline(path: Path) -> Baseline:
    try:
        found = msgspec.json.decode(read_regular(path, most=RECORD_BYTES), type=prepared(Baseline))
    except FileNotFoundError:
        raise RequestError(
            f"there is no baseline {path} yet",
            hint="`insight-trace gate BASELINE SCENE::CASE --update` makes one",
        ) from None
    except OSError as error:
        raise InputError(f"the baseline cannot be read: {error.strerror}", where=str(path)) from None
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InputError(
            f"this is no baseline: {error}", where=str(path), hint="name another file: --update makes it"
        ) from None
    if found.version != VERSION:
        raise InputError(
            f"a baseline of version {found.version}, known is {VERSION}",
            where=str(path),
            hint="make it again with --update",
        )
    require_share(found.threshold, f"{path}: threshold")
    return found


def write_baseline(path: Path, baseline: Baseline) -> None:
    """The same figures give the same bytes, a line for each kernel, so that a review shows what changed."""
    content = msgspec.to_builtins(baseline)
    lines = [
        "{",
        f' "version": {baseline.version},',
        f' "threshold": {json.dumps(baseline.threshold)},',
        ' "cases": [',
    ]
    for number, case in enumerate(content["cases"]):
        kernels = case.pop("kernels")
        lines.append("  {")
        lines += [f"   {json.dumps(key)}: {json.dumps(value)}," for key, value in case.items()]
        lines.append('   "kernels": {')
        rows = [
            f"    {json.dumps(name)}: {json.dumps(kernels[name], sort_keys=True)}" for name in sorted(kernels)
        ]
        lines.append(",\n".join(rows))
        lines.append("   }")
        lines.append("  }" + ("," if number + 1 < len(content["cases"]) else ""))
    lines += [" ]", "}"]
    write_whole(path, "\n".join(lines) + "\n", force=True)


def update_baseline(
    path: Path,
    known: Sequence[CaseFigures],
    now: Sequence[CaseFigures],
    threshold: float | None,
    *,
    replace_all: bool,
) -> None:
    """Takes the figures of now. Others may do the same at once: what they wrote since `known` was read stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path.parent):
        there = read_baseline(path) if path.exists() else Baseline(())
        replaced = {(case.name, case.chip) for case in (*now, *(known if replace_all else ()))}
        kept = [case for case in there.cases if (case.name, case.chip) not in replaced]
        cases = sorted([*kept, *now], key=lambda case: (case.name, case.chip))
        write_baseline(path, Baseline(tuple(cases), there.threshold if threshold is None else threshold))


def differences(
    baseline: Sequence[CaseFigures], now: Sequence[CaseFigures], threshold: float
) -> list[BaselineChange]:
    """Every change, the worse ones first; cases are matched by scene, case and chip."""
    before = {(case.name, case.chip): case for case in baseline}
    after = {(case.name, case.chip): case for case in now}
    found: list[BaselineChange] = []
    for key, case in after.items():
        if key in before:
            found += _case(before[key], case, threshold)
        else:
            text = f"{case.name} on {case.chip} is not in the baseline"
            found.append(BaselineChange(case.name, "", "new", text, False))
    found += [
        BaselineChange(case.name, "", "gone", f"{case.name} on {case.chip} was not run", True)
        for key, case in before.items()
        if key not in after
    ]
    return sorted(found, key=lambda change: not change.worse)


def _case(before: CaseFigures, now: CaseFigures, threshold: float) -> Iterator[BaselineChange]:
    if before.verdict != now.verdict:
        text = f"golden: {before.verdict} before, {now.verdict} now"
        yield BaselineChange(now.name, "", "verdict", text, now.verdict != "passed")
    for name, kernel in now.kernels.items():
        if name not in before.kernels:
            yield BaselineChange(
                now.name, name, "new", f"{name} is not in the baseline", False, kernel.source
            )
            continue
        for what, text, worse in _kernel(before.kernels[name], kernel, threshold):
            yield BaselineChange(now.name, name, what, f"{name}: {text}", worse, kernel.source)
    for name, kernel in before.kernels.items():
        if name not in now.kernels:
            yield BaselineChange(
                now.name, name, "gone", f"{name} is not dispatched any more", True, kernel.source
            )


def _kernel(before: KernelFigures, now: KernelFigures, threshold: float) -> Iterator[tuple[str, str, bool]]:
    """What changed in a kernel, in words, and whether it is worse."""
    if before.dispatches != now.dispatches:
        text = f"{before.dispatches:,} dispatches before, {now.dispatches:,} now"
        yield "dispatches", text, now.dispatches > before.dispatches
    figures = (("all dispatches", before.cycles, now.cycles), ("the slowest", before.most, now.most))
    for what, old, new in figures:
        if old != new:
            change = new / old - 1 if old else float("inf")
            text = f"{what} {old:,} cycles before, {new:,} now ({change:+.2%})"
            yield "slower" if new > old else "faster", text, change > threshold
    for kind in sorted({*before.findings, *now.findings}):
        old, new = before.findings.get(kind, 0), now.findings.get(kind, 0)
        if old != new:
            worse = new > old and not kind.startswith("note ")
            yield "finding" if new > old else "fixed", f"{kind}: {old} before, {new} now", worse


# --- the figures of a case that a gate looks at: exact cycles, the golden's verdict, what the checker says


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


# --- what a gate found, for those who run it: JUnit for build servers, SARIF for code hosts


_WHOLE = "(the case)"


def junit_text(cases: Sequence[CaseFigures], changes: Sequence[BaselineChange]) -> str:
    """A suite for each case, a test for each of its kernels and for the case itself; what is worse is a failure."""
    worse = [change for change in changes if change.worse]
    return junit_of("insight-trace gate", {case.name: ["", *case.kernels] for case in cases}, worse)


def junit_of(title: str, names: dict[str, list[str]], worse: Sequence[BaselineChange]) -> str:
    """Tests by their suites; each that a change names has failed."""
    for change in worse:  # what is gone has a test, too
        known = names.setdefault(change.case, [""])
        if change.kernel not in known:
            known.append(change.kernel)
    lines = ['<?xml version="1.0" encoding="UTF-8"?>']
    total, failed = sum(map(len, names.values())), len({(c.case, c.kernel) for c in worse})
    lines.append(f'<testsuites name="{title}" tests="{total}" failures="{failed}">')
    for case, kernels in names.items():
        mine = [change for change in worse if change.case == case]
        count = len({change.kernel for change in mine})
        lines.append(f' <testsuite name={quoteattr(case)} tests="{len(kernels)}" failures="{count}">')
        for kernel in kernels:
            said = [change for change in mine if change.kernel == kernel]
            opening = f"  <testcase classname={quoteattr(case)} name={quoteattr(kernel or _WHOLE)}"
            if not said:
                lines.append(opening + "/>")
                continue
            text = "\n".join(change.text for change in said)
            lines.append(opening + ">")
            lines.append(
                f"   <failure message={quoteattr(said[0].text)} type={quoteattr(said[0].what)}>{escape(text)}</failure>"
            )
            lines.append("  </testcase>")
        lines.append(" </testsuite>")
    lines.append("</testsuites>")
    return visible("\n".join(lines)) + "\n"  # XML has no control characters


def sarif_of(changes: Sequence[BaselineChange], findings: Sequence[Finding], root: Path) -> dict[str, Any]:
    """What is worse, at the kernels that it is about, beside what the checker says of them."""
    about = [
        Finding(
            f"gate-{change.what}",
            Severity.ERROR,
            change.text,
            "see what changed in the kernel, or accept it with `insight-trace gate BASELINE --update`",
            (Place(str(root / change.source), 1, "", ""),) if change.source else (),
        )
        for change in changes
        if change.worse and change.what != "finding"
    ]
    return sarif([*about, *findings], root)


@dataclass(frozen=True, eq=False, repr=False)
class GateResult(Result):
    """What differs from a baseline."""

    cases: tuple[CaseFigures, ...]
    changes: tuple[BaselineChange, ...]
    findings: tuple[Finding, ...]
    threshold: float

    @property
    def worse(self) -> int:
        return sum(change.worse for change in self.changes)

    @property
    def kernels(self) -> int:
        return sum(len(case.kernels) for case in self.cases)

    def summary(self) -> str:
        other = len(self.changes) - self.worse
        return (
            f"{len(self.cases)} {'case' if len(self.cases) == 1 else 'cases'} · "
            f"{self.kernels} {'kernel' if self.kernels == 1 else 'kernels'} · {self.worse} worse · "
            f"{other} other {'change' if other == 1 else 'changes'}"
        )

    def columns(self) -> Mapping[str, Any]:
        """One row per change."""
        names = ("case", "kernel", "what", "worse", "text")
        return {name: [getattr(change, name) for change in self.changes] for name in names}

    def data(self) -> dict[str, Any]:
        counts = {"cases": len(self.cases), "kernels": self.kernels, "threshold": self.threshold}
        changes = [dataclasses.asdict(change) for change in self.changes]
        return {**counts, "worse": self.worse, "changes": changes}
