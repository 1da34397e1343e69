"""What a team holds its kernels to: figures of cases in one committed file, and what differs from them now."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from insight_trace.errors import InputError, RequestError
from insight_trace.limits import RECORD_BYTES
from insight_trace.reading import read_regular
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


def read_baseline(path: Path) -> Baseline:
    try:
        found = msgspec.json.decode(read_regular(path, most=RECORD_BYTES), type=Baseline)
    except FileNotFoundError:
        raise RequestError(
            f"there is no baseline {path} yet",
            hint="`insight-trace gate BASELINE SCENE::CASE --update` makes one",
        ) from None
    except OSError as error:
        raise InputError(f"the baseline cannot be read: {error.strerror}", where=str(path)) from None
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InputError(f"this is no baseline: {error}", where=str(path)) from None
    if found.version != VERSION:
        raise InputError(
            f"a baseline of version {found.version}, known is {VERSION}",
            where=str(path),
            hint="make it again with --update",
        )
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
    found = []
    for key, case in after.items():
        if key in before:
            found += _case(before[key], case, threshold)
        else:
            found.append(
                BaselineChange(
                    case.name, "", "new", f"{case.name} on {case.chip} is not in the baseline", False
                )
            )
    found += [
        BaselineChange(case.name, "", "gone", f"{case.name} on {case.chip} was not run", True)
        for key, case in before.items()
        if key not in after
    ]
    return sorted(found, key=lambda change: not change.worse)


def _case(before: CaseFigures, now: CaseFigures, threshold: float) -> list[BaselineChange]:
    found = []
    if before.verdict != now.verdict:
        worse = now.verdict != "passed"
        found.append(
            BaselineChange(
                now.name, "", "verdict", f"golden: {before.verdict} before, {now.verdict} now", worse
            )
        )
    for name, kernel in now.kernels.items():
        if name in before.kernels:
            found += _kernel(now.name, name, before.kernels[name], kernel, threshold)
        else:
            found.append(
                BaselineChange(now.name, name, "new", f"{name} is not in the baseline", False, kernel.source)
            )
    for name, kernel in before.kernels.items():
        if name not in now.kernels:
            found.append(
                BaselineChange(
                    now.name, name, "gone", f"{name} is not dispatched any more", True, kernel.source
                )
            )
    return found


def _kernel(
    case: str, name: str, before: KernelFigures, now: KernelFigures, threshold: float
) -> list[BaselineChange]:
    found = []
    if before.dispatches != now.dispatches:
        text = f"{name}: {before.dispatches:,} dispatches before, {now.dispatches:,} now"
        found.append(
            BaselineChange(case, name, "dispatches", text, now.dispatches > before.dispatches, now.source)
        )
    for what, old, new in (
        ("all dispatches", before.cycles, now.cycles),
        ("the slowest", before.most, now.most),
    ):
        if old == new:
            continue
        change = new / old - 1 if old else float("inf")
        text = f"{name}: {what} {old:,} cycles before, {new:,} now ({change:+.2%})"
        found.append(
            BaselineChange(
                case, name, "slower" if new > old else "faster", text, change > threshold, now.source
            )
        )
    for kind in sorted({*before.findings, *now.findings}):
        old, new = before.findings.get(kind, 0), now.findings.get(kind, 0)
        if old != new:
            text = f"{name}: {kind}: {old} before, {new} now"
            worse = new > old and not kind.startswith("note ")
            found.append(
                BaselineChange(case, name, "finding" if new > old else "fixed", text, worse, now.source)
            )
    return found
