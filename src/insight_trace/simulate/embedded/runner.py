"""Starting the runner on a job, and reading what it says of it.

A kernel runs inside the runner and can do to its files what it likes: they are read as a stranger's.
"""

from __future__ import annotations

import re
import signal
from pathlib import Path

from msgspec import Struct, field

from insight_trace import limits
from insight_trace.errors import InputError, JobError
from insight_trace.model import MemoryUse
from insight_trace.outcome import Failure, Fault
from insight_trace.reading import open_regular, read_regular
from insight_trace.simulate.embedded import sandbox as rules
from insight_trace.simulate.embedded.job_files import NoRoomError, is_full
from insight_trace.simulate.embedded.memory import unescape
from insight_trace.simulate.embedded.records import ROW_BYTES, Site
from insight_trace.simulate.embedded.sandbox import Sandbox
from insight_trace.storage import NO_ROOM
from insight_trace.supervisor import Child, Ended, Limits

_PIPES = 8  # abi.hpp PipeId


class RunnerResult(Struct):
    """The runner's own account of a job."""

    failure: Failure | None = None
    sites: list[Site] = field(default_factory=list)
    unused_flags: list[tuple[int, ...]] = field(default_factory=list)
    remarks: list[tuple[str, int, str]] = field(
        default_factory=list
    )  # what is hardly meant: file, line, text
    found: list[tuple[int, ...]] = field(default_factory=list)  # rows of the checker
    redundant: list[tuple[str, ...]] = field(default_factory=list)
    tried: tuple[int, ...] = ()  # flags and barriers that were tried for that, and how many there are
    wrote: set[int] = field(default_factory=set)  # buffers that something was written to, by address
    born: list[tuple[str, ...]] = field(default_factory=list)  # the first NaN, the first infinity
    checked: tuple[int, ...] = ()  # touches of memory that the checker remembered, and their bytes
    printed: str = ""
    crash: tuple[str, int] | None = None  # shared object and offset of the instruction that crashed
    instructions: int = 0
    told: bool = False  # the runner itself said how it ended, and its files fit that
    garbled: bool = False  # what it said or left does not fit
    memory: MemoryUse | None = None
    waves: int | None = None  # None: the run did not get that far
    overfull: bool = False
    core_times: list[tuple[int, int]] = field(default_factory=list)
    journaled: int = 0  # rows that the journal holds whole
    together: bool = False  # its blocks have to be run in one process


def run_job(
    runner: Path,
    directory: Path,
    lines: list[str],
    seconds: float,
    sandbox: Sandbox = Sandbox.DEFAULT,
    readable: tuple[Path, ...] = (),
) -> RunnerResult:
    """Runs one job in a process of its own; every way to end becomes a result.

    `readable` is what a strict sandbox lets it see beside its own folder.
    """
    seconds = limits.seconds_given(seconds, "--time-limit")
    result = directory / "result"
    result.unlink(missing_ok=True)
    lines = [f"result\t{result}", *lines, f"seconds\t{seconds}"]
    ended = _started(runner, directory, lines, seconds, sandbox, readable).wait()
    said = ended.said.decode(errors="replace")
    parsed = None if ended.over else _read(result, directory / "records")
    if (parsed is None or parsed.garbled) and not ended.over and is_full(directory):
        raise NoRoomError(
            "no room for what the run leaves, where its files lie",
            hint="make room, or set TMPDIR to where there is some",
        )
    if parsed is None:
        return RunnerResult(failure=_silent_end(ended, said, seconds), printed=said)
    if parsed.failure is not None and parsed.failure.limit == "room":
        raise NoRoomError(parsed.failure.message, hint="make room, or set TMPDIR to where there is some")
    parsed.printed = said
    return parsed


def run_variants_job(
    runner: Path, directory: Path, lines: list[str], each: float, all_: float, sandbox: Sandbox,
    readable: tuple[Path, ...],
) -> None:  # fmt: skip
    """Runs a job of many variants, with seconds for each and for all; what they left is in the file that it names."""
    lines = [*lines, f"seconds\t{each}"]
    ended = _started(runner, directory, lines, all_ + each, sandbox, readable).wait()
    if ended.over or ended.code != 0:
        said = ended.said.decode(errors="replace").strip()
        raise JobError(f"runs with changes ended with {ended.over or ended.code}: {limits.cut(said)}")


