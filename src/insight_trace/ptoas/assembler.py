"""Uses a `ptoas` binary, where there is one, to make kernels of `.pto` files that have no `.cpp`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from insight_trace import supervisor
from insight_trace.chips import arch_named, family_named
from insight_trace.errors import InsightTraceError, RequestError
from insight_trace.limits import COMPILE_OUTPUT, PROBE_OUTPUT, PROBE_SECONDS
from insight_trace.ptoas.discovery import KernelSource
from insight_trace.ptoas.pto_parser import read_pto
from insight_trace.ptoas.pto_syntax import operations
from insight_trace.scene.build_directory import recorded_arch
from insight_trace.supervisor import Limits

_RELATIVE = ("ptoas", "ptoas.sh", "bin/ptoas", "build/tools/ptoas/ptoas")


def find_ptoas(given: Path | None, environment: Mapping[str, str] = os.environ) -> Path | None:
    """The assembler: as given, below PTOAS_ROOT, or on PATH; None without one."""
    if given is not None:
        if not given.is_file() or not os.access(given, os.X_OK):
            raise RequestError(f"--ptoas-bin: {given} is not an executable file")
        return given
    root = environment.get("PTOAS_ROOT")
    for place in _RELATIVE if root else ():
        candidate = Path(root or "") / place
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate
    found = shutil.which("ptoas", path=environment.get("PATH"))
    return Path(found) if found else None


def ptoas_version(ptoas: Path) -> str:
    """What the assembler calls itself, or why it does not start."""
    try:
        done = supervisor.run([ptoas, "--version"], bounds=Limits(PROBE_SECONDS, output=PROBE_OUTPUT))
    except OSError as error:
        return f"does not start: {error}"
    if done.over:
        return f"does not start: --version went over its limit of {done.over}"
    said = [line.strip() for line in done.said.decode(errors="replace").splitlines() if line.strip()]
    named = [line for line in said if "ptoas" in line.casefold()]
    if done.code != 0:
        return f"does not start: {(said or ['exit code ' + str(done.code)])[0]}"
    return (named or said or ["says nothing"])[0]


def _flags(pto: Path, build: Path, target: str) -> list[str]:
    """Level 3 for text whose tiles have fixed addresses; sync is inserted as PyPTO has it inserted.

    The target is what the user names, else what the text says, else what its build records.
    """
    module = read_pto(pto)
    flags = ["--enable-insert-sync"]
    tiles = [o for f in module.functions.values() for o in operations(f.body) if o.name == "pto.alloc_tile"]
    if tiles and all(tile.after("addr") is not None for tile in tiles):
        flags.append("--pto-level=level3")
    arch = target or arch_named(module.attributes.get("pto.target_arch", "")) or recorded_arch(pto, build)
    if arch:
        flags.append(f"--pto-arch={family_named(arch).ptoas_arch}")
    return flags


def assemble(
    sources: Sequence[KernelSource],
    ptoas: Path,
    into: Path,
    *,
    timeout: float,
    build: Path,
    target: str = "",
) -> tuple[tuple[KernelSource, ...], Mapping[Path, str]]:
    """Sources with a `.cpp` each where the assembler could make one; by `.pto`, what it said where not."""
    result: list[KernelSource] = []
    problems: dict[Path, str] = {}
    for number, source in enumerate(sources):
        if source.cpp is not None or source.pto is None:
            result.append(source)
            continue
        directory = into / f"{number:04d}"
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        cpp = directory / f"{source.pto.stem}.cpp"
        try:
            command = [str(ptoas), str(source.pto), "-o", str(cpp), *_flags(source.pto, build, target)]
            done = supervisor.run(command, bounds=Limits(timeout, output=COMPILE_OUTPUT))
        except InsightTraceError as error:
            problems[source.pto] = str(error)
        except OSError as error:
            problems[source.pto] = f"{source.pto}: {ptoas}: {error}"
        else:
            if done.code == 0 and not done.over and cpp.is_file():
                made = source.pto.stat()  # the same text gives the same kernel, whenever it is assembled
                os.utime(cpp, ns=(made.st_atime_ns, made.st_mtime_ns))
                result.append(replace(source, cpp=cpp))
                continue
            said = [line for line in done.said.decode(errors="replace").splitlines() if line.strip()]
            if done.over:
                said = [f"error: it went over its limit of {done.over}"]
            cause = next((line for line in said if "error" in line), said[-1] if said else "no message")
            problems[source.pto] = f"{source.pto}: the assembler refused it: {cause.strip()[:400]}"
        result.append(source)
    return tuple(result), problems
