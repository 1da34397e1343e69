"""A job: kernels with their arguments on a target, which is all that a simulation needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from insight_trace.arguments.slots import ReplayArguments
from insight_trace.model import Case, Dispatch, Kernel, Scene

ENTRY_SHOWN = "insight-trace/insight_entry.cpp"  # how traces name an entry of ours around a kernel


class PythonSource(Struct, frozen=True, eq=False):
    """The user's program behind generated kernels."""

    lines: Mapping[str, Mapping[int, Any]]  # generated file -> its line -> PythonLine
    roots: tuple[Path, ...]  # where the files of the program may lie
    tiles: Sequence[Mapping[str, object]] = ()  # what the program calls the tiles


class Job(Struct, frozen=True, eq=False):
    """What to simulate, where it comes from, and what the user calls it."""

    kernels: tuple[Kernel, ...]  # one, or the members of a mix in the order of the dispatch's func ids
    arguments: ReplayArguments
    target: str  # a2a3 or a5
    scene: Scene | None = None
    case: Case | None = None
    dispatch: Dispatch | None = None  # None: its arguments come from elsewhere than a dump
    origin: str = ""  # of the arguments, as people read it
    held: tuple[
        tuple[int, bool], ...
    ] = ()  # slots in L2, the longest ago first, and whether they were written
    name: str = ""  # of a kernel of a build; "": the kernels' own names
    python: PythonSource | None = None
    shown_as: Mapping[str, str] = field(default_factory=dict)  # start of a path -> how traces name it

    @property
    def label(self) -> str:
        """The kernels as one word, for names of files."""
        return self.name or "_".join(dict.fromkeys(kernel.name for kernel in self.kernels))

    def shown(self, text: str) -> str:
        """Paths in a text under the names that traces have for them."""
        for here, there in self.shown_as.items():
            text = text.replace(here, there)
        return text

    @property
    def runtime(self) -> str:
        """Whose headers the kernels include; "": the usual one."""
        return self.scene.runtime if self.scene else ""
