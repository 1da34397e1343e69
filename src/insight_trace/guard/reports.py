"""How a difference reads: one table, worst first, with a sentence for each kernel; JUnit and SARIF for build servers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from insight_trace.check.sarif import sarif
from insight_trace.finding import Finding, Place, Severity
from insight_trace.guard.difference import Cause, Difference, Grade, KernelDifference
from insight_trace.limits import cut, visible
from insight_trace.results import text_table
from insight_trace.run.baseline import BaselineChange, junit_of

_LEVELS = {Grade.ERROR: Severity.ERROR, Grade.WARNING: Severity.WARNING, Grade.SLOWER: Severity.WARNING}
_QUIET = (Grade.SAME, Grade.CHANGED)


def table(difference: Difference, *, everything: bool = False) -> list[str]:
    """Figures of each kernel, then a sentence for each; kernels that are the same are counted unless all are asked for."""
    shown = [one for one in difference.kernels if everything or one.grade not in _QUIET]
    lines = [f"note       {note}" for note in difference.notes]
    if shown:
        head = ("grade", "kernel", "cycles A", "B", "instr. A", "B", "bytes A", "B", "UB/L1 A", "B")
        lines += [*text_table(head, [_row(one) for one in shown], left=(0, 1)), ""]
        for one in shown:
            lines.append(f"{one.grade:<10} {visible(one.sentence, '')}")
            fix = next((cause.fix for cause in one.causes if cause.fix), "")
            if fix:
                lines.append(f"{'':<10} to fix it: {fix}")
    lines.append(f"{'total':<10} {difference.summary}")
    return lines


def _row(one: KernelDifference) -> tuple[str, ...]:
    name = one.name if one.name == one.name_b or not one.name_b else f"{one.name or '-'} → {one.name_b}"
    sides = (one.a, one.b)
    return (
        str(one.grade),
        cut(name),
        *("-" if side is None else f"{side.cycles:,} ({side.low:,}..{side.high:,})" for side in sides),
        *("-" if side is None else f"{side.instructions:,}" for side in sides),
        *("-" if side is None else f"{side.bytes_moved:,}" for side in sides),
        *("-" if side is None else f"{side.memory.get('UB', side.memory.get('L1', 0)):,}" for side in sides),
    )


def junit(difference: Difference) -> str:
    """A test for each kernel; one with a new error has failed."""
    changes = [
        BaselineChange(difference.b, one.name_b or one.name, str(one.grade), one.sentence, True)
        for one in difference.errors
    ]
    names = {difference.b: [one.name_b or one.name for one in difference.kernels]}
    return junit_of("insight-trace diff", names, changes)


def sarif_of(difference: Difference, root: Path) -> dict[str, Any]:
    """Errors, warnings and what is slower, at the lines of the second build."""
    return sarif(
        [
            _finding(one, cause)
            for one in difference.kernels
            for cause in one.causes
            if cause.grade in _LEVELS
        ],
        root,
    )


def _finding(one: KernelDifference, cause: Cause) -> Finding:
    data = f" (with {cause.data})" if cause.data else ""
    places = (Place(cause.file, cause.line, "", ""),) if cause.file else ()
    return Finding(
        f"diff-{cause.kind}",
        _LEVELS[cause.grade],
        f"{one.name_b or one.name}: {cause.text}{data}",
        cause.fix,
        places,
    )
