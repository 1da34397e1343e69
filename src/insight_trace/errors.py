"""The one error type that a user can act on."""

from __future__ import annotations


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
