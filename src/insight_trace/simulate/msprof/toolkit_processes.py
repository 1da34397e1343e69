"""Other people's programs: each supervised, its output in a log from the first byte on."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from insight_trace import supervisor
from insight_trace.errors import JobError
from insight_trace.limits import LOG_BYTES
from insight_trace.supervisor import Child, Limits

_TAIL = 64 * 1024
_GRACE_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Finished:
    """How a program ended. Its output is in the log; `text` is the end of it."""

    code: int | None  # None: it was ended because its time was over
    text: str
    seconds: float
    log: Path

    @property
    def timed_out(self) -> bool:
        return self.code is None


def run_logged(
    command: Sequence[str | Path],
    log: Path,
    *,
    cwd: Path,
    environment: Mapping[str, str],
    seconds: float | None,
    stop: threading.Event | None = None,
) -> Finished:
    """Runs a program to its end, or ends it and all its children after `seconds` or when `stop` is set."""
    log.parent.mkdir(parents=True, exist_ok=True)
    words = [str(word) for word in command]
    with log.open("wb") as output:
        output.write(f"$ {subprocess.list2cmdline(words)}\n".encode("utf-8", "surrogateescape"))
        output.flush()
        start = output.tell()

        def look() -> None:
            if os.fstat(output.fileno()).st_size > LOG_BYTES:
                raise JobError(f"{words[0]} printed more than {LOG_BYTES >> 30} GiB", where=str(log))

        try:
            child = Child(
                words,
                bounds=Limits(seconds, grace=_GRACE_SECONDS),
                cwd=cwd,
                environment=environment,
                output=output,
            )
        except OSError as error:
            raise JobError(f"{words[0]} could not be started: {error.strerror}") from None
        ended = child.wait(stop=stop, look=look)
    if ended.over == "stop":
        raise JobError("interrupted")
    text = _tail(log, start)
    with log.open("ab") as output:
        verdict = f"ended after {ended.seconds:.0f} s" if ended.over else f"exit {ended.code}"
        output.write(f"\n[{verdict}]\n".encode())
    return Finished(None if ended.over else ended.code, text, ended.seconds, log)


@dataclass(frozen=True, slots=True)
class Workplace:
    """Where the programs of one job run, with what environment, and where their logs go."""

    cwd: Path
    environment: Mapping[str, str]
    logs: Path
    stop: threading.Event | None = None  # set: what runs is ended

    def run(self, command: Sequence[str | Path], log: str, seconds: float | None) -> Finished:
        return run_logged(
            command,
            self.logs / log,
            cwd=self.cwd,
            environment=self.environment,
            seconds=seconds,
            stop=self.stop,
        )


def capture(
    command: Sequence[str | Path],
    *,
    environment: Mapping[str, str],
    seconds: float,
    cwd: Path | None = None,
    stdin: bytes = b"",
) -> tuple[int | None, bytes]:
    """A short program's exit code (None: not started, or a limit was over) and what it printed."""
    bounds = Limits(seconds, output=64 << 20, kept=64 << 20, grace=_GRACE_SECONDS)
    try:
        ended = supervisor.run(command, bounds=bounds, environment=environment, cwd=cwd, given=stdin)
    except OSError:
        return None, b""
    return (None, b"") if ended.over else (ended.code, ended.said)


def _tail(log: Path, start: int) -> str:
    with log.open("rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(start, file.tell() - _TAIL))
        return file.read().decode("utf-8", "replace")
