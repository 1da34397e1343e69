"""A comparison as aligned text and as plain data."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from insight_trace.recording.frames import short_frame
from insight_trace.results import text_table
from insight_trace.trace.compare import Comparison, TraceChange

_ROWS = 12


def _percent(change: TraceChange) -> str:
    if change.before == change.after:
        return "="
    return f"{100 * change.delta / change.before:+.1f} %" if change.before else "new"


def _row(change: TraceChange) -> tuple[str, ...]:
    counts = f"{change.count_before:,}"
    if change.count_before != change.count_after:
        counts += f" → {change.count_after:,}"
    return (
        change.what,
        change.where,
        f"{change.before:,}",
        f"{change.after:,}",
        f"{change.delta:+,}",
        _percent(change),
        counts,
    )


def _part(title: str, changes: tuple[TraceChange, ...], where: str) -> list[str]:
    shown = [change for change in changes if change.before or change.after][:_ROWS]
    if not shown:
        return []
    head = (title, where, "before", "after", "change", "", "executed")
    return ["", *text_table(head, [_row(change) for change in shown], frozenset((0, 1)))]


def comparison_text(result: Comparison) -> str:
    """The answer first: faster or slower, and by how much."""
    total = result.total
    verdict = "the same" if total.before == total.after else "faster" if total.delta < 0 else "slower"
    ratio = f" · {total.before / total.after:.2f}×" if total.after and total.before else ""
    lines = [f"total      {total.before:,} → {total.after:,} cycles · {verdict} {_percent(total)}{ratio}"]
    if result.reason:
        lines.append(f"because    {result.reason}")
    matches = result.matches
    lines.append(
        f"matched    {len(matches.before):,} instructions · {len(matches.added):,} added · "
        f"{len(matches.removed):,} removed · {int(matches.moved.sum()):,} moved"
    )
    fidelity = result.fidelity
    if fidelity.instructions:
        r = "-" if math.isnan(fidelity.correlation) else f"{fidelity.correlation:.3f}"
        error = 100 * fidelity.mean_error
        lines.append(f"fidelity   mean difference of an instruction {error:.1f} % · correlation {r}")
    lines += [f"note       {note}" for note in result.notes]
    lines += _place_lines(result)
    lines += _part("pipe", result.pipes, "core")
    lines += _part(
        "instruction",
        tuple(c for c in result.instructions if c.delta or c.count_before != c.count_after),
        "pipe",
    )
    lines += _part("line", tuple(c for c in result.lines if c.delta), "")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _place_lines(result: Comparison) -> list[str]:
    """The first few instructions that came, went or moved."""
    lines = []
    for word, places in (("added", result.added), ("removed", result.removed), ("moved", result.moved)):
        for index, place in enumerate(places[:3]):
            where = f", {short_frame(place.frame)}" if place.frame else ""
            head = word if index == 0 else ""
            lines.append(f"{head:<10} {place.name} on {place.pipe} of {place.core} at {place.start:,}{where}")
    return lines


def comparison_data(result: Comparison) -> dict[str, Any]:
    """For `--json`: plain values only."""

    def plain(change: TraceChange) -> dict[str, Any]:
        return {**asdict(change), "delta": change.delta}

    matches = result.matches
    fidelity = asdict(result.fidelity)
    return {
        "total": plain(result.total),
        "pipes": [plain(change) for change in result.pipes],
        "instructions": [plain(change) for change in result.instructions],
        "lines": [plain(change) for change in result.lines],
        "matched": len(matches.before),
        "added": len(matches.added),
        "removed": len(matches.removed),
        "moved": int(matches.moved.sum()),
        "places": {
            "added": [asdict(place) for place in result.added],
            "removed": [asdict(place) for place in result.removed],
            "moved": [asdict(place) for place in result.moved],
        },
        "fidelity": {key: None if value != value else value for key, value in fidelity.items()},
        "notes": list(result.notes),
        "reason": result.reason,
        "sources": [asdict(diff) for diff in result.sources],
    }
