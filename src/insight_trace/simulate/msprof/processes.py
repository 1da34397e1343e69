"""Other people's programs: each in a session of its own, its output in a log from the first byte on.

When its time is over, a program is ended with everything it started.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from insight_trace.errors import JobError

_TAIL = 64 * 1024
_GRACE_SECONDS = 3.0
_STOP_CHECK_SECONDS = 0.2


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
    started = time.monotonic()
    words = [str(word) for word in command]
    with log.open("wb") as output:
        output.write(f"$ {subprocess.list2cmdline(words)}\n".encode("utf-8", "surrogateescape"))
        output.flush()
        start = output.tell()
        try:
            process = subprocess.Popen(
                words,
                cwd=cwd,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise JobError(f"{words[0]} could not be started: {error.strerror}") from None
        code: int | None
        try:
            code = _wait(process, seconds, stop)
        except subprocess.TimeoutExpired:
            end_tree(process)
            code = None
        except BaseException:  # the user pressed Ctrl-C: nothing of ours may run on
            end_tree(process)
            raise
    spent = time.monotonic() - started
    text = _tail(log, start)
    with log.open("ab") as output:
        verdict = f"ended after {spent:.0f} s" if code is None else f"exit {code}"
        output.write(f"\n[{verdict}]\n".encode())
    return Finished(code, text, spent, log)


def _wait(process: subprocess.Popen[bytes], seconds: float | None, stop: threading.Event | None) -> int:
    if stop is None:
        return process.wait(timeout=seconds)
    deadline = None if seconds is None else time.monotonic() + seconds
    while True:
        left = _STOP_CHECK_SECONDS if deadline is None else deadline - time.monotonic()
        try:
            return process.wait(timeout=max(0.0, min(left, _STOP_CHECK_SECONDS)))
        except subprocess.TimeoutExpired:
            if stop.is_set():
                raise JobError("interrupted") from None
            if deadline is not None and time.monotonic() >= deadline:
                raise


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
    """A short program's exit code (None: not started, or its time was over) and all that it printed."""
    try:
        process = subprocess.Popen(
            [str(word) for word in command],
            cwd=cwd,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError:
        return None, b""
    try:
        output, _ = process.communicate(stdin, timeout=seconds)
    except subprocess.TimeoutExpired:
        end_tree(process)
        return None, b""
    except BaseException:
        end_tree(process)
        raise
    return process.returncode, output


def end_tree(process: subprocess.Popen[bytes]) -> None:
    """Ends a process and everything below it: politely, then for certain.

    The process leads its own group, but a launcher's children may have left it, so they are looked up too.
    """
    known = _tree(process.pid)
    _signal(process.pid, known, signal.SIGTERM)
    deadline = time.monotonic() + _GRACE_SECONDS
    while time.monotonic() < deadline and any(_alive(pid, born) for pid, born in known.items()):
        process.poll()
        for pid in list(known):
            known |= _tree(pid) if pid in known and _alive(pid, known[pid]) else {}
        time.sleep(0.05)
    _signal(process.pid, known, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=_GRACE_SECONDS)
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()


def _signal(group: int, known: dict[int, int], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
    for pid, born in known.items():
        if _alive(pid, born):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)


def _stat(pid: str) -> tuple[str, int, int] | None:
    """State, parent and time of birth from /proc. Fields follow the last bracket, as names may hold some."""
    try:
        fields = Path("/proc", pid, "stat").read_text(errors="replace").rpartition(")")[2].split()
        return fields[0], int(fields[1]), int(fields[19])
    except (OSError, ValueError, IndexError):
        return None


def _alive(pid: int, born: int) -> bool:
    """Whether that very process still runs; its number may by now be another's."""
    found = _stat(str(pid))
    return found is not None and found[0] not in "ZX" and found[2] == born


def _tree(root: int) -> dict[int, int]:
    """A process and all below it: number -> time of birth."""
    born: dict[int, int] = {}
    children: dict[int, list[int]] = {}
    try:
        names = [entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    except OSError:
        return {}
    for name in names:
        found = _stat(name)
        if found is not None:
            born[int(name)] = found[2]
            children.setdefault(found[1], []).append(int(name))
    below: dict[int, int] = {}
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        if pid in born and pid not in below:
            below[pid] = born[pid]
            waiting += children.get(pid, ())
    return below


def _tail(log: Path, start: int) -> str:
    with log.open("rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(start, file.tell() - _TAIL))
        return file.read().decode("utf-8", "replace")
