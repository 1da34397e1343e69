"""The user's Python in a trace: a frame behind the generated C++ line, the source's text, cycles by Python line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from insight_trace.errors import InsightTraceError
from insight_trace.limits import MODULE_BYTES, SOURCE_BYTES
from insight_trace.model import Kernel, Pipe, Trace
from insight_trace.ptoas.discovery import find_sources
from insight_trace.ptoas.python_lines import PythonLine, python_lines
from insight_trace.reading import read_regular
from insight_trace.recording.frames import split_frame

_NOT_WORK = (Pipe.SCALAR, Pipe.FLOWCTRL, Pipe.SCALARLDST, Pipe.CACHEMISS)


@dataclass(frozen=True, slots=True)
class PythonCycles:
    """Busy cycles of one Python line, without the scalar unit's."""

    frame: str  # model.py:41
    operation: str
    tiles: tuple[str, ...]
    cycles: int
    share: float  # of all such cycles of the trace


def lines_of_build(kernels: Iterable[Kernel], build: Path) -> dict[str, dict[int, PythonLine]]:
    """For each source of a build's kernels, its lines; the `.pto` of a kernel is the one that names its function."""
    try:
        ptos = [source.pto for source in find_sources(build) if source.pto is not None]
    except InsightTraceError:  # no `.pto` files: nothing to tell
        return {}
    found: dict[str, dict[int, PythonLine]] = {}
    for kernel in kernels:
        wanted = f"@{kernel.name}(".encode()
        for pto in ptos:
            if wanted in read_regular(pto, most=SOURCE_BYTES):
                lines = python_lines(pto, kernel.source)
                if lines:
                    found[str(kernel.source)] = lines
                break
    return found


def with_python(trace: Trace, lines: Mapping[str, Mapping[int, PythonLine]], roots: Sequence[Path]) -> Trace:
    """The trace with a Python frame behind each frame that has one; `roots` is where the files may be."""
    if not any(lines.values()):
        return trace
    places: dict[str, str] = {}
    sources = dict(trace.sources)

    def place(file: str) -> str:
        if file not in places:
            path = _existing(file, roots)
            places[file] = str(path) if path is not None else file
            if path is not None:
                sources[str(path)] = read_regular(path, most=MODULE_BYTES)
        return places[file]

    def extended(stack: str) -> str:
        for frame in stack.split("\n"):
            path, line = split_frame(frame)
            found = lines.get(path, {}).get(line)
            if found is not None:
                return f"{stack}\n{place(found.file)}:{found.line}"
        return stack

    stacks = tuple(map(extended, trace.instructions.stacks))
    return replace(trace, instructions=replace(trace.instructions, stacks=stacks), sources=sources)


def python_files(lines: Mapping[str, Mapping[int, PythonLine]], roots: Sequence[Path]) -> list[Path]:
    """The files of the user's program that these lines name, those that there are."""
    names = dict.fromkeys(line.file for found in lines.values() for line in found.values())
    return [path for name in names if (path := _existing(name, roots)) is not None]


def _existing(file: str, roots: Sequence[Path]) -> Path | None:
    for root in (Path(), *roots):
        path = (root / file).absolute()
        if path.is_file() and path.stat().st_size <= MODULE_BYTES:
            return path
    return None


def python_cycles(
    trace: Trace, lines: Mapping[str, Mapping[int, PythonLine]]
) -> tuple[list[PythonCycles], float]:
    """Python lines by their cycles, most first, and which share of the non-scalar cycles has one."""
    import numpy as np

    columns = trace.instructions
    work = ~np.isin(columns.pipe, _NOT_WORK)
    cycles = np.bincount(
        columns.stack[work], (columns.end - columns.start)[work], minlength=len(columns.stacks)
    )
    total = float(cycles.sum())
    by_line: dict[PythonLine, float] = {}
    for stack, spent in zip(columns.stacks, cycles.tolist(), strict=True):
        for frame in stack.split("\n"):
            path, line = split_frame(frame)
            found = lines.get(path, {}).get(line)
            if found is not None:
                by_line[found] = by_line.get(found, 0.0) + spent
                break
    ranked = sorted(
        by_line.items(), key=lambda item: (-item[1], item[0].file, item[0].line, item[0].operation)
    )
    rows = [
        PythonCycles(found.frame, found.operation, found.tiles, int(spent), spent / total if total else 0.0)
        for found, spent in ranked
    ]
    return rows, sum(by_line.values()) / total if total else 0.0