def run_timings_job(
    runner: Path, directory: Path, lines: list[str], each: float, all_: float, sandbox: Sandbox,
    readable: tuple[Path, ...],
) -> None:  # fmt: skip
    """Runs a job of many launches; their rows are in the file that it names. One that fails is in its row."""
    result = directory / "result"
    lines = [f"result\t{result}", *lines, f"seconds\t{each}"]
    ended = _started(runner, directory, lines, all_ + each, sandbox, readable).wait()
    if ended.over == "time" or (not ended.over and ended.code == 0):
        return
    said = ended.said.decode(errors="replace").strip()
    found = _read(result, directory / "records")
    if found is not None and found.failure is not None:
        raise JobError(str(found.failure))
    raise JobError(f"the launches ended with {ended.over or ended.code}: {limits.cut(said)}")


def failure_in(head: str) -> Failure:
    """What the head of a result says of a run that failed."""
    try:
        found = _parse(f"{head}\nend\n")
    except (ValueError, KeyError, IndexError, OverflowError) as error:
        return _garbled(limits.cut(str(error))).failure or Failure(Fault.KERNEL, "garbled")
    if found is None or found.failure is None:
        return Failure(Fault.KERNEL, "the kernel's process ended and left no result")
    return found.failure


def _started(
    runner: Path, directory: Path, lines: list[str], seconds: float, sandbox: Sandbox, readable: tuple[Path, ...]
) -> Child:  # fmt: skip
    job = directory / "job"
    text = "\n".join([*lines, *rules.job_lines(sandbox, directory, readable)]) + "\n"
    bounds = Limits(seconds + limits.RUN_GRACE_SECONDS, output=limits.PRINTED_BYTES, kept=limits.PRINTED_KEPT)
    try:
        job.write_text(text, encoding="utf-8", errors="surrogateescape")
        return Child(
            [runner, job],
            bounds=bounds,
            environment=rules.environment(sandbox),
            cwd=rules.working_folder(sandbox, directory),
        )
    except OSError as error:
        kind = NoRoomError if error.errno in NO_ROOM else JobError
        raise kind(
            f"the runner does not start: {error}",
            where=str(runner),
            hint="look at the machine: room and permissions of temporary files (TMPDIR), processes, memory",
        ) from None


# What a sanitizer says first, and the first place in a source file that it names after that.
_REPORT = r"(?P<what>runtime error|ERROR: \w+Sanitizer): (?P<message>.*)"
_PLACE = r"(?m)(?:^|\s)(?P<file>/(?!usr/)[^\s:]+\.\w+):(?P<line>\d+)"


def _silent_end(ended: Ended, said: str, seconds: float) -> Failure:
    """The runner wrote no result: a limit ended it, the kernel did, the system, or a sanitizer."""
    if ended.over == "time":
        text = f"still running {limits.RUN_GRACE_SECONDS:g} s after its limit of {seconds:g} s: it was ended"
        return Failure(Fault.KERNEL, text, signal=signal.SIGKILL, limit="time")
    if ended.over == "output":
        text = f"the kernel printed more than {limits.PRINTED_BYTES >> 20} MiB: it was ended"
        return Failure(Fault.KERNEL, text, signal=signal.SIGKILL, limit="output")
    lines = said.strip().splitlines()
    for number, line in enumerate(lines):
        report = re.search(_REPORT, line)
        if report is None:
            continue
        place = re.search(_PLACE, "\n".join(lines[number:]))
        theirs = place is not None and not Path(place["file"]).is_relative_to(Path(__file__).parent)
        return Failure(
            Fault.KERNEL if theirs else Fault.OUR_BUG,
            f"a sanitizer ended the run: {report['message']}",
            place["file"] if place else "",
            int(place["line"]) if place else 0,
        )
    code = ended.code
    if code == -signal.SIGKILL:
        return Failure(Fault.ENVIRONMENT, "the runner was killed (out of memory?)", signal=signal.SIGKILL)
    if code == -signal.SIGSYS:
        text = "the kernel started a process or reached out of its own, which no kernel may"
        return Failure(Fault.KERNEL, text, signal=signal.SIGSYS)
    if code == -signal.SIGALRM:
        text = "the kernel broke its process so far that the crash could not be reported"
        return Failure(Fault.KERNEL, text, signal=signal.SIGALRM)
    if code >= 0:
        return Failure(Fault.KERNEL, f"the kernel ended its process with exit code {code}")
    name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
    return Failure(Fault.KERNEL, f"the kernel's process ended with {name} and left no result", signal=-code)


