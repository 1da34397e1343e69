"""A worker for msprof from elsewhere, without writing into the toolkit, which others may share.

msprof looks for its worker below ASCEND_HOME_PATH and refuses a link. So the toolkit is shown to it through a
private folder of links, in which only the worker and its injection library are real files.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from insight_trace.errors import RequestError
from insight_trace.simulate.msprof.toolkit import Toolkit, installed_toolkits, version_of

WORKER = "tools/msopprof/bin/msopprof"
_OTHER_PLACES = (WORKER, "tools/msopt/bin/msopprof")  # the second one in the 8.x releases
_INJECTION = "libmsopprof_injection.so"


def with_worker(toolkit: Toolkit, worker: Path, folder: Path) -> Toolkit:
    """The toolkit seen through `folder` (which must be empty), with that worker."""
    if not worker.is_file() or not os.access(worker, os.R_OK):
        raise RequestError(f"--msopprof: {worker} is not a readable file")
    _link_all(toolkit.home, folder, leave="tools")
    (folder / "tools").mkdir()
    _link_all(toolkit.home / "tools", folder / "tools", leave="msopprof")
    place = folder / WORKER
    place.parent.mkdir(parents=True, mode=0o700)
    shutil.copyfile(worker, place)
    place.chmod(0o700)
    injection = worker.parent.parent / "lib64" / _INJECTION
    if injection.is_file():  # without it the application cannot start the simulator
        (folder / "tools/msopprof/lib64").mkdir(mode=0o700)
        shutil.copyfile(injection, folder / "tools/msopprof/lib64" / _INJECTION)
    seen = {"ASCEND_HOME_PATH": str(folder), "ASCEND_TOOLKIT_HOME": str(folder)}
    how = f"{toolkit.how}, with the worker {worker}"
    return replace(toolkit, home=folder, how=how, environment={**toolkit.environment, **seen})


def _link_all(source: Path, target: Path, *, leave: str) -> None:
    if source.is_dir():
        for item in source.iterdir():
            if item.name != leave:
                (target / item.name).symlink_to(item)


def find_worker(
    toolkit: Toolkit, environ: Mapping[str, str], places: tuple[Path, ...] | None = None
) -> Path | None:
    """A worker of another installation here: of the same version, else of the same release, else any."""
    found: list[tuple[int, int, Path]] = []
    for home in installed_toolkits(environ, places):
        if os.path.realpath(home) == os.path.realpath(toolkit.home):
            continue
        for name in _OTHER_PLACES:
            if (home / name).is_file():
                found.append((_distance(version_of(home), toolkit.version), len(found), home / name))
                break
    return min(found)[2] if found else None


def _distance(version: str, wanted: str) -> int:
    if version == wanted:
        return 0
    return 1 if _release(version.split(".")) == _release(wanted.split(".")) else 2


def _release(parts: Iterable[str]) -> tuple[str, ...]:
    return tuple(parts)[:2]
