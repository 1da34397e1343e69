"""What a kernel's process may do: a kernel is code that somebody else wrote.

`default` and `strict` are carried out by the runner itself before it loads a kernel (engine/sandbox.cpp); the
environment and the working folder are chosen here. docs/limits.md and SECURITY.md say what that holds back.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from insight_trace import limits
from insight_trace.errors import RequestError


class Sandbox(enum.StrEnum):
    """How much of the machine a kernel sees."""

    STRICT = "strict"  # also: no files but its own folder and the system's libraries, no network; the compiler, too
    DEFAULT = "default"  # no secrets of the environment, no processes, bounded, nothing to gain
    OFF = "off"  # as the user who started it

    @classmethod
    def chosen(cls) -> Sandbox:
        """As INSIGHT_TRACE_SANDBOX says, which --sandbox sets."""
        given = os.environ.get("INSIGHT_TRACE_SANDBOX", "default")
        try:
            return cls(given)
        except ValueError:
            raise RequestError(
                f"INSIGHT_TRACE_SANDBOX is {limits.cut(given)}", hint="strict, default or off"
            ) from None


_LANDLOCK_CREATE_RULESET = 444  # the same number on every machine
_LANDLOCK_VERSION = 1
# what strict needs (engine/sandbox.cpp): truncating files is known from version 3 on, signals from 6 on
LANDLOCK_FOR_KERNELS, LANDLOCK_FOR_HOSTS = 3, 6


def landlock_version() -> int:
    """The version of Landlock, which keeps files away from a process; 0 where the system has none."""
    import ctypes

    found = ctypes.CDLL(None, use_errno=True).syscall(_LANDLOCK_CREATE_RULESET, None, 0, _LANDLOCK_VERSION)
    return max(0, int(found))


def seccomp_is_there() -> bool:
    """Whether the system can keep calls away from a process."""
    try:
        return "Seccomp:" in Path("/proc/self/status").read_text()
    except OSError:
        return False


_ENVIRONMENT = frozenset(
    {"PATH", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
)
_ENVIRONMENT_PREFIXES = ("INSIGHT_TRACE_", "ASAN_", "UBSAN_", "TSAN_", "LSAN_", "PTO")


def environment(sandbox: Sandbox, given: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables that a kernel's process gets: outside `off` an allow-list, for others may hold secrets."""
    if sandbox is Sandbox.OFF:
        return dict(given)
    return {
        name: value
        for name, value in given.items()
        if name in _ENVIRONMENT or name.startswith(_ENVIRONMENT_PREFIXES)
    }


def working_folder(sandbox: Sandbox, job: Path) -> Path | None:
    """A folder of its own, empty; None where it works in ours."""
    if sandbox is Sandbox.OFF:
        return None
    place = job / "work"
    place.mkdir(mode=0o700, exist_ok=True)
    return place


# the system's programs and libraries, and how they are found
_SYSTEM = (
    "/usr", "/bin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/ld.so.preload", "/etc/ld.so.conf",
    "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime",
)  # fmt: skip


def job_lines(sandbox: Sandbox, job: Path, readable: Sequence[Path] = ()) -> list[str]:
    """What the runner is to do to itself before it loads a kernel."""
    if sandbox is Sandbox.OFF:
        return [f"sandbox\t{sandbox.value}"]
    bounds = {"files": limits.RUN_DESCRIPTORS, "file": limits.RUN_FILE_BYTES}
    return rules(sandbox, (job,), readable) + [f"bound\t{name}\t{most}" for name, most in bounds.items()]


def rules(sandbox: Sandbox, writable: Sequence[Path], readable: Sequence[Path]) -> list[str]:
    """The sandbox and the folders that a strict one leaves."""
    from insight_trace.simulate.embedded.memory import escape

    lines = [f"sandbox\t{sandbox.value}"]
    lines += [f"allow\twrite\t{escape(str(path))}" for path in writable]
    return lines + [f"allow\tread\t{escape(str(path))}" for path in (*_SYSTEM, *readable)]
