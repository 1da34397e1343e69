"""Starting the runner on a job, and reading what it says of it."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from insight_trace.errors import JobError
from insight_trace.model import Failure, Fault
from insight_trace.simulate.embedded.memory import unescape
from insight_trace.simulate.embedded.records import Site

_SHARED_MEMORY = Path("/dev/shm")
# The runner stops itself at its limit; this much later it is stopped from outside.
_GRACE_SECONDS = 10.0
_PRINTED_LIMIT = 1 << 20


@dataclass
class RunnerResult:
    """The runner's own account of a job."""

    failure: Failure | None = None
    sites: list[Site] = field(default_factory=list)
    unused_flags: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    printed: str = ""
    crash: tuple[str, int] | None = None  # shared object and offset of the instruction that crashed


@contextmanager
def job_directory() -> Iterator[Path]:
    """A private directory for one job's files, in memory where the machine has that."""
    where = str(_SHARED_MEMORY) if _SHARED_MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="insight-trace-", dir=where) as name:
        yield Path(name)


def run_job(runner: Path, directory: Path, lines: list[str], seconds: float) -> RunnerResult:
    """Runs one job in a process of its own; every way to end becomes a result."""
    job, result = directory / "job", directory / "result"
    job.write_text("\n".join([f"result\t{result}", *lines, f"seconds\t{seconds}"]) + "\n", encoding="utf-8")
    # a file, not a pipe: a kernel that prints without end fills neither our memory nor a buffer it would wait for
    printed = directory / "printed"
    with printed.open("w+b") as output:
        try:
            process = subprocess.Popen(
                [str(runner), str(job)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        except OSError as error:
            raise JobError(f"the runner does not start: {error}", where=str(runner)) from None
        if not _ended(process, seconds + _GRACE_SECONDS):
            process.kill()
        process.wait()
        output.seek(0)
        said = output.read(_PRINTED_LIMIT).decode(errors="replace")
    parsed = _parse(result)
    if parsed is not None:
        parsed.printed = said
        return parsed
    return RunnerResult(failure=_silent_end(process.returncode, said))


def _ended(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Whether the process ended in time, known at once: Popen.wait with a limit looks ever more seldom."""
    file = os.pidfd_open(process.pid)
    try:
        end = select.poll()
        end.register(file, select.POLLIN)
        return bool(end.poll(seconds * 1000))
    finally:
        os.close(file)


# What a sanitizer says first, and the first place in a source file that it names after that.
_REPORT = re.compile(r"(?P<what>runtime error|ERROR: \w+Sanitizer): (?P<message>.*)")
_PLACE = re.compile(r"(?:^|\s)(?P<file>/(?!usr/)[^\s:]+\.\w+):(?P<line>\d+)", re.MULTILINE)


def _silent_end(code: int, said: str) -> Failure:
    """The runner wrote no result: it was killed, or a sanitizer ended it."""
    if code == -signal.SIGKILL:
        return Failure(Fault.ENVIRONMENT, "the runner was killed (out of memory?)", signal=signal.SIGKILL)
    lines = said.strip().splitlines()
    for number, line in enumerate(lines):
        report = _REPORT.search(line)
        if report is None:
            continue
        place = _PLACE.search("\n".join(lines[number:]))
        theirs = place is not None and not Path(place["file"]).is_relative_to(Path(__file__).parent)
        return Failure(
            Fault.KERNEL if theirs else Fault.OUR_BUG,
            f"a sanitizer ended the run: {report['message']}",
            place["file"] if place else "",
            int(place["line"]) if place else 0,
        )
    message = lines[0] if lines else ""
    return Failure(Fault.OUR_BUG, f"the runner ended with {code}: {message}", signal=-code if code < 0 else 0)


def _parse(path: Path) -> RunnerResult | None:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    result = RunnerResult()
    facts: dict[str, list[str]] = {}
    for line in lines:
        key, *rest = (unescape(part) for part in line.split("\t"))
        if key == "site":
            result.sites.append(Site(rest[0], int(rest[1]), rest[2], int(rest[3])))
        elif key == "unused":
            core, source, target, event, count = map(int, rest)
            result.unused_flags.append((core, source, target, event, count))
        elif key not in facts:
            facts[key] = rest
    if "end" not in facts:
        return None
    if facts["status"][0] != "ok":
        at = facts.get("at", ["", "0"])
        result.failure = Failure(
            fault=Fault(facts["fault"][0]),
            message=facts.get("message", [""])[0],
            file=at[0],
            line=int(at[1]),
            signal=int(facts.get("signal", ["0"])[0]),
            limit=facts.get("limit", [""])[0],
        )
        if "pc" in facts:
            result.crash = (facts["pc"][0], int(facts["pc"][1]))
    return result
