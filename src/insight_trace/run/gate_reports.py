"""What a gate found, for those who run it: JUnit for build servers, SARIF for code hosts."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from insight_trace.check.sarif import sarif
from insight_trace.finding import Finding, Place, Severity
from insight_trace.limits import visible
from insight_trace.results import Result
from insight_trace.run.baseline import BaselineChange, CaseFigures

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
            f"{len(self.cases)} cases · {self.kernels} kernels · {self.worse} worse · {other} other changes"
        )

    def columns(self) -> Mapping[str, Any]:
        """One row per change."""
        names = ("case", "kernel", "what", "worse", "text")
        return {name: [getattr(change, name) for change in self.changes] for name in names}

    def data(self) -> dict[str, Any]:
        counts = {"cases": len(self.cases), "kernels": self.kernels, "threshold": self.threshold}
        changes = [dataclasses.asdict(change) for change in self.changes]
        return {**counts, "worse": self.worse, "changes": changes}
