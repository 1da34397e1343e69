"""Finding a C++ compiler."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from insight_trace.errors import JobError, RequestError

_HINT = "install g++ (11 or newer) or clang++ (14 or newer), or `pip install insight-trace[compiler]`"


@dataclass(frozen=True, slots=True)
class Compiler:
    """A C++ compiler as a command, and what it says of itself."""

    command: tuple[str, ...]
    version: str

    @property
    def is_clang(self) -> bool:
        return "clang" in self.version.lower() or "zig" in self.command[0]

    @property
    def is_zig(self) -> bool:
        return "ziglang" in self.command or "zig" in self.version

    def run(self, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """One run of the compiler to its end, with what it printed."""
        return subprocess.run([*self.command, *arguments], capture_output=True, text=True)


@functools.lru_cache(maxsize=8)
def _probe(command: tuple[str, ...]) -> Compiler | None:
    try:
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = done.stdout.splitlines()
    return Compiler(command, lines[0]) if done.returncode == 0 and lines else None


def _ziglang() -> tuple[str, ...] | None:
    import importlib.util
    import sys

    if importlib.util.find_spec("ziglang") is None:
        return None
    return (sys.executable, "-m", "ziglang", "c++")


def find_compiler() -> Compiler:
    """CXX if it is set, else g++, clang++, then the ziglang wheel."""
    asked = os.environ.get("CXX")
    if asked:
        found = _probe(tuple(asked.split()))
        if found is None:
            raise RequestError(f"CXX is '{asked}', which does not run", hint=_HINT)
        return found
    for name in ("g++", "clang++"):
        path = shutil.which(name)
        found = _probe((path,)) if path else None
        if found:
            return found
    zig = _ziglang()
    found = _probe(zig) if zig else None
    if found is None:
        raise JobError("no C++ compiler was found", hint=_HINT)
    return found
