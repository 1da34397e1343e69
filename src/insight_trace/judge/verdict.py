"""What the judge says of one candidate."""

from __future__ import annotations

import enum
from typing import Any

import msgspec
from msgspec import Struct


class Outcome(enum.StrEnum):
    """What became of a candidate."""

    RIGHT = "right"
    SLOW = "slow"  # right, and slower than the task's baseline allows
    FAULT = "fault"  # right on these inputs, and the checker finds an error: a race, wrong memory
    WRONG = "wrong"
    INCOMPLETE = "incomplete"  # the recording shows less work than the task needs
    FORBIDDEN = "forbidden"  # it reaches for what is not its own
    HANG = "hang"
    CRASH = "crash"
    COMPILE_ERROR = "compile error"
    TOO_LARGE = "too large"  # it reached a limit, such as that of what it prints
    NOT_JUDGED = "not judged"  # something that is not the candidate's fault


class Advised(Struct, frozen=True):
    """Something to try."""

    text: str
    saves: int  # cycles
    simulated: bool  # the run was timed again with the change; else a bound


class DoneWork(Struct, frozen=True):
    """What the recording shows."""

    read: dict[str, float]  # share of each input's bytes
    written: dict[str, float]  # share of each output's bytes
    vector_elements: int
    cube_operations: int


class Verdict(Struct, frozen=True):
    """One candidate. The same candidate and task give the same verdict, byte for byte."""

    candidate: str
    outcome: Outcome
    score: float  # 0 to 1
    reason: str  # short, and what to do next
    line: int = 0  # of the candidate
    fix: str = ""
    cycles: int | None = None
    low: int | None = None  # `low` to `high`: the 90 % interval on a chip
    high: int | None = None
    floor: int | None = None  # cycles that moving the tensors takes at least
    inputs_tried: int = 0  # sets of inputs on which values were compared
    work: DoneWork | None = None
    advice: tuple[Advised, ...] = ()  # the best first, at most three

    @property
    def right(self) -> bool:
        return self.outcome in (Outcome.RIGHT, Outcome.SLOW)


def verdict_data(verdict: Verdict) -> dict[str, Any]:
    data: dict[str, Any] = msgspec.to_builtins(verdict)
    return data
