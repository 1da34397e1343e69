"""Finding a C++ compiler, and saying what went wrong when it refuses a kernel."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

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


@dataclass(frozen=True, slots=True)
class CompileError:
    """The first thing that the compiler objected to."""

    file: str
    line: int
    message: str
    missing_op: str = ""  # what of the tile API our headers lack, if that is the reason
    refused: str = ""  # what kind of source this is, if we take none of that kind


_ERROR = re.compile(
    r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<message>.*)$", re.M
)
_REQUIRED = re.compile(r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?:\d+:)?\s+required from here", re.M)
_UNDECLARED = re.compile(
    r"[‘'](?P<name>(?:pto::)?\w+)[’'] (?:was not declared|is not a member|has not been declared)"
    r"|[‘'](?P<type>\w+)[’'] (?:in namespace [‘']pto\b|does not name a type)"
    r"|(?:use of undeclared identifier|unknown type name) [‘'](?P<clang>\w+)[’']"
    r"|no (?:member|template|type) named [‘'](?P<member>\w+)[’']"
)
_MISSING_HEADER = re.compile(
    r"[‘']?(?P<header>pto/[\w/.-]+)[’']?: No such file|[‘'](?P<clang>pto/[\w/.-]+)[’'] file not found"
)
# Tile ops (TADD, MGATHER) and what they work with (TPipe), or anything of the tile API's own namespace.
_TILE_API = re.compile(r"^(?:pto::\w+|[TM][A-Z]\w+)$")
# Headers of the vendor's class library (AscendC); kernels written with it are no tile kernels.
_VENDOR_HEADER = re.compile(
    r"(?P<name>(?:basic_api/|adv_api/|kernel_)[\w/]+\.h|kernel_operator\.h|lib/[\w/]+\.h)"
    r"(?:: No such file or directory|[’'] file not found)"
)


def first_error(log: str, source: Path) -> CompileError:
    """The first error of a compiler's output, placed in the kernel rather than in a header where possible."""
    match = _ERROR.search(log)
    if match is None:
        lines = [line for line in log.splitlines() if line.strip()]
        return CompileError(str(source), 0, lines[0] if lines else "the compiler failed without a word")
    file, line, message = match["file"], int(match["line"]), match["message"]
    if Path(file).name != source.name:
        # an instantiation inside a header: the kernel's own line stands in the notes before or after it
        for note in _REQUIRED.finditer(log):
            if Path(note["file"]).name == source.name:
                file, line = note["file"], int(note["line"])
                break
    vendor = _VENDOR_HEADER.search(message)
    if vendor:
        return CompileError(
            file, line, message, refused=f"a vendor AscendC body (it includes {vendor['name']})"
        )
    if Path(file).suffix == ".cce" or Path(match["file"]).suffix == ".cce":
        return CompileError(file, line, message, refused="a vendor body in raw CCE intrinsics")
    undeclared = _UNDECLARED.search(message)
    name = next(filter(None, undeclared.groups()), "") if undeclared else ""
    header = _MISSING_HEADER.search(message)
    if header:
        return CompileError(file, line, message, header["header"] or header["clang"])
    return CompileError(file, line, message, name if _TILE_API.match(name) else "")
