"""The first of some revisions whose build is worse than a good one: a build command, driven by halving."""

from __future__ import annotations

import enum
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from insight_trace import supervisor
from insight_trace.errors import JobError, RequestError
from insight_trace.guard.difference import Difference
from insight_trace.limits import GIB, cut

_HOLE = "{rev}"


class Trial(enum.StrEnum):
    GOOD = "good"
    BAD = "bad"
    SKIPPED = "skipped"  # its build command failed


class Tried(Struct, frozen=True):
    """One revision that was built."""

    revision: str
    trial: Trial
    sentence: str = ""


class Bisection(Struct, frozen=True):
    """Which revision began it."""

    first_bad: str
    candidates: tuple[str, ...]  # one, or several where those between cannot be built
    tried: tuple[Tried, ...]
    difference: Difference | None  # of the first bad one


def bisect(
    revisions: Sequence[str],
    build: Callable[[str], Path],
    judge: Callable[[Path], Difference],
    progress: Callable[[str], None] = lambda _step: None,
) -> Bisection:
    """The first bad one of revisions in order; the last must be bad, what stands before the first is good.

    `build` returns the folder of a revision's build; a JobError of it passes the revision over.
    """
    if not revisions:
        raise RequestError("there is no revision to try", hint="--revisions OLD..NEW, or a list: r1,r2,r3")
    known: dict[int, tuple[Tried, Difference | None]] = {}

    def tried(index: int) -> Trial:
        if index not in known:
            revision = revisions[index]
            progress(f"build {revision} ({len(known) + 1})")
            try:
                folder = build(revision)
            except JobError as error:
                known[index] = (Tried(revision, Trial.SKIPPED, str(error)), None)
            else:
                found = judge(folder)
                worst = found.errors[0].sentence if found.errors else ""
                trial = Trial.BAD if found.errors else Trial.GOOD
                known[index] = (Tried(revision, trial, worst), found)
        return known[index][0].trial

    good, bad = -1, len(revisions) - 1
    if tried(bad) is not Trial.BAD:
        raise JobError(
            f"the last revision, {revisions[bad]}, is {known[bad][0].trial}: there is nothing to find",
            hint="the list goes from older to newer, and its last one has the error",
        )
    while bad - good > 1:
        between = sorted(range(good + 1, bad), key=lambda i: abs(2 * i - good - bad))
        middle = next((i for i in between if tried(i) is not Trial.SKIPPED), None)
        if middle is None:
            break
        if tried(middle) is Trial.BAD:
            bad = middle
        else:
            good = middle
    return Bisection(
        revisions[bad],
        tuple(revisions[good + 1 : bad + 1]),
        tuple(tried for tried, _ in known.values()),
        known[bad][1],
    )


def revisions_of(text: str) -> tuple[str, ...]:
    """`r1,r2,r3`, or a range of this folder's repository: `v0.60..v0.61`, older first."""
    if ".." not in text:
        return tuple(word for word in text.replace(",", " ").split() if word)
    try:
        done = supervisor.run(
            ["git", "rev-list", "--reverse", "--first-parent", text, "--"],
            bounds=supervisor.Limits(seconds=60),
        )
    except OSError as error:
        raise RequestError(f"--revisions {text}: git cannot be asked: {error.strerror}") from None
    if done.code:
        said = done.said.decode("utf-8", "replace").strip().splitlines()
        raise RequestError(f"--revisions {text}: {said[0] if said else 'git knows no such range'}")
    return tuple(done.said.decode("ascii", "replace").split())


def builder(command: str, output: str, seconds: float) -> Callable[[str], Path]:
    """Runs the command for a revision, {rev} in it; its build lies where `output` says, {rev} in it as well."""
    if _HOLE not in command:
        raise RequestError(f"--bisect: the command names no {_HOLE}", hint="--bisect 'make build REV={rev}'")

    def build(revision: str) -> Path:
        line = command.replace(_HOLE, shlex.quote(revision))
        done = supervisor.run(["sh", "-c", line], bounds=supervisor.Limits(seconds=seconds, output=GIB))
        folder = Path(output.replace(_HOLE, revision))
        if done.over or done.code:
            said = done.said.decode("utf-8", "replace").strip().splitlines()
            why = "took too long" if done.over == "time" else f"ended with {done.code}"
            raise JobError(f"its build command {why}" + (f": {cut(said[-1])}" if said else ""))
        if not folder.exists():
            raise JobError(f"its build command left no {folder}")
        return folder

    return build
