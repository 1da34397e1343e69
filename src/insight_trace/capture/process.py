"""The runner's process: started on a job, watched while it records, and asked what came of it."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from insight_trace.errors import JobError
from insight_trace.model import Failure, Fault
from insight_trace.simulate.embedded.memory import unescape
from insight_trace.simulate.embedded.source_lines import line_of_crash

_LOOK_SECONDS = 0.2
_GRACE_SECONDS = 3.0


@dataclass
class RunnerReport:
    """What the runner says of a run."""

    failure: Failure | None = None
    facts: dict[str, list[str]] = field(default_factory=dict)
    said: str = ""  # what orchestration and runtime logged

    def number(self, key: str) -> int:
        return int(self.facts.get(key, ["0"])[0])


def run_runner(
    runner: Path,
    job: Path,
    result: Path,
    files: tuple[int, ...],
    on_look: Callable[[], None],
    drive: Callable[[], None] | None = None,
) -> RunnerReport:
    """Runs a job to its end; `on_look` is called now and then. An interruption ends the runner gently.

    `drive` is an orchestration that runs here, beside the runner, and talks to it.
    """
    log = result.with_suffix(".log")
    try:
        with log.open("wb") as said:
            process = subprocess.Popen(
                [str(runner), str(job)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
                start_new_session=True,
                pass_fds=files,
            )
    except OSError as error:
        raise JobError(f"the runner does not start: {error}", where=str(runner)) from None
    if drive is not None:
        # a thread that may be left behind: an orchestration that never ends must not keep us
        threading.Thread(target=drive, daemon=True).start()
    interrupted = False
    with _sigterm_as_interrupt():
        while process.poll() is None:
            try:
                _wait(process)
                on_look()
            except KeyboardInterrupt:
                interrupted = True
                _stop(process)
            except BaseException:
                process.kill()
                process.wait()
                raise
    report = _read(result, process.returncode)
    report.said = log.read_text(encoding="utf-8", errors="replace")
    if interrupted and report.failure is None:
        report.failure = Failure(Fault.ENVIRONMENT, "the run was interrupted")
    return report


@contextlib.contextmanager
def _sigterm_as_interrupt():  # type: ignore[no-untyped-def]
    """A polite end (SIGTERM) closes the dump as Ctrl-C does. Only a main thread may ask for that."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, interrupt)
    except ValueError:
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _wait(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_LOOK_SECONDS)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    deadline = time.monotonic() + _GRACE_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    if process.poll() is None:
        process.kill()
        process.wait()


def _read(path: Path, code: int) -> RunnerReport:
    report = RunnerReport()
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        key, *rest = (unescape(part) for part in line.split("\t"))
        report.facts.setdefault(key, rest)
    facts = report.facts
    if "end" not in facts:
        signalled = -code if code < 0 else 0
        fault = Fault.ENVIRONMENT if signalled == signal.SIGKILL else Fault.OUR_BUG
        report.failure = Failure(fault, f"the runner ended with {code} before its time", signal=signalled)
    elif facts["status"][0] != "ok":
        report.failure = _failure(facts)
    return report


def _failure(facts: dict[str, list[str]]) -> Failure:
    file, line = facts.get("at", ["", "0"])
    if "pc" in facts:
        place = line_of_crash(facts["pc"][0], int(facts["pc"][1]))
        file, line = (place[0], str(place[1])) if place else (file, line)
    return Failure(
        fault=Fault(facts["fault"][0]),
        message=facts.get("message", [""])[0],
        file=file,
        line=int(line),
        signal=int(facts.get("signal", ["0"])[0]),
        limit=facts.get("limit", [""])[0],
    )
