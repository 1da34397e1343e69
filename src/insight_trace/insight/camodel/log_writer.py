"""Writes a trace as core model logs, so that the vendor's exporter can be run on it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from insight_trace.chips import LogFamily, find_chip
from insight_trace.insight.prepared import chunks
from insight_trace.model import Instructions, Pipe, Trace
from insight_trace.recording.stream import details_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

FILE_MODE = 0o640
_LOG_NAMES = {Pipe.VECTOR: "VEC"}
# what the line grammar of the exporter allows; anything after another character would be lost
_FOREIGN_NAME = re.compile(r"[^0-9A-Za-z_-]")
_FOREIGN_DETAIL = re.compile(r"[^\[\]|A-Za-z0-9_, :=/#-]")
_NOT_LOGGED = (Pipe.CACHEMISS, Pipe.USERMARK)


def write_logs(trace: Trace, directory: Path) -> None:
    """`<core>.instr_popped_log.dump` (starts) and `<core>.instr_log.dump` (ends) for every core.

    Chips of the 950 family number their instructions; a user mark or a cache miss has no line of its own.
    """
    directory.mkdir(parents=True, mode=0o750)
    columns = trace.instructions
    chip = find_chip(trace.soc_version)
    numbered = chip is not None and chip.family.logs is LogFamily.A5
    logged = ~np.isin(columns.pipe, [int(pipe) for pipe in _NOT_LOGGED])
    for core in np.unique(columns.core).tolist():
        rows = np.flatnonzero((columns.core == core) & logged)
        name = columns.cores[core]
        for kind, time in (("instr_popped_log", columns.start), ("instr_log", columns.end)):
            # the exporter pairs the n-th start of an address with its n-th end
            ordered = rows[np.argsort(time[rows], kind="stable")]
            _write(directory / f"{name}.{kind}.dump", _lines(columns, time, ordered, numbered))
    lowest = int(columns.pc[logged].min()) if logged.any() else 0
    _write(directory / "pc_start_addr.txt", iter([f"0x{lowest:x}"]))


def _write(path: Path, pieces: Iterator[str]) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
    with os.fdopen(handle, "w", encoding="ascii", errors="replace", newline="\n") as file:
        for piece in pieces:
            file.write(piece)


def _lines(
    columns: Instructions, time: NDArray[np.int64], rows: NDArray[np.int64], numbered: bool
) -> Iterator[str]:
    names = [_FOREIGN_NAME.sub("_", name) for name in columns.names]
    pipes = {int(pipe): _LOG_NAMES.get(pipe, pipe.name) for pipe in Pipe}
    for part in chunks(rows):
        text = []
        for row, tick, pc, pipe, name, detail in zip(
            part.tolist(),
            time[part].tolist(),
            columns.pc[part].tolist(),
            columns.pipe[part].tolist(),
            columns.name[part].tolist(),
            details_of(columns.detail, part),
            strict=True,
        ):
            number = f"(ID: {row:06d}) " if numbered else ""
            shown = _FOREIGN_DETAIL.sub("_", detail)
            text.append(
                f"[info] [{tick:08d}] (PC: 0x{pc:x}) {pipes[pipe]:<9}: (Binary: 0x00000000) "
                f"{number}{names[name]}  {shown}\n"
            )
        yield "".join(text)
