"""Runs one step of a job in a process group of its own, its output going to a log as it comes."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from insight_trace.errors import JobError

_TAIL_BYTES = 64 << 10
_TAIL_LINES = 15


def run_step(
    words: Sequence[str],
    log: Path,
    *,
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
    timeout: float | None = None,
) -> int:
    """The exit code. Past `timeout` the whole group ends, and the log keeps what was said until then."""
    log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with log.open("wb") as output:
        output.write(f"$ {shlex.join(words)}\n".encode())
        output.flush()
        try:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {})},
                cwd=directory,
                start_new_session=True,
            )
        except OSError as error:
            raise JobError(f"{words[0]} does not start: {error.strerror}", where=str(log)) from None
        try:
            code = process.wait(timeout=timeout)
        except BaseException as stop:
            _end(process)
            output.write(b"[ended]\n")
            if isinstance(stop, subprocess.TimeoutExpired):
                raise JobError(
                    f"{Path(words[0]).name} took more than {timeout:g} s", where=str(log), hint=cause_in(log)
                ) from None
            raise
        output.write(f"[exit {code}]\n".encode())
    return code


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def cause_in(log: Path) -> str:
    """What a log says went wrong: its first line with an error, else its last lines."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            lines = file.read().decode("utf-8", errors="replace").splitlines()
    except OSError:
        return "no output"
    said = [
        line.strip() for line in lines if line.strip() and not line.startswith(("$ ", "[exit ", "[ended]"))
    ]
    for line in said:
        if "error:" in line.casefold() or "traceback" in line.casefold():
            if "traceback" in line.casefold():
                return said[-1]
            return line
    return "\n  ".join(said[-_TAIL_LINES:]) or "no output"
