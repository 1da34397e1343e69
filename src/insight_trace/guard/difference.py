"""What differs between two builds: plain data, from the judged pair of kernels up to the whole table."""

from __future__ import annotations

import enum
from typing import Any

import msgspec
from msgspec import Struct

from insight_trace.finding import Finding


class Grade(enum.StrEnum):
    """What a difference means, worst first."""

    ERROR = "error"  # the second build has an error that the first has not
    WARNING = "warning"
    SLOWER = "slower"
    UNJUDGED = "not judged"
    GONE = "gone"  # a kernel of the first build without a counterpart
    NEW = "new"
    FIXED = "fixed"  # an error of the first build is gone
    FASTER = "faster"
    CHANGED = "changed"  # other code, same values, findings and cycles
    SAME = "same"  # the same code but for names, comments and layout


WORST_FIRST = tuple(Grade)


class Figures(Struct, frozen=True):
    """One kernel of one build on the data of the pair."""

    cycles: int
    low: int  # `low` to `high`: the 90 % interval of cycles on a chip
    high: int
    instructions: int
    bytes_moved: int  # to and from global memory
    memory: dict[str, int]  # UB, L1, …: bytes that tiles lie on
    findings: dict[str, int]  # "error race" -> how many


class Sites(Struct, frozen=True):
    """Synchronisation of one kind between the same pipes: how many lines execute it, and which came or went."""

    what: str  # set_flag V→MTE3, wait_flag V→MTE3, pipe_barrier ALL
    a: int
    b: int
    lost: tuple[int, ...] = ()  # lines of the first build
    gained: tuple[int, ...] = ()  # lines of the second

    @property
    def text(self) -> str:
        parts = []
        if self.lost:
            parts.append(f"−{self.what} (A line {_numbers(self.lost)})")
        if self.gained:
            parts.append(f"+{self.what} (B line {_numbers(self.gained)})")
        return " ".join(parts)


class Cause(Struct, frozen=True):
    """One thing that is wrong, slower or otherwise not as it was."""

    kind: str  # failure, values, rounding, signature, slower, or the category of a finding
    grade: Grade
    text: str
    file: str = ""  # of the second build
    line: int = 0
    fix: str = ""
    data: str = ""  # which data show it, where it is not the pair's own: "n = 0"
    finding: Finding | None = None


class KernelDifference(Struct, frozen=True):
    """One kernel of both builds, or of one that the other lacks."""

    name: str  # in the first build; in the second where the first has none
    name_b: str
    grade: Grade
    sentence: str
    matched_by: str = ""  # name, text, similarity
    data: str = ""  # what both were run on
    causes: tuple[Cause, ...] = ()  # worst first
    fixed: tuple[str, ...] = ()  # errors of the first build that the second has not
    sync: tuple[Sites, ...] = ()
    a: Figures | None = None
    b: Figures | None = None

    @property
    def line(self) -> int:
        """Of the second build, where the worst cause stands; 0: at no line."""
        return self.causes[0].line if self.causes else 0


class Difference(Struct, frozen=True):
    """Two builds, kernel by kernel, worst first."""

    a: str
    b: str
    kernels: tuple[KernelDifference, ...]
    notes: tuple[str, ...] = ()

    @property
    def errors(self) -> tuple[KernelDifference, ...]:
        """Kernels with errors that the first build does not have."""
        return tuple(one for one in self.kernels if one.grade is Grade.ERROR)

    def count(self, grade: Grade) -> int:
        return sum(one.grade is grade for one in self.kernels)

    @property
    def summary(self) -> str:
        counts = [f"{self.count(grade)} {grade}" for grade in WORST_FIRST if self.count(grade)]
        return f"{len(self.kernels)} kernels: {', '.join(counts) or 'none'}"


def worst_first(kernels: list[KernelDifference]) -> tuple[KernelDifference, ...]:
    """By grade, then by how much slower, then by name."""

    def key(one: KernelDifference) -> tuple[object, ...]:
        slower = one.b.cycles / max(1, one.a.cycles) if one.a and one.b else 0.0
        return (WORST_FIRST.index(one.grade), -slower, one.name, one.name_b)

    return tuple(sorted(kernels, key=key))


def difference_data(difference: Difference) -> dict[str, Any]:
    """As JSON has it."""
    data: dict[str, Any] = msgspec.to_builtins(difference)
    data["errors"] = len(difference.errors)
    return data


def _numbers(lines: tuple[int, ...]) -> str:
    shown = ", ".join(map(str, lines[:4]))
    return shown + (f" and {len(lines) - 4} more" if len(lines) > 4 else "")
