"""Every bound that keeps an input, a kernel or a child process from taking the machine (docs/limits.md)."""

from __future__ import annotations

import math
import os
import re
from typing import TextIO

from insight_trace.errors import RequestError

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

# --- a kernel's process -----------------------------------------------------------------------------------
RUN_SECONDS = 60.0  # --time-limit
RUN_SECONDS_MOST = 7 * 24 * 3600.0
RUN_BYTES = 4 * GIB  # resident
RUN_FILE_BYTES = 64 * GIB  # a file that it writes: the instructions of the longest run
RUN_DESCRIPTORS = 256
JOURNAL_BYTES = 8 * GIB  # what changed in memory, for debug and why; longer runs are looked at in windows
RUN_GRACE_SECONDS = 10.0  # it ends itself at its limit; this much later it is ended from outside
PRINTED_BYTES = 64 * MIB  # a kernel that prints more is ended
PRINTED_KEPT = MIB
RESULT_BYTES = 256 * MIB  # what the runner says of a job
BLOCKS = 1 << 16  # blocks of one dispatch; the largest chip has fewer than 100 cores
CORES = 1 << 12  # of one simulation

# --- the compiler -----------------------------------------------------------------------------------------
COMPILE_SECONDS = 120.0  # --compile-limit, INSIGHT_TRACE_COMPILE_SECONDS
COMPILE_BYTES = 4 * GIB  # address space of each of its processes
COMPILE_FILE_BYTES = GIB
COMPILE_OUTPUT = 16 * MIB  # what it may say
SOURCE_BYTES = 64 * MIB  # a source or header

# --- other people's programs ------------------------------------------------------------------------------
PROBE_SECONDS = 20.0  # --version and the like
PROBE_OUTPUT = MIB
LOG_BYTES = 4 * GIB  # a log that a program writes
BUFFER_BYTES = 8 * GIB  # content that is made up for one argument
PAYLOAD_BYTES = 16 * GIB  # of a capture, where nothing else is asked for
SCENE_MEMORY = 0.9  # of what is free: a scene's own functions (inputs, golden)

# --- reading ----------------------------------------------------------------------------------------------
SCENE_BYTES = 16 * MIB  # a scene's Python file
SCENE_STEPS = 500_000  # expressions evaluated while a scene is read
SCENE_ELEMENTS = 4_000_000  # elements of all lists, tuples, dictionaries and texts made on the way
SCENE_DIGITS = 4_000  # of a whole number
MODULE_BYTES = 4 * MIB  # a Python module beside a scene, or one that a build's lines lead to
TABLE_BYTES = GIB  # a table, a log or a page of a trace; what a device measured
OBJECT_BYTES = 256 * MIB  # a kernel's object file
EVENT_BYTES = 64 * MIB  # one event of a timeline
OPERAND_PIECES = 1 << 20  # pieces of memory that one operand of a recording touches
DESCRIPTION_BYTES = MIB  # of the tensor in a .pt file
JSON_BYTES = 4 * GIB  # a JSON file; sizes are checked against the memory that is free, too
RECORD_BYTES = 64 * MIB  # replay.json, a baseline, a profile's manifest, findings
STAMP_BYTES = MIB  # a few lines: a version, what a cache entry or a wheel holds
MESSAGE_CHARACTERS = 200  # of a foreign value in a message


def cut(value: object, characters: int = MESSAGE_CHARACTERS) -> str:
    """A foreign value for a message: one line that a terminal shows as it is, not longer than `characters`."""
    text = value if isinstance(value, str) else repr(value)
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text[: characters + 1])
    return shown if len(shown) <= characters else shown[: characters - 1] + "…"


def steer(stream: TextIO, text: str) -> None:
    """Writes what moves a terminal's cursor. What is printed otherwise has its control characters spelled out."""
    type(stream).write(stream, text)
    stream.flush()


def visible(text: str, kept: str = "\n\t\r") -> str:
    """Text of strangers as it is: control characters, escapes of terminals and marks that turn it around are spelled out."""
    if text.isprintable() or all(c.isprintable() or c in kept for c in text):
        return text
    return "".join(c if c.isprintable() or c in kept else repr(c)[1:-1] for c in text)


def cell(value: object) -> object:
    """A cell of a table that a spreadsheet opens: a text that it would take for a formula begins with an apostrophe."""
    if not isinstance(value, str):
        return value
    shown = visible(value)
    begins = shown[:1] in tuple("=+-@\t\r") and bool(shown)
    return f"'{shown}" if begins and not re.fullmatch(r"[+-]?\d+(\.\d*)?(e[+-]?\d+)?", shown, re.I) else shown


def seconds_given(value: float, option: str, most: float = RUN_SECONDS_MOST) -> float:
    """A time limit from the command line: a number above 0 and not beyond `most`."""
    if math.isnan(value) or not 0 < value <= most:
        raise RequestError(f"{option} {value:g}: a limit is above 0 and at most {most:g} seconds")
    return value


def compile_seconds() -> float:
    """How long one call of the compiler may take."""
    given = os.environ.get("INSIGHT_TRACE_COMPILE_SECONDS")
    if given is None:
        return COMPILE_SECONDS
    try:
        return seconds_given(float(given), "INSIGHT_TRACE_COMPILE_SECONDS")
    except ValueError:
        raise RequestError(f"INSIGHT_TRACE_COMPILE_SECONDS is {cut(given)}, not a number") from None
