"""The program as functions: every command of `insight-trace` is one of these and printing (docs/python.md).

Paths are strings or Path. `run` are fields of RunOptions by name. A request that is wrong raises RequestError, a job that
fails JobError, both InsightTraceError; a kernel that is wrong is a result that says so. `insight_trace` has them all.
"""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from pathlib import Path

PathName = str | PathLike[str]


def as_path(value: PathName | None) -> Path | None:
    return None if value is None else Path(value)


def numbers(value: int | Iterable[int] | None) -> tuple[int, ...]:
    return () if value is None else (value,) if isinstance(value, int) else tuple(value)
