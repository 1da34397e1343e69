"""Runs one step of a job, and finds in its log what went wrong."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from insight_trace.errors import JobError
from insight_trace.simulate.msprof.toolkit_processes import run_logged

_TAIL_BYTES = 64 << 10
_TAIL_LINES = 15


def run_step(
    words: Sequence[str],
    log: Path,
    *,
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
    timeout: float | None = None,
    stop: threading.Event | None = None,
) -> int:
    """The exit code. Past `timeout` all that it started ends, and the log keeps what was said until then."""
    log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    done = run_logged(
        words,
        log,
        cwd=directory or Path.cwd(),
        environment={**os.environ, **(environment or {})},
        seconds=timeout,
        stop=stop,
    )
    if done.code is None:
        name = Path(words[0]).name
        raise JobError(f"{name} took more than {timeout:g} s", where=str(log), hint=cause_in(log))
    return done.code


def cause_in(log: Path) -> str:
    """What a log says went wrong: its first line with an error, else its last lines."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            lines = file.read().decode("utf-8", errors="replace").splitlines()
    except OSError:
        return "no output"
    said = [
        line.strip() for line in lines if line.strip() and not line.startswith(("$ ", "[exit ", "[ended"))
    ]
    for line in said:
        if "error:" in line.casefold() or "traceback" in line.casefold():
            if "traceback" in line.casefold():
                return said[-1]
            return line
    return "\n  ".join(said[-_TAIL_LINES:]) or "no output"
