"""Advice out of what the checker found: synchronisation that orders nothing, with the cycles it costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from insight_trace.recording.frames import short_frame
from insight_trace.recording.kinds import BARRIER
from insight_trace.trace.advice import WORTH_SAYING
from insight_trace.trace.bottleneck import Advice
from insight_trace.trace.stats import Stats


def idle_sync(findings: Sequence[Mapping[str, Any]], figures: Stats) -> tuple[Advice, ...]:
    """`findings` as a recording keeps them; the dearest first, and none that costs next to nothing."""
    whole = max((core.cycles for core in figures.cores), default=0)
    found = []
    for finding in findings:
        cycles, places = finding.get("cycles"), finding.get("places") or ()
        if finding.get("category") != "redundant-sync" or not cycles or not places:
            continue
        frames = [f"{place['file']}:{place['line']}" for place in places]
        where = ", ".join(dict.fromkeys(map(short_frame, frames)))
        what = "the barrier" if places[0]["instruction"] == BARRIER else "the flag"
        text = f"{what} at {where} orders nothing for these inputs and costs {cycles:,} cycles"
        if cycles >= WORTH_SAYING * whole:
            found.append(Advice("sync", text, int(cycles), frames[0]))
    return tuple(sorted(found, key=lambda advice: (-advice.saves, advice.text)))
