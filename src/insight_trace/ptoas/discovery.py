"""Finds the kernels of a PyPTO build directory, and gives each a name of its own."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from insight_trace.errors import RequestError
from insight_trace.limits import SOURCE_BYTES
from insight_trace.reading import read_regular

RUN_PREFIX = "kernel_insight_all_funcs"
# Directories of earlier runs; their copies of kernels are not kernels of the build.
_RUN_PARTS = frozenset({"cases", "builds", "collect", "export", "funcs"})
_PLAIN_PARTS = frozenset({"ptoas", "next_levels", "kernels", "aic", "aiv"})


@dataclass(frozen=True, slots=True)
class KernelSource:
    """A generated kernel on disk. One of the two files may be missing."""

    cpp: Path | None
    pto: Path | None
    place: tuple[str, ...]  # directories between the build and the file that tell equal stems apart

    @property
    def path(self) -> Path:
        path = self.cpp or self.pto
        assert path is not None
        return path


def _pair(path: Path, root: Path) -> KernelSource:
    cpp, pto = path.with_suffix(".cpp"), path.with_suffix(".pto")
    if not pto.is_file():
        pto = _pto_of_wrapped(cpp) or pto
    try:
        parents = path.parent.relative_to(root).parts
    except ValueError:
        parents = ()
    place = tuple(part for part in parents if part not in _PLAIN_PARTS)
    return KernelSource(cpp if cpp.is_file() else None, pto if pto.is_file() else None, place)


def _pto_of_wrapped(cpp: Path) -> Path | None:
    """The `.pto` of a wrapped kernel, `kernels/ai*/name.cpp`: the one in ptoas/ that defines its function."""
    if cpp.parent.name not in ("aic", "aiv") or cpp.parent.parent.name != "kernels":
        return None
    wanted = f"@{cpp.stem}(".encode()
    ptos = sorted((cpp.parents[2] / "ptoas").glob("*.pto"))
    return next((pto for pto in ptos if wanted in read_regular(pto, most=SOURCE_BYTES)), None)


def _pairs(paths: Sequence[Path], root: Path) -> list[KernelSource]:
    stems = {path.with_suffix("") for path in paths}
    return [_pair(stem.with_name(stem.name + ".cpp"), root) for stem in sorted(stems)]


def _kernels_in(directory: Path) -> list[Path]:
    return [p for p in directory.iterdir() if p.suffix in (".cpp", ".pto") and p.is_file()]


def _of_an_earlier_run(path: Path, root: Path) -> bool:
    parts = path.relative_to(root).parts[:-1]
    return any(
        part in _RUN_PARTS or part.startswith(("insight", RUN_PREFIX, "kernel_insight")) for part in parts
    )


def find_sources(
    build: Path, *, ptoas_dir: Path | None = None, source_glob: str | None = None
) -> tuple[KernelSource, ...]:
    """The kernels of a build: top level first, then nested ones, each in the order of their paths."""
    if source_glob is not None:
        base = Path(source_glob).anchor
        relative = source_glob[len(base) :] if base else source_glob
        try:
            paths = [p for p in Path(base or ".").glob(relative) if p.suffix in (".cpp", ".pto")]
        except (ValueError, NotImplementedError) as error:
            raise RequestError(f"--source-glob {source_glob!r}: {error}") from None
        found = _pairs([p.absolute() for p in paths], build)
    elif ptoas_dir is not None:
        if not ptoas_dir.is_dir():
            raise RequestError(f"--ptoas-dir: {ptoas_dir} is not a directory")
        found = _pairs(_kernels_in(ptoas_dir), build)
    else:
        if not build.is_dir():
            raise RequestError(f"--build-dir: {build} is not a directory")
        found = _in_build(build)
    if not found:
        raise RequestError(
            f"no kernels in {ptoas_dir or build}" + (f" match {source_glob!r}" if source_glob else ""),
            hint="a PyPTO build has ptoas/*.cpp beside ptoas/*.pto; name another place with --ptoas-dir",
        )
    return tuple(found)


def _in_build(build: Path) -> list[KernelSource]:
    top = build / "ptoas"
    found = _pairs(_kernels_in(top), build) if top.is_dir() else []
    nested = [d for d in sorted((build / "next_levels").glob("**/ptoas")) if d.is_dir()]
    for directory in nested:
        found += _pairs(_kernels_in(directory), build)
    if found:
        return found
    anywhere = [d for d in sorted(build.glob("**/ptoas")) if d.is_dir()]
    paths = [p for d in anywhere for p in _kernels_in(d) if not _of_an_earlier_run(p, build)]
    if not paths:  # a build without an assembler leaves its .pto among the kernels
        paths = [p for p in sorted(build.glob("**/kernels/**/*.pto")) if not _of_an_earlier_run(p, build)]
    return _pairs(paths, build)


def _safe(name: str) -> str:
    """A name that can be a directory: no separators, nothing hidden, nothing a shell would take amiss."""
    return re.sub(r"[^A-Za-z0-9_.\-]", "_", name).lstrip(".-")[:120] or "kernel"


def unique_names(sources: Sequence[KernelSource], entries: Sequence[str]) -> tuple[str, ...]:
    """One name per kernel. The stem serves while it is the only one; else the place or the entry joins it.

    `entries[i]` is the function of kernel i when its file holds several, "" when it holds one.
    """
    stems = [_safe(source.path.stem) for source in sources]
    names = [
        _safe(f"{stem}.{entry}") if entry and entry != stem else stem
        for stem, entry in zip(stems, entries, strict=True)
    ]
    repeated = {name for name, count in Counter(n.casefold() for n in names).items() if count > 1}
    names = [
        _safe(".".join((*source.place, name))) if name.casefold() in repeated else name
        for source, name in zip(sources, names, strict=True)
    ]
    taken: set[str] = set()
    result = []
    for name in names:  # places that differ only in parts left out above
        candidate, number = name, 2
        while candidate.casefold() in taken:
            candidate, number = f"{name}-{number}", number + 1
        taken.add(candidate.casefold())
        result.append(candidate)
    return tuple(result)
