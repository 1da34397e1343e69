"""Kernel sources travel with the workspace: each with the headers that it includes from its own surroundings.

What lies in the toolkit, pto-isa or simpler stays there; another machine has its own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from insight_trace.errors import InputError
from insight_trace.model import Kernel
from insight_trace.simulate.msprof.escaping import safe_name

_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)', re.MULTILINE)
_FILE_LIMIT = 16 * 1024 * 1024
_COUNT_LIMIT = 2000


@dataclass(frozen=True, slots=True)
class CopiedKernels:
    """Where the sources of a dispatch stand in the workspace, and what has to stand around them."""

    entries: Mapping[Path, str]  # a kernel's source -> its path in the workspace, plain characters
    files: tuple[tuple[str, bytes], ...]  # path in the workspace, content
    include_dirs: tuple[str, ...]  # folders of the workspace to search for headers


def copy_kernels(kernels: Sequence[Kernel], folder: str) -> CopiedKernels:
    """The kernels' sources and own headers as they will stand under `folder`.

    All share one tree, laid out as the originals are: a header that two kernels include stays one file.
    """
    search = [_real(Path(os.path.expandvars(text))) for kernel in kernels for text in kernel.include_dirs]
    search = [directory for directory in dict.fromkeys(search) if directory.is_dir()]
    sources = {kernel.source: _real(kernel.source) for kernel in kernels}
    found = _closure(list(sources.values()), search)
    used = [directory for directory in search if any(path.is_relative_to(directory) for path in found)]
    root = Path(os.path.commonpath([*(path.parent for path in found), *used]))
    names: dict[str, Path] = {}
    for path in found:
        name = _place(path, root, folder)
        while names.setdefault(name, path) != path:  # two names that look alike once made plain
            name += "_"
    places = {path: name for name, path in names.items()}
    return CopiedKernels(
        entries={given: places[real] for given, real in sources.items()},
        files=tuple(sorted((places[path], content) for path, content in found.items())),
        include_dirs=tuple(_place(directory, root, folder) for directory in used),
    )


def _place(path: Path, root: Path, folder: str) -> str:
    return "/".join([folder, *(safe_name(part) for part in path.relative_to(root).parts)])


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _closure(sources: list[Path], search: list[Path]) -> dict[Path, bytes]:
    """The sources and every header they reach through their own folders or the kernels' include folders."""
    found: dict[Path, bytes] = {}
    waiting = sources[::-1]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        content = _read(path)
        found[path] = content
        if len(found) > _COUNT_LIMIT:
            raise InputError(f"it includes more than {_COUNT_LIMIT} files", where=str(sources[0]))
        for match in _INCLUDE.finditer(content):
            quoted = match[1] is not None
            name = os.fsdecode(match[1] if quoted else match[2])
            for directory in ([path.parent] if quoted else []) + search:
                candidate = _real(directory / name)
                if candidate.is_file():
                    waiting.append(candidate)
                    break
    return found


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > _FILE_LIMIT:
            raise InputError(f"{path.stat().st_size} bytes is too large for a source", where=str(path))
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"the source cannot be read: {error.strerror}", where=str(path)) from None
