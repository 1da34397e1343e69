"""Which files a trace may show as source: those that the compiler read for its kernels, where kernels keep them.

A `#line` in a kernel, or a kernel that writes over the runner's tables, can name any file of the machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from insight_trace.model import Kernel
from insight_trace.simulate.embedded.compiled_from import sources_of
from insight_trace.simulate.embedded.source_lines import is_ours


def readable_sources(
    names: Iterable[str], kernels: Sequence[Kernel], objects: Sequence[Path]
) -> dict[str, Path]:
    """Of the names that a run reports, those whose text may be shown, and where it is."""
    known: set[Path] = set()
    folders: list[Path] = []
    for kernel, made in zip(kernels, objects, strict=True):
        source = kernel.source.resolve()
        known |= {source, *(path.resolve() for path in sources_of(made))}
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


def files_read(objects: Sequence[Path]) -> tuple[Path, ...]:
    """What the compiler read for these objects, but for headers of ours and of the system."""
    found = {path.resolve() for made in objects for path in sources_of(made)}
    return tuple(sorted(p for p in found if not is_ours(str(p)) and not p.is_relative_to("/usr")))


def project_of(source: Path) -> Path | None:
    """The checkout that a kernel lies in."""
    return next((folder for folder in source.parents if (folder / ".git").exists()), None)


def _project(source: Path) -> Path:
    """The checkout that a kernel lies in; without one the folder above its own, where scenes share headers."""
    above = source.parent.parent if len(source.parents) > 2 else source.parent
    return project_of(source) or above
