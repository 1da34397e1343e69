"""Outputs are whole or absent: written beside their place, then renamed into it. Single files are synced before."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from insight_trace.errors import RequestError


def refuse_existing(path: Path, *, force: bool) -> None:
    """An existing output is only replaced when the user asked for it."""
    if not force and (path.exists() or path.is_symlink()):
        raise RequestError(
            f"{path} exists already", hint="choose another name, or give --force to replace it"
        )


@contextlib.contextmanager
def whole_file(
    path: Path, *, force: bool = True, mode: int = 0o644, sync: bool = True
) -> Iterator[IO[bytes]]:
    """A binary file to write; it appears at `path`, complete, only when the block ends without error.

    `sync=False` is for a file of a directory that is itself put into place only when all of it is there.
    """
    refuse_existing(path, force=force)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    beside = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fchmod(file.fileno(), mode)
            if sync:
                os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def write_whole(
    path: Path, content: bytes | str, *, force: bool = True, mode: int = 0o644, sync: bool = True
) -> None:
    """Writes one file, whole or not at all."""
    with whole_file(path, force=force, mode=mode, sync=sync) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextlib.contextmanager
def whole_directory(path: Path, *, force: bool = False, mode: int = 0o755) -> Iterator[Path]:
    """A directory to fill; it appears at `path` only when the block ends without error."""
    refuse_existing(path, force=force)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        yield beside
        beside.chmod(mode)
        if path.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{path.name}.old.", dir=path.parent))
            path.rename(old / path.name)
            beside.rename(path)
            shutil.rmtree(old, ignore_errors=True)
        else:
            beside.rename(path)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise
