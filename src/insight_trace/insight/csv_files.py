"""The two CSV files of a core: executions by address and by source line."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import numpy as np
from msgspec import Struct

from insight_trace.errors import InputError
from insight_trace.insight.hotspots import Counts, Lines, running_time
from insight_trace.insight.prepared import Prepared
from insight_trace.limits import TABLE_BYTES
from insight_trace.model import Pipe
from insight_trace.reading import regular_text
from insight_trace.recording.stream import details_of

INSTRUCTION_HEADER = "instr,addr,pipe,call_count,cycles,running_time(us),detail"
CODE_HEADER = "code,call_count,cycles,running_time(us)"
_BREAKING = re.compile(r'[",\r\n]')


def instruction_csv(prepared: Prepared, counts: Counts, core: int) -> str:
    """Rows of one core (its place among the cores by name), those with most cycles first."""
    columns = prepared.instructions
    chosen = np.flatnonzero(counts.core == core)
    chosen = chosen[np.argsort(-counts.cycles[chosen], kind="stable")]
    first = counts.first[chosen]
    times = running_time(counts.busy[chosen], prepared.mhz).tolist()
    lines = [INSTRUCTION_HEADER]
    for row, detail, count, cycles, time in zip(
        first.tolist(),
        details_of(columns.detail, first),
        counts.executed[chosen].tolist(),
        counts.cycles[chosen].tolist(),
        times,
        strict=True,
    ):
        name = _BREAKING.sub("_", columns.names[columns.name[row]])
        pipe = Pipe(int(columns.pipe[row])).name
        quoted = detail.replace('"', '""').replace("\n", " ").replace("\r", " ")
        lines.append(f'{name},{int(columns.pc[row])},{pipe},{count},{cycles},{time:.6f},"{quoted}"')
    return "\n".join(lines) + "\n"


def code_csv(prepared: Prepared, lines: Lines | None, core: int) -> str:
    """Lines of one core, those with most cycles first; only the header where no line is known."""
    text = [CODE_HEADER]
    if lines is not None:
        counts = lines.counts
        chosen = np.flatnonzero(counts.core == core)
        chosen = chosen[np.argsort(-counts.cycles[chosen], kind="stable")]
        times = running_time(counts.busy[chosen], prepared.mhz).tolist()
        for row, time in zip(chosen.tolist(), times, strict=True):
            code = _BREAKING.sub("_", lines.codes[int(counts.key[row])])
            text.append(f"{code},{counts.executed[row]},{counts.cycles[row]},{time:.6f}")
    return "\n".join(text) + "\n"


class ExecutedInstruction(Struct, frozen=True):
    """One row of an instruction CSV."""

    name: str
    address: int
    pipe: str
    executed: int
    cycles: float  # a whole number, except from older releases
    running_time: float
    detail: str


def read_instruction_csv(path: Path) -> list[ExecutedInstruction]:
    """Rows of an instruction CSV, with decimal or hexadecimal addresses."""
    text = regular_text(path, most=TABLE_BYTES, errors="replace")
    found = []
    reader = csv.reader(io.StringIO(text))
    try:
        if next(reader, [])[:3] != INSTRUCTION_HEADER.split(",")[:3]:
            raise InputError("this is no instruction CSV: its header is missing", where=f"{path}:1")
        for fields in reader:
            if not fields:
                continue
            if len(fields) < 7:
                raise ValueError("a row needs 7 fields")
            if abs(int(fields[3])) >> 63:
                raise ValueError("a count of more than 63 bits")
            found.append(
                ExecutedInstruction(
                    name=fields[0],
                    address=int(fields[1], 0),
                    pipe=fields[2],
                    executed=int(fields[3]),
                    cycles=float(fields[4]),
                    running_time=float(fields[5]),
                    detail=",".join(fields[6:]),
                )
            )
    except (ValueError, csv.Error) as error:
        raise InputError(f"cannot be read: {error}", where=f"{path}:{reader.line_num}") from error
    return found


def instruction_csvs(directory: Path) -> list[Path]:
    """Instruction CSVs of a core directory, with or without the time stamp in their names."""
    return sorted(directory.glob("*_instr_exe*.csv"))
