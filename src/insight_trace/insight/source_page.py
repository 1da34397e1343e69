"""What Insight's Source page shows when it opens: the first file by name, and the first core that tables list."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from insight_trace.insight.hotspots import frames_of
from insight_trace.model import Trace
from insight_trace.recording.pipes import core_order


def opening_on(trace: Trace, kernels: Iterable[str]) -> tuple[Trace, str]:
    """The trace under names that make the page open where the time goes, and the core that ran most of that.

    That is the user's Python where instructions have lines of it, else the source of the kernel whose core ends last.
    What would come before it by name leaves it to it: `./kernel.cpp` comes before every absolute path. The core is ""
    where nothing that ran has a text to show.
    """
    by_stack = [
        {file for frame in frames_of(stack) if (file := frame.rsplit(":", 1)[0]) in trace.sources}
        for stack in trace.instructions.stacks
    ]
    files = sorted(set().union(*by_stack))
    if not files:
        return trace, ""
    real = {os.path.realpath(kernel) for kernel in kernels}
    python = [file for file in files if file.endswith(".py")]
    mains = python or [file for file in files if file in real or os.path.realpath(file) in real] or files
    opened = _on_last_core(trace, by_stack, mains)
    core = _runs_most(trace, [opened in found for found in by_stack])
    return (trace if opened == files[0] else _renamed(trace, opened, f"./{Path(opened).name}")), core


def _on_last_core(trace: Trace, by_stack: list[set[str]], files: list[str]) -> str:
    """Of these files the one that the core which ends last ran most of; the first where it ran none."""
    columns = trace.instructions
    last = int(columns.core[int(np.argmax(columns.end))])
    rows = columns.stack[columns.core == last]
    counts = [int(np.array([file in found for found in by_stack], bool)[rows].sum()) for file in files]
    return files[int(np.argmax(counts))]


def _runs_most(trace: Trace, chosen: list[bool]) -> str:
    columns = trace.instructions
    rows = np.array(chosen, bool)[columns.stack]
    counts = np.bincount(columns.core[rows], minlength=len(columns.cores)).tolist()
    names = zip(columns.cores, counts, strict=True)
    return min(names, key=lambda item: (-item[1], core_order(item[0])))[0]


def _renamed(trace: Trace, file: str, name: str) -> Trace:
    def frame(text: str) -> str:
        return name + text[len(file) :] if text.startswith(f"{file}:") else text

    stacks = tuple("\n".join(map(frame, stack.split("\n"))) for stack in trace.instructions.stacks)
    sources = {name if path == file else path: text for path, text in trace.sources.items()}
    return replace(trace, instructions=replace(trace.instructions, stacks=stacks), sources=sources)
