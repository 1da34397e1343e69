"""A reader of files that others wrote, as mutation and fuzzing run it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Target:
    """A reader, the name under which its file lies in a folder, what a good one looks like, and what lies beside."""

    read: Callable[[Path], object]
    file: str
    seeds: tuple[bytes, ...]
    beside: dict[str, bytes] = field(default_factory=dict)
    prepare: Callable[[Path], object] | None = None  # fills the folder
