"""Which files a trace may show as source: those that the compiler read for its kernels, where kernels keep them.

A `#line` in a kernel, or a kernel that writes over the runner's tables, can name any file of the machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from insight_trace.model import Kernel
from insight_trace.simulate.embedded.source_lines import is_ours

DEPENDS = "depends"  # beside a compiled kernel: digest and path of every file that it was made from


def readable_sources(
    names: Iterable[str], kernels: Sequence[Kernel], objects: Sequence[Path]
) -> dict[str, Path]:
    """Of the names that a run reports, those whose text may be shown, and where it is."""
    known: set[Path] = set()
    folders: list[Path] = []
    for kernel, made in zip(kernels, objects, strict=True):
        source = kernel.source.resolve()
        known |= {source, *_read_by_compiler(made)}
        folders += [_project(source), *(Path(folder).resolve() for folder in kernel.include_dirs)]
    found = {}
    for name in sorted(set(names)):
        path = Path(name)
        real = path.resolve()
        # our own headers are nobody's kernel: a reader has no use for them
        if (
            not is_ours(str(real))
            and real in known
            and any(real.is_relative_to(folder) for folder in folders)
        ):
            found[name] = path
    return found


def _read_by_compiler(made: Path) -> set[Path]:
    try:
        lines = (made.parent / DEPENDS).read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return set()
    return {Path(line.split(" ", 1)[1]).resolve() for line in lines if " " in line}


def _project(source: Path) -> Path:
    """The checkout that a kernel lies in; without one the folder above its own, where scenes share headers."""
    for folder in source.parents:
        if (folder / ".git").exists():
            return folder
    return source.parent.parent if len(source.parents) > 2 else source.parent
