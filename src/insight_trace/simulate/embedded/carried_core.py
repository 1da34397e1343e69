"""The compiled core that a platform wheel carries: programs, and the content that they were compiled from."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from insight_trace import supervisor
from insight_trace.errors import InputError
from insight_trace.limits import STAMP_BYTES
from insight_trace.reading import load_json

FOLDER = Path(__file__).resolve().parent / "carried"
MANIFEST = "manifest.json"


def fits(folder: Path, name: str, content: str) -> bool:
    """Whether `folder` holds program `name`, compiled from `content`, for this machine and its C library."""
    try:
        manifest = load_json(folder / MANIFEST, most=STAMP_BYTES)
        return (
            manifest["programs"].get(name) == content
            and manifest["machine"] == platform.machine()
            and version(manifest["glibc"]) <= _glibc()
        )
    except (InputError, ValueError, KeyError, AttributeError, TypeError):
        return False


def copy_if_it_runs(program: Path, to: Path) -> bool:
    """Puts a copy of `program` at `to`; False, and no file, where the machine cannot start it."""
    import shutil

    shutil.copyfile(program, to)
    to.chmod(0o755)
    try:
        # without a job it says how it is called; a missing library or symbol ends it with 127
        ended = supervisor.run([to], bounds=supervisor.Limits(seconds=20.0))
        if ended.code >= 0 and ended.code not in (126, 127):
            return True
    except OSError:
        pass
    to.unlink()
    return False


def version(text: str) -> tuple[int, ...]:
    """2.36 as numbers, to compare."""
    return tuple(int(part) for part in text.split("."))


def _glibc() -> tuple[int, ...]:
    try:
        said = os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (OSError, ValueError):  # another C library
        return ()
    return version(said.split()[-1]) if said.startswith("glibc ") else ()
