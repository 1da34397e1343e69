"""The folder that an agent's tools never leave: every path is looked at before it is used, and the system holds the rest.

A path of a request is refused here with a reason. What a file of the folder leads to (a recording that names a source
elsewhere) is held back by Landlock, which the process of the tools enters before its first request.
"""

from __future__ import annotations

import ctypes
import os
import stat
import sys
from collections.abc import Iterable
from pathlib import Path

from insight_trace.errors import JobError, RequestError
from insight_trace.limits import cut
from insight_trace.simulate.embedded.sandbox import LANDLOCK_FOR_KERNELS, landlock_version

_LONGEST = 1024
# the system's programs and libraries: what a compiler and Python need
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/opt", "/proc", "/dev/null", "/dev/zero",
           "/dev/urandom", "/dev/random", "/dev/tty", "/sys/fs/cgroup", "/sys/devices/system")  # fmt: skip


class Root:
    """A folder, and paths in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        if not self.folder.is_dir():
            raise RequestError(
                f"{folder} is no folder", hint="--root names the folder that the tools work in"
            )

    def inside(self, given: str, *, new: bool = False) -> Path:
        """A path of a request; `new`: it may not be there yet. RequestError for what leads out, and for links."""
        if not given or len(given) > _LONGEST or "\0" in given:
            raise RequestError(f"'{cut(given)}' is no path")
        path = Path(os.path.normpath(self.folder / given))
        if not path.is_relative_to(self.folder):
            raise RequestError(
                f"{cut(given)} lies outside of the folder that these tools work in",
                hint="paths are relative to it; `--root` of the server names it",
            )
        place = self.folder
        for part in path.relative_to(self.folder).parts:
            place = place / part
            try:
                kind = place.lstat().st_mode
            except FileNotFoundError:
                break
            except OSError as error:
                raise RequestError(f"{cut(given)}: {error.strerror}") from None
            if stat.S_ISLNK(kind):
                raise RequestError(f"{self.name(place)} is a link: these tools follow none")
        if not new and not path.exists():
            raise RequestError(f"there is no {cut(given)}")
        return path

    def fresh(self, given: str, usual: str) -> Path:
        """A folder to write: the one that is asked for, or the next free one of a usual name."""
        if given:
            return self.inside(given, new=True)
        for number in range(1, 100_000):
            path = self.inside(f"runs/{usual}_{number}", new=True)
            if not path.exists():
                return path
        raise JobError("there are 100,000 runs", hint="name an output")

    def name(self, path: object) -> str:
        """As answers name it."""
        text = str(path)
        return text.removeprefix(f"{self.folder}/") if text != str(self.folder) else "."


class _Attribute(ctypes.Structure):
    _fields_ = (("handled_access_fs", ctypes.c_uint64),)


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


_CREATE, _ADD, _RESTRICT, _NO_NEW_PRIVILEGES = 444, 445, 446, 38
_ALL = (1 << 15) - 1  # every right over files that version 3 knows
_READ = 0b1101  # execute, read files, read folders
_READ_FILE = 0b101
_OF_FILES = 0b100_0000_0000_0111  # execute, write, read, truncate: what a rule over a file may name


def confine(readable: Iterable[str | Path], writable: Iterable[str | Path]) -> None:
    """From now on this process and what it starts see these places and the system's own; JobError where it cannot be."""
    if landlock_version() < LANDLOCK_FOR_KERNELS:
        raise JobError(
            "this system cannot keep a process to a folder: it has no Landlock, or an old one (Linux 6.2 is needed)",
            hint="`insight-trace mcp --sandbox default` starts without that wall",
        )
    libc = ctypes.CDLL(None, use_errno=True)
    wanted = _Attribute(_ALL)
    rules = libc.syscall(_CREATE, ctypes.byref(wanted), ctypes.sizeof(wanted), 0)
    if rules < 0:
        raise JobError(f"no rules for files: {os.strerror(ctypes.get_errno())}")
    try:
        for path in {*map(str, readable), *_SYSTEM, *_python()}:
            _allow(libc, rules, path, _READ)
        _allow(libc, rules, "/dev/null", _OF_FILES)
        for path in map(str, writable):
            _allow(libc, rules, path, _ALL)
        if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.syscall(_RESTRICT, rules, 0):
            raise JobError(f"the rules for files do not hold: {os.strerror(ctypes.get_errno())}")
    finally:
        os.close(rules)


def _allow(libc: ctypes.CDLL, rules: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # what is not there needs no right
    try:
        folder = stat.S_ISDIR(os.fstat(place).st_mode)
        rule = _Beneath(rights if folder else rights & _OF_FILES, place)
        if libc.syscall(_ADD, rules, 1, ctypes.byref(rule), 0):
            raise JobError(f"no rule for {path}: {os.strerror(ctypes.get_errno())}")
    finally:
        os.close(place)


def _python() -> set[str]:
    """Where this interpreter, its packages and the tool itself lie."""
    here = Path(__file__).resolve().parents[2]
    places = {sys.prefix, sys.base_prefix, sys.exec_prefix, str(here), os.path.realpath(sys.executable)}
    return places | {path for path in sys.path if path and Path(path).is_absolute()}
