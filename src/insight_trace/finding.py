"""What the checker says about a kernel, and how people and scripts read it."""

from __future__ import annotations

import enum
from typing import Any

import msgspec
from msgspec import Struct


class Severity(enum.StrEnum):
    """How sure it is that something is wrong; the words are SARIF's."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Place(Struct, frozen=True):
    """An executed instruction, as a finding names it."""

    file: str
    line: int
    instruction: str
    pipe: str  # as kernels name it: MTE2, V, …
    core: str = ""
    row: int = -1  # of the recording
    python: str = ""  # the line of the user's program that it was generated from: model.py:41
    flag: tuple[str, str, str] | None = None  # of a set or a wait: from, to, event, as kernels name them


class Finding(Struct, frozen=True):
    """Something that the checker says about a kernel; a loop is one finding with a count."""

    category: str
    severity: Severity
    message: str
    fix: str = ""
    places: tuple[Place, ...] = ()  # in the order in which they were executed
    memory: str = ""
    begin: int = -1  # bytes that are concerned
    end: int = -1
    count: int = 1
    cycles: int | None = None  # what it costs, where that was measured

    @property
    def lines(self) -> tuple[int, ...]:
        return tuple(place.line for place in self.places)

    @property
    def cores(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(place.core for place in self.places))

    @property
    def pipes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(place.pipe for place in self.places))

    def __str__(self) -> str:
        return self.message


def finding_data(finding: Finding) -> dict[str, Any]:
    """A finding as JSON has it."""
    data: dict[str, Any] = msgspec.to_builtins(finding)
    return data


def finding_lines(finding: Finding, indent: str = "") -> list[str]:
    """A finding as a person reads it: what, and how to fix it."""
    times = f" ({finding.count} times)" if finding.count > 1 else ""
    lines = [f"{indent}{finding.severity} [{finding.category}] {finding.message}{times}"]
    if finding.fix:
        lines.append(f"{indent}  to fix it: {finding.fix}")
    return lines
