"""What the recording beside a trace says of its run: findings, checks, names of tiles, estimates."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from insight_trace.errors import InputError
from insight_trace.limits import JSON_BYTES
from insight_trace.model import Trace
from insight_trace.reading import load_json
from insight_trace.recording.frames import user_frames
from insight_trace.recording.store import HEADER, beside
from insight_trace.report.page_rows import PageRows

_ORDER = {"error": 0, "warning": 1, "note": 2}


def recorded_facts(path: Path | None) -> Mapping[str, Any]:
    """The header of the recording at or beside a trace; empty where there is none that can be read."""
    if path is None:
        return {}
    places = (path, beside(path), beside(path.parent))
    header = next((place / HEADER for place in places if (place / HEADER).is_file()), None)
    try:
        facts = load_json(header, most=JSON_BYTES) if header else {}
    except InputError:
        return {}
    return facts if isinstance(facts, dict) else {}


def part(facts: Mapping[str, Any], *keys: str) -> Any:
    """A value inside of the header; None where it is not there."""
    value: Any = facts
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def rows_of(value: Any) -> list[Mapping[str, Any]]:
    """The entries of a list that are objects; a header may hold anything."""
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def estimates(facts: Mapping[str, Any]) -> dict[str, Any] | None:
    """The share of the time that rests on estimated numbers, and these; None where nobody knows."""
    found = part(facts, "about", "estimates")
    share = part(found, "share") if isinstance(found, Mapping) else None
    if not isinstance(share, int | float):
        return None
    numbers = rows_of(part(found, "numbers"))
    keys = {"parameter": str, "source": str, "instructions": int, "cycles": int}
    good = [one for one in numbers if all(isinstance(one.get(key), kind) for key, kind in keys.items())]
    return {"share": share, "numbers": good}


def shown_findings(trace: Trace, facts: Mapping[str, Any], rows: PageRows) -> list[dict[str, Any]]:
    """Findings, worst first, each place with the row of the page that shows it."""
    found = rows_of(part(facts, "findings"))
    found.sort(key=lambda finding: _ORDER.get(str(finding.get("severity")), 3))
    by_site = _SiteRows(trace, rows) if found else None
    shown = []
    for finding in found:
        kept = {
            key: finding.get(key)
            for key in (
                "category",
                "severity",
                "message",
                "fix",
                "memory",
                "begin",
                "end",
                "count",
                "cycles",
            )
        }
        places = rows_of(finding.get("places"))
        shown.append({**kept, "places": [_place(trace, place, rows, by_site) for place in places]})
    return shown


def _place(
    trace: Trace, place: Mapping[str, Any], rows: PageRows, by_site: _SiteRows | None
) -> dict[str, Any]:
    row = place.get("row")
    found = rows.nearest(trace, row) if isinstance(row, int) and row >= 0 else -1
    frame = f"{place.get('file')}:{place.get('line')}" if place.get("file") else ""
    if found < 0 and by_site is not None:
        found = by_site.row(frame, str(place.get("instruction")), str(place.get("core") or ""))
    columns = trace.instructions
    exact = isinstance(row, int) and 0 <= row < len(columns)
    at = row if exact else rows.rows[found] if found >= 0 else -1
    return {
        "row": found,
        "start": int(columns.start[at] - columns.start.min()) if found >= 0 else 0,
        "what": str(place.get("instruction") or ""),
        "pipe": str(place.get("pipe") or ""),
        "core": str(place.get("core") or ""),
        "frame": frame,
    }


class _SiteRows:
    """The first execution of a line, for findings that are about a place in the source and no single row."""

    def __init__(self, trace: Trace, rows: PageRows) -> None:
        self._trace, self._rows = trace, rows
        self._frames = user_frames(trace.instructions.stacks)

    def row(self, frame: str, name: str, core: str) -> int:
        import numpy as np

        columns = self._trace.instructions
        stacks = [index for index, one in enumerate(self._frames) if one == frame]
        if not frame or not stacks:
            return -1
        here = np.isin(columns.stack, stacks)
        if core in columns.cores:
            here &= columns.core == columns.cores.index(core)
        named = here & (columns.name == columns.names.index(name)) if name in columns.names else here
        chosen = np.flatnonzero(named if named.any() else here)
        return self._rows.nearest(self._trace, int(chosen[0])) if len(chosen) else -1
