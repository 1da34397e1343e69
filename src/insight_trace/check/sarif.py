"""Findings as SARIF 2.1.0, which editors and code hosts show."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from insight_trace import __version__
from insight_trace.finding import Finding

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def sarif(findings: Sequence[Finding], root: Path) -> dict[str, Any]:
    """One run with a result per finding; files below `root` are named from there."""
    rules = sorted({finding.category for finding in findings})
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "insight-trace",
                        "version": __version__,
                        "rules": [{"id": rule} for rule in rules],
                    }
                },
                "columnKind": "utf16CodeUnits",
                "results": [_result(finding, rules, root) for finding in findings],
            }
        ],
    }


def _result(finding: Finding, rules: Sequence[str], root: Path) -> dict[str, Any]:
    places = [place for place in finding.places if place.file]
    result: dict[str, Any] = {
        "ruleId": finding.category,
        "ruleIndex": rules.index(finding.category),
        "level": finding.severity.value,
        "message": {
            "text": f"{finding.message}. To fix it: {finding.fix}." if finding.fix else finding.message
        },
        "occurrenceCount": finding.count,
        "locations": [_location(places[-1].file, places[-1].line, root)] if places else [],
    }
    if len(places) > 1:
        result["relatedLocations"] = [
            _location(place.file, place.line, root) | {"id": number, "message": {"text": place.instruction}}
            for number, place in enumerate(places[:-1])
        ]
    return result


def _location(file: str, line: int, root: Path) -> dict[str, Any]:
    path = Path(file)
    try:
        uri = quote(path.resolve().relative_to(root.resolve()).as_posix())
    except ValueError:
        uri = path.resolve().as_uri() if path.is_absolute() else quote(path.as_posix())
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": max(1, line)}}}