def _read(result: Path, records: Path) -> RunnerResult | None:
    """What the runner says, checked; None if it says nothing. What does not fit is the kernel's doing."""
    try:
        text = read_regular(result, most=limits.RESULT_BYTES, follow=False)
    except FileNotFoundError:
        return None
    except OSError as error:
        return _garbled(f"its result cannot be read: {error.strerror}")
    except InputError as error:
        return _garbled(f"its result {error.what}")
    try:
        parsed = _parse(text.decode("utf-8", errors="surrogateescape"))
        lacks_room = parsed is not None and parsed.failure is not None and parsed.failure.limit == "room"
        if parsed is not None and not parsed.together and not lacks_room:  # else what there is does not count
            parsed.told = _has_rows(records, parsed)
        return parsed
    except InputError as error:
        return _garbled(f"its instructions: {error.what}")
    except (ValueError, KeyError, IndexError, OverflowError, OSError) as error:
        return _garbled(limits.cut(str(error)))


def _garbled(why: str) -> RunnerResult:
    text = f"the kernel wrote over what the runner keeps of its run: {why}"
    return RunnerResult(failure=Failure(Fault.KERNEL, text), garbled=True)


def _has_rows(records: Path, parsed: RunnerResult) -> bool:
    """Whether there are as many instructions as it says; ValueError if there are others."""
    if not records.exists() and parsed.failure is not None:
        return False
    with open_regular(records, follow=False) as file:
        size = file.seek(0, 2)
    if size != parsed.instructions * ROW_BYTES:
        raise ValueError(f"{size} bytes of instructions where {parsed.instructions} instructions are told")
    return True


def _parse(text: str) -> RunnerResult | None:
    result = RunnerResult()
    facts: dict[str, list[str]] = {}
    for line in text.splitlines():
        key, *rest = (unescape(part) for part in line.split("\t"))
        if key == "site":
            file, at, name, pipe = rest
            result.sites.append(Site(file, _number(at), name, _number(pipe, _PIPES - 1)))
        elif key == "unused":
            numbers = tuple(map(_number, rest))
            if max(numbers[1:3]) >= _PIPES:
                raise ValueError(f"there is no pipe {max(numbers[1:3])}")
            result.unused_flags.append(numbers)
        elif key == "remark":
            result.remarks.append((rest[0], _number(rest[1]), rest[2]))
        elif key == "time":
            start, end = map(_number, rest)
            result.core_times.append((start, end))
        elif key == "found":
            result.found.append(tuple(map(_number, rest)))
        elif key == "redundant":
            result.redundant.append(tuple(rest))
        elif key == "wrote":
            result.wrote.add(_number(rest[0]))
        elif key == "born":
            result.born.append(tuple(rest))
        elif key not in facts:
            facts[key] = rest
    if "end" not in facts:
        return None
    if facts["status"][0] == "together":
        return RunnerResult(together=True)
    result.checked = tuple(map(_number, facts.get("checked", [])))
    result.tried = tuple(map(_number, facts.get("tried", [])))
    result.instructions = _number(facts.get("instructions", ["0"])[0], 1 << 40)
    result.journaled = _number(facts.get("journal", ["0"])[0], 1 << 40)
    if "waves" in facts:
        result.memory = MemoryUse(*map(_number, facts["l2"]))
        result.waves, result.overfull = _number(facts["waves"][0]), facts["waves"][1] == "1"
    if facts["status"][0] != "ok":
        file, at = facts.get("at", ["", "0"])
        result.failure = Failure(
            fault=Fault(facts["fault"][0]),
            message=limits.cut(facts.get("message", [""])[0], 2000),
            file=file,
            line=_number(at),
            signal=_number(facts.get("signal", ["0"])[0]),
            limit=limits.cut(facts.get("limit", [""])[0]),
        )
        if "pc" in facts:
            image, offset = facts["pc"]
            result.crash = (image, _number(offset, 1 << 64))
    return result


def _number(text: str, most: int = 1 << 62) -> int:
    if len(text) > 24 or not text.isascii():
        raise ValueError(f"{limits.cut(text)} is no number")
    value = int(text)
    if not -1 <= value <= most:
        raise ValueError(f"{value} is out of range")
    return value
