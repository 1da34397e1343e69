"""The runner's process: started on a job, watched while it records, and asked what came of it."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from insight_trace import limits
from insight_trace.errors import InputError, JobError
from insight_trace.outcome import Failure, Fault
from insight_trace.reading import open_regular, read_regular
from insight_trace.simulate.embedded import sandbox as rules
from insight_trace.simulate.embedded.memory import unescape
from insight_trace.simulate.embedded.sandbox import Sandbox
from insight_trace.simulate.embedded.source_lines import line_of_crash
from insight_trace.supervisor import Child, Limits

_GRACE_SECONDS = 3.0


@dataclass
class RunnerReport:
    """What the runner says of a run."""

    failure: Failure | None = None
    facts: dict[str, list[str]] = field(default_factory=dict)
    said: str = ""  # what orchestration and runtime logged
    remarks: list[str] = field(default_factory=list)  # what kernels did that is hardly meant

    def number(self, key: str) -> int:
        text = self.facts.get(key, ["0"])[0]
        return int(text) if text.isdecimal() and len(text) < 20 else 0


def run_runner(
    runner: Path,
    job: Path,
    result: Path,
    files: tuple[int, ...],
    on_look: Callable[[], None],
    sandbox: Sandbox = Sandbox.DEFAULT,
) -> RunnerReport:
    """Runs a job to its end; `on_look` is called now and then. An interruption ends the runner gently."""
    log = result.with_suffix(".log")
    interrupted: list[bool] = []
    with log.open("wb") as said:
        child = Child(
            [runner, job],
            bounds=Limits(grace=_GRACE_SECONDS),
            environment=rules.environment(sandbox),
            cwd=rules.working_folder(sandbox, job.parent),
            output=said,
            only_errors=True,
            pass_fds=files,
            leash=False,  # whoever is killed leaves it the manifests to write
        )

    def stop() -> None:
        interrupted.append(True)
        child.process.send_signal(signal.SIGTERM)

    def look() -> None:
        if log.stat().st_size > limits.PRINTED_BYTES:
            raise JobError(
                f"the run logged more than {limits.PRINTED_BYTES >> 20} MiB: it was ended",
                hint="take prints out of its orchestration and kernels",
            )
        on_look()

    with _sigterm_as_interrupt():
        ended = child.wait(look=look, on_interrupt=stop)
    report = _read(result, ended.code)
    with open_regular(log, follow=False) as file:
        report.said = file.read(limits.PRINTED_KEPT).decode("utf-8", errors="replace")
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


def _read(path: Path, code: int) -> RunnerReport:
    report = RunnerReport()
    try:
        text = read_regular(path, most=limits.RESULT_BYTES, follow=False).decode("utf-8", "surrogateescape")
    except (OSError, InputError):
        text = ""
    for line in text.splitlines():
        key, *rest = (unescape(part) for part in line.split("\t"))
        if key == "remark" and len(rest) == 3:
            report.remarks.append(f"{rest[0]}:{rest[1]} {rest[2]}")
        report.facts.setdefault(key, rest)
    facts = report.facts
    if "end" not in facts:
        signalled = -code if code < 0 else 0
        if signalled == signal.SIGKILL:
            text = "the runner was killed (out of memory?)"
            report.failure = Failure(Fault.ENVIRONMENT, text, signal=signalled)
        else:
            text = f"signal {signalled}" if signalled else f"exit code {code}"
            text = f"the orchestration ended its process with {text}"
            report.failure = Failure(Fault.INPUT, text, signal=signalled)
    elif facts.get("status", [""])[:1] != ["ok"]:
        try:
            report.failure = _failure(facts)
        except (ValueError, KeyError, IndexError) as error:
            text = f"the run wrote over what the runner says of it: {limits.cut(str(error))}"
            report.failure = Failure(Fault.KERNEL, text)
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
