"""The engine's object files: what each is made of, and how it is compiled.

A process reads our own sources once, as it loads its modules once: to read them takes longer than a small job.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from insight_trace.cache import content_key

HERE = Path(__file__).resolve().parent
INCLUDE = HERE / "include"
ENGINE = HERE / "engine"
_MAIN = ENGINE / "runner.cpp"
PRECOMPILED = ENGINE / "precompiled.hpp"

_INCLUDED = rb'(?m)^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"'


def engine_sources() -> list[Path]:
    """What every program of ours is made of, without a main function."""
    return sorted(path for path in ENGINE.rglob("*.cpp") if path != _MAIN)


HOT, COLD = LEVELS = ("-O2", "-O1")

# Sources of which something runs for every instruction, byte or element. -O1 compiles the others in two thirds of the time.
_HOT = frozenset(
    (
        *(
            "banks",
            "clock",
            "core",
            "core_operands",
            "core_repeat",
            "intrinsics",
            "l2_cache",
            "memory_system",
        ),
        *("operands", "records", "scalar_memory", "timeline", "timing", "touched_lines", "checker", "order"),
        *("arithmetic", "comparisons", "conversions", "function_conversions", "issue", "lanes", "reductions"),
        *(
            "cube_products",
            "cube_scaled",
            "fixpipe_values",
            "matmul_products",
            "moves",
            "tile_dma",
            "vector_walk",
        ),
    )
)

# Letters at which the files of a folder, hot or cold, begin a new unit. A unit is compiled at once, so that what its files
# include is read once: a change to one file compiles its unit, a fraction of a folder.
_BEGINNINGS = {
    ("engine", HOT): "bl",
    ("engine", COLD): "cr",
    ("ops", HOT): "cmr",
    ("ops", COLD): "cgr",
    ("isa", HOT): "acfr",
    ("isa", COLD): "cdr",
    ("check", HOT): "c",
    ("check", COLD): "c",
    ("host", COLD): "b",
}


class Unit(Struct, frozen=True):
    """Sources that are compiled at once."""

    sources: tuple[Path, ...]
    level: str = COLD

    @property
    def cost(self) -> int:
        """About how long it takes to compile: by its length."""
        return sum(source.stat().st_size for source in self.sources) * (3 if self.level == HOT else 2)

    @property
    def text(self) -> str:
        return "".join(f'#include "{source}"\n' for source in self.sources)


def units(sources: Iterable[Path]) -> list[Unit]:
    """Sources by what is compiled together; one from a folder that is not listed, and a main program, by itself."""
    found: dict[tuple[Path, str, str], list[Path]] = {}
    for source in sorted(sources):
        level = HOT if source.stem in _HOT and source.is_relative_to(ENGINE) else COLD
        letters = _BEGINNINGS.get((source.parent.name, level), "")
        begun = [letter for letter in letters if letter <= source.name[0]]
        unit = source.name if source == _MAIN or not begun else begun[-1]
        found.setdefault((source.parent, level, unit), []).append(source)
    return [Unit(tuple(unit), level) for (_, level, _), unit in found.items()]


@functools.cache
def contents(folder: Path) -> tuple[bytes | str, ...]:
    """Name and content of every file below a folder, for a key."""
    # texts, not paths: hundreds of files are read before the smallest job
    found = [f"{place}/{name}" for place, _, names in os.walk(folder) for name in names]
    found.sort(key=lambda path: path.split("/"))
    return tuple(part for path in found for part in (path.rpartition("/")[2], Path(path).read_bytes()))


class Program(Struct, frozen=True):
    """A program made of sources of its own and the engine."""

    name: str
    sources: tuple[Path, ...]
    include_dirs: tuple[Path, ...] = ()  # what its own sources include

    @functools.cache  # noqa: B019
    def content(self) -> str:
        """A name for all that it is compiled from."""
        folders = (ENGINE, INCLUDE / "insight_trace", *self.include_dirs)
        own = [part for source in self.sources for part in (source.name, source.read_bytes())]
        return content_key([self.name, *(part for folder in folders for part in contents(folder)), *own])


RUNNER = Program("runner", (_MAIN,))


class Includes:
    """Which files of ours a source is compiled from. Every include counts, whatever #if stands around it."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self._direct: dict[Path, list[Path]] = {}
        self._content: dict[Path, bytes] = {}

    def key(self, source: Path) -> str:
        """A name for the content of `source` and of all that it includes."""
        files = [source, *sorted(self.of(source) - {source})]
        return content_key(part for path in files for part in (path.name, self._read(path)))

    def of(self, source: Path) -> set[Path]:
        """`source` and every file of ours that it includes, directly or not."""
        found: set[Path] = set()
        wanted = [source]
        while wanted:
            path = wanted.pop()
            if path not in found:
                found.add(path)
                wanted += self._included_by(path)
        return found

    def _included_by(self, path: Path) -> list[Path]:
        if path not in self._direct:
            names = [name.decode() for name in re.findall(_INCLUDED, self._read(path))]
            places = ([folder / name for folder in (path.parent, *self._folders)] for name in names)
            files = (next((place for place in some if place.is_file()), None) for some in places)
            self._direct[path] = [file.resolve() for file in files if file]
        return self._direct[path]

    def _read(self, path: Path) -> bytes:
        if path not in self._content:
            self._content[path] = path.read_bytes()
        return self._content[path]
