"""Can this installation do it? Asked before anything is built, so that the answer names the cause."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from insight_trace.chips import Family
from insight_trace.errors import InsightTraceError, JobError, RequestError
from insight_trace.scratch import scratch_folder
from insight_trace.simulate.msprof.toolkit import TRIPLETS, Toolkit
from insight_trace.simulate.msprof.toolkit_processes import capture

CAMODEL = "lib/libruntime_camodel.so"
_PROBE_SECONDS = 120.0
_TL_PROBE = "__biasbuf__ float *probe;\n"
_WORKER_WORDS = ("--application", "Options:")
_WORKER_FAULTS = ("Cannot find msopprof", "does not exist or permission denied", "is soft link")


class WorkerError(JobError):
    """msprof is there, the program that does its work is not."""


@dataclass(frozen=True, slots=True)
class Ready:
    """An installation that passed, and the chip to simulate."""

    toolkit: Toolkit
    target: Family
    msprof: Path
    bisheng: Path
    soc_version: str
    simulator_lib: Path


def prepare(toolkits: Iterable[Toolkit], target: Family, soc_version: str | None, none: JobError) -> Ready:
    """The first installation that passes. If none does, why the best one did not; `none` if there is none."""
    first: InsightTraceError | None = None
    for toolkit in toolkits:
        try:
            return check(toolkit, target, soc_version)
        except InsightTraceError as error:
            first = first or error
    raise first or none


def check(toolkit: Toolkit, target: Family, soc_version: str | None) -> Ready:
    """Everything a build and a run need, or an error that says what is missing."""
    bisheng = toolkit.program("bisheng")
    if bisheng is None:
        raise JobError("the compiler bisheng is missing", where=_named(toolkit))
    if not tl_capable(bisheng, target, toolkit.environment):
        raise JobError(
            f"bisheng does not know the tile language that kernels for {target.target} use (no __biasbuf__)",
            where=_named(toolkit),
            hint="a newer CANN is needed; --cann-home names another one",
        )
    msprof = toolkit.program("msprof")
    if msprof is None:
        raise JobError("msprof is missing", where=_named(toolkit))
    fault = worker_fault(msprof, toolkit.environment)
    if fault:
        raise WorkerError(
            f"msprof has no working simulator worker: {fault}",
            where=_named(toolkit),
            hint="this CANN lacks tools/msopprof; install the full toolkit, or name another with --cann-home",
        )
    soc, lib = choose_soc(toolkit.home, target, soc_version)
    return Ready(toolkit, target, msprof, bisheng, soc, lib)


def tl_capable(bisheng: Path, target: Family, environment: Mapping[str, str]) -> bool:
    """Whether the compiler knows the tile language. Only its own words against it count as a no."""
    with scratch_folder("probe") as folder:
        source = folder / "probe.cpp"
        source.write_text(_TL_PROBE)
        flags = [
            "-xcce",
            "-c",
            "--cce-aicore-enable-tl",
            f"--cce-aicore-arch={target.aicore_arch}",
            "-std=c++17",
        ]
        command: list[str | Path] = [bisheng, *flags, source, "-o", folder / "probe.o"]
        _, output = capture(command, environment=environment, seconds=_PROBE_SECONDS, cwd=folder)
    return not (b"__biasbuf__" in output and b"unknown type" in output)


def worker_fault(msprof: Path, environment: Mapping[str, str]) -> str:
    """What is wrong with msprof's simulator worker, or nothing. Its words tell: its exit code is always 0."""
    with scratch_folder("probe") as folder:
        command: list[str | Path] = [msprof, "op", "simulator", "--help"]
        _, output = capture(command, environment=environment, seconds=_PROBE_SECONDS, cwd=folder)
    text = output.decode("utf-8", "replace")
    for line in text.splitlines():
        if any(words in line for words in _WORKER_FAULTS):
            return line.strip()
    missing = [words for words in _WORKER_WORDS if words not in text]
    return f"its help does not mention {' or '.join(missing)}" if missing else ""


def simulators(home: Path) -> dict[str, Path]:
    """Chips that really have a camodel library: folder name -> library folder."""
    machine = "aarch64-linux" if platform.machine() in ("aarch64", "arm64") else "x86_64-linux"
    triplets = (machine, *(triplet for triplet in TRIPLETS if triplet != machine))
    found: dict[str, Path] = {}
    for folder in (*(f"{triplet}/simulator" for triplet in triplets), "simulator", "tools/simulator"):
        for library in sorted((home / folder).glob(f"*/{CAMODEL}")):
            found.setdefault(library.parent.parent.name, library.parent)
    return dict(sorted(found.items()))


def choose_soc(home: Path, target: Family, requested: str | None) -> tuple[str, Path]:
    """The simulator folder to use: an exact name before a prefix, and only one that has its library."""
    found = simulators(home)
    listed = ", ".join(found) or "none"
    if requested is not None:
        matches = _matching(found, (requested,), (requested,))
        if not matches:
            raise RequestError(
                f"there is no simulator for {requested} below {home}",
                hint=f"with a camodel library: {listed}",
            )
    else:
        matches = _matching(found, target.simulators, target.vendor_names)
        if not matches:
            raise JobError(
                f"no simulator of the {target.target} family below {home} has a camodel library",
                hint=f"there are: {listed}; is --target right?",
            )
    return matches[0], found[matches[0]]


def _matching(found: Iterable[str], exact: tuple[str, ...], prefixes: tuple[str, ...]) -> list[str]:
    names = list(found)
    by_case = {name.casefold(): name for name in names}
    first = [by_case[name.casefold()] for name in exact if name.casefold() in by_case]
    families = [
        name for prefix in prefixes for name in names if name.casefold().startswith(prefix.casefold())
    ]
    return list(dict.fromkeys(first + families))


def _named(toolkit: Toolkit) -> str:
    version = f" {toolkit.version}" if toolkit.version else ""
    return f"CANN{version} at {toolkit.home} (from {toolkit.how})"
