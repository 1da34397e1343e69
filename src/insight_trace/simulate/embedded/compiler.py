"""Finding a C++ compiler."""

from __future__ import annotations

import errno
import functools
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from insight_trace import limits, supervisor
from insight_trace.errors import JobError, RequestError
from insight_trace.scratch import scratch_folder
from insight_trace.simulate.embedded import compiled_from, sandbox

NOT_CONFINED = 125  # engine/runner.cpp
_HINT = "install g++ (11 or newer) or clang++ (14 or newer), or `pip install insight-trace[compiler]`"


class Confinement(Struct, frozen=True):
    """What a compiler may read and write beside the system's own files, and the program that holds it to that."""

    runner: Path
    writable: tuple[Path, ...]
    readable: tuple[Path, ...]

    def around(self, words: Sequence[str], own: Path) -> list[str]:
        """The command within its rules; `own` is for its temporary files."""
        program = Path(shutil.which(words[0]) or words[0]).resolve()
        readable = (*self.readable, *_installed(program), Path(sys.prefix), Path(sys.base_prefix))
        lines = sandbox.rules(sandbox.Sandbox.STRICT, (own, *self.writable), readable)
        rules = own / "rules"
        rules.write_text("\n".join(lines) + "\n", encoding="utf-8", errors="surrogateescape")
        return [str(self.runner), "--confined", str(rules), *words]


def _installed(program: Path) -> tuple[Path, ...]:
    """Where a compiler's own files are: PREFIX of PREFIX/bin, but of a user's home only the folders of programs."""
    prefix = program.parent.parent
    if not Path.home().is_relative_to(prefix):
        return (prefix,)
    return (program.parent, *(prefix / name for name in ("lib", "lib64", "libexec", "include")))


def searched_variables() -> dict[str, str]:
    """Those by which a compiler finds headers; folders in them are absolute, wherever it is run."""
    found = {name: os.environ[name] for name in compiled_from.SEARCHED if name in os.environ}
    return {
        name: ":".join(str(Path(part).absolute()) for part in value.split(":")) if "PATH" in name else value
        for name, value in found.items()
    }


class Compiler(Struct, frozen=True):
    """A C++ compiler as a command, and what it says of itself."""

    command: tuple[str, ...]
    version: str
    emulator: tuple[str, ...] = ()  # runs what it makes, where that is for another machine
    script: str = (
        ""  # its text, where it is one: a wrapper may add flags and says the version of what it wraps
    )

    @property
    def is_clang(self) -> bool:
        return "clang" in self.version.lower() or "zig" in self.command[0]

    @property
    def is_zig(self) -> bool:
        return "ziglang" in self.command or "zig" in self.version

    def run(
        self,
        arguments: Sequence[str],
        variables: Mapping[str, str] | None = None,
        within: Confinement | None = None,
        cwd: Path | None = None,
    ) -> supervisor.Ended:
        """One run of the compiler to its end or its limits; what it says is in English on every machine.

        `variables` are those by which it finds what a user's source includes: our own sources need none.
        """
        bounds = supervisor.Limits(
            limits.compile_seconds(),
            output=limits.COMPILE_OUTPUT,
            kept=limits.COMPILE_OUTPUT,
            address_space=None if self.is_zig else limits.COMPILE_BYTES,
            file=limits.COMPILE_FILE_BYTES,
        )
        words = [*self.command, *arguments]
        with scratch_folder("compile") as own:  # a compiler that is ended leaves its temporary files
            environment = os.environ if within is None else sandbox.environment(sandbox.Sandbox.STRICT)
            known = {
                name: value
                for name, value in environment.items()
                if name not in (*compiled_from.SEARCHED, *compiled_from.WRITTEN)
            }
            known |= {**(variables or {}), "LC_ALL": "C.UTF-8", "TMPDIR": str(own)}
            if within is not None:
                words = within.around(words, own)
                known["ZIG_GLOBAL_CACHE_DIR"] = str(own)
            done = supervisor.run(words, bounds=bounds, environment=known, cwd=cwd)
        if within is not None and done.code == NOT_CONFINED:
            said = done.said.decode("utf-8", errors="replace").strip()
            raise JobError(
                limits.cut(said), hint="run kernels of strangers in a container, without --sandbox strict"
            )
        return done


_IS_NO_PROGRAM = (errno.ENOENT, errno.EACCES, errno.ENOEXEC, errno.ENOTDIR, errno.ELOOP)


@functools.lru_cache(maxsize=8)
def _probe(command: tuple[str, ...]) -> Compiler | None:
    try:
        bounds = supervisor.Limits(limits.PROBE_SECONDS, output=limits.PROBE_OUTPUT)
        done = supervisor.run([*command, "--version"], bounds=bounds)
    except OSError as error:
        if error.errno not in _IS_NO_PROGRAM or error.filename == os.devnull:
            raise  # the machine's fault, and no reason to take another compiler
        return None
    lines = done.said.decode("utf-8", errors="replace").splitlines()
    if done.code != 0 or done.over or not lines:
        return None
    emulator = tuple(os.environ.get("INSIGHT_TRACE_EMULATOR", "").split())
    return Compiler(command, limits.cut(lines[0]), emulator, _script(command[0]))


def _script(program: str) -> str:
    try:
        with Path(shutil.which(program) or program).open("rb") as file:
            text = file.read(limits.STAMP_BYTES)
    except OSError:
        return ""
    return text.decode("utf-8", errors="replace") if text.startswith(b"#!") else ""


def _ziglang() -> tuple[str, ...] | None:
    import importlib.util

    if importlib.util.find_spec("ziglang") is None:
        return None
    return (sys.executable, "-m", "ziglang", "c++")


def find_compiler() -> Compiler:
    """CXX if it is set, else g++, clang++, then the ziglang wheel."""
    asked = os.environ.get("CXX")
    if asked:
        found = _probe(tuple(asked.split()))
        if found is None:
            raise RequestError(f"CXX is '{limits.cut(asked)}', which does not run", hint=_HINT)
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
