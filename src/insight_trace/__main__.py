"""`insight-trace` and `python -m insight_trace`."""

from __future__ import annotations

import os
import sys


def _ended(kind: type[BaseException], error: BaseException, trace: object) -> None:
    """An interruption before the command line is there to say it: one line, and the code of an interruption."""
    if _interrupted(error):
        os.write(2, b"insight-trace: interrupted\n")
        os._exit(130)
    sys.__excepthook__(kind, error, trace)  # type: ignore[arg-type]


def _interrupted(error: BaseException | None) -> bool:
    """Classes that are made during an import turn an interruption into an error of theirs."""
    return error is not None and (isinstance(error, KeyboardInterrupt) or _interrupted(error.__cause__))


sys.excepthook = _ended
# Threads of NumPy's OpenBLAS spin for a tenth of a second before they sleep, in every process that loads it: a third of the
# CPU of a replay, which multiplies no matrices. What does is as fast.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")


def main(argv: list[str] | None = None) -> int:
    """Runs one command line in this process and ends with it everything that it started."""
    from insight_trace.commands import run_line
    from insight_trace.commands.signals import orderly

    with orderly():
        return run_line(sys.argv[1:] if argv is None else argv)


if __name__ == "__main__":
    sys.exit(main())
