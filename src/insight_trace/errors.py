"""The one error type that a user can act on, and what becomes of errors of other kinds."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable

_LONG_WORD = re.compile(r"\S{201,}")
_LONGEST_TEXT = 4000


class InsightTraceError(Exception):
    """What is wrong, where, and what to do next. Commands print it; it never shows as a traceback.

    `exit_code` is 2 for a wrong request and 1 for a job that failed.
    """

    exit_code = 1

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text}\n  {self.hint}" if self.hint else text


class RequestError(InsightTraceError):
    """The request itself was wrong: a name that does not exist, a flag that contradicts another."""

    exit_code = 2


class InputError(InsightTraceError):
    """A file that was given cannot be used: broken, cut off, or not what it claims to be."""


class JobError(InsightTraceError):
    """The job was right but did not get done: a kernel, a compiler or a simulator failed."""


# --- errors of the system --------------------------------------------------------------------------------

_NEXT_STEP = {
    errno.ENOSPC: "make room on that disk, or write elsewhere (-o, TMPDIR, INSIGHT_TRACE_CACHE)",
    errno.EDQUOT: "your quota there is used up: make room, or write elsewhere (-o, TMPDIR)",
    errno.EROFS: "that place is read-only: name another with -o",
    errno.EACCES: "you may not do that there: change its permissions, or name another place",
    errno.EPERM: "you may not do that there: change its permissions, or name another place",
    errno.ENAMETOOLONG: "shorten the name",
    errno.ENOENT: "check the spelling; it must exist",
    errno.ENOTDIR: "a file stands where a folder is needed: name another place",
    errno.EISDIR: "a folder stands where a file is needed: name a file",
    errno.EEXIST: "something stands there already: name another place",
    errno.ELOOP: "links there lead in a circle: name the file itself",
    errno.EMFILE: "too many files are open: raise the limit (ulimit -n)",
    errno.ENFILE: "too many files are open on this machine",
    errno.ENOMEM: "the machine has no memory left: end other programs, or ask for less",
    errno.EIO: "the device reports an error: look at its health",
}


def as_error(error: Exception) -> InsightTraceError:
    """Any exception as one that a user can act on."""
    if isinstance(error, InsightTraceError):
        return error
    if isinstance(error, OSError):
        return _of_the_system(error)
    if isinstance(error, MemoryError):
        return JobError("the machine has no memory left for this", hint=_NEXT_STEP[errno.ENOMEM])
    if isinstance(error, UnicodeEncodeError) and error.reason == "surrogates not allowed":
        name = error.object[max(0, error.start - 40) : error.end + 20]
        return InputError(f"a name in it is not UTF-8: …{shown(name)}…", hint="rename that file or folder")
    if isinstance(error, RecursionError):
        return InputError("the input is nested too deeply", hint="docs/limits.md says what is taken")
    return JobError(
        f"{type(error).__name__}: {error}",
        where="a fault of Insight Trace",
        hint="run it again with --debug, and report what that prints",
    )


def _of_the_system(error: OSError) -> InsightTraceError:
    reason = os.strerror(error.errno) if error.errno is not None else str(error) or type(error).__name__
    names = [os.fsdecode(name) for name in (error.filename, error.filename2) if isinstance(name, str | bytes)]
    if not names and error.errno == errno.ENOENT and not _has_working_folder():
        return RequestError("the working folder is gone", hint="change to a folder that exists")
    hint = _NEXT_STEP.get(error.errno or 0, "look at that place and try again")
    if error.errno is None and "requested and" in reason:  # what NumPy says of a disk that became full
        reason, hint = "not all of an array could be written", _NEXT_STEP[errno.ENOSPC]
    return JobError(reason, where=names[-1] if names else "", hint=hint)


def _has_working_folder() -> bool:
    try:
        os.getcwd()  # noqa: PTH109
    except OSError:
        return False
    return True


# --- runs that failed ------------------------------------------------------------------------------------

_FAULT_STEPS = {
    "kernel": "look at that line of the kernel",
    "input": "check what the kernel is given: its arguments, its entry, its orchestration",
    "environment": "look at the machine: memory, disks and limits (docs/limits.md)",
    "not_supported": "docs/tile-ops.md lists what runs here; leave it out, or ask for it",
    "our_bug": "this is a fault of Insight Trace: report it with the kernel, if you may share that",
}
_LIMIT_STEPS = {
    "time": "--time-limit S gives it more time; if it hangs, look at that line",
    "memory": "look for a loop that allocates or touches without end (docs/limits.md)",
    "output": "take prints out of its loops (docs/limits.md)",
}


def next_step(fault: str, limit: str = "", log: str = "") -> str:
    """What to do about a run that failed, by whose fault it was and the limit that it reached."""
    return f"more in {log}" if log else _LIMIT_STEPS.get(limit) or _FAULT_STEPS[fault]


# --- for a terminal ---------------------------------------------------------------------------------------


def did_you_mean(word: str, known: Iterable[str], form: str = "did you mean '{}'? ") -> str:
    """What was probably meant, in words; "" where nothing is near."""
    import difflib

    near = difflib.get_close_matches(word, list(known), n=1)
    return form.format(near[0]) if near else ""


def shown(text: str) -> str:
    """A message for a terminal: no control characters, no endless words, not endless itself."""
    text = _LONG_WORD.sub(lambda m: f"{m[0][:150]}…{m[0][-40:]}", text)
    text = "".join(c if c == "\n" or c.isprintable() else repr(c)[1:-1] for c in text[: _LONGEST_TEXT + 1])
    return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 1] + "…"
