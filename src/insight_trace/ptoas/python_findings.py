"""Findings of generated kernels with the lines of the user's own program."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

from insight_trace.model import Finding
from insight_trace.ptoas.python_lines import PythonLine


def with_python_lines(
    findings: Sequence[Finding], lines: Mapping[str, Mapping[int, PythonLine]]
) -> tuple[Finding, ...]:
    """The same findings; a place in a generated file (by its path) says which Python line it comes from."""
    by_name = {Path(path).name: known for path, known in lines.items()}
    return tuple(_with_lines(finding, by_name) for finding in findings)


def _with_lines(finding: Finding, lines: Mapping[str, Mapping[int, PythonLine]]) -> Finding:
    places = []
    for place in finding.places:
        found = lines.get(Path(place.file).name, {}).get(place.line)
        places.append(dataclasses.replace(place, python=found.frame) if found else place)
    return dataclasses.replace(finding, places=tuple(places))
