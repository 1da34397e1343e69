"""The folder of a run: what is known while it goes on, and what it leaves: files, and a page of them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from filelock import FileLock, Timeout

from insight_trace.errors import InputError, RequestError
from insight_trace.limits import RECORD_BYTES
from insight_trace.pages import shared
from insight_trace.reading import read_regular
from insight_trace.run.run_records import FOLDER, SWIMLANE, write_records
from insight_trace.run.run_timeline import core_names, write_tasks, write_timeline
from insight_trace.run.schedule import ActivityKind
from insight_trace.run.whole_run import RunRequest, WholeRun, task_names
from insight_trace.storage import remove_directory, visible_names, whole_files

RESULT = "run.json"
JOURNAL = "jobs.jsonl"
FILES = "files.json"  # what the run wrote: paths below its folder, each with size and time
_SHOWN = ("timeline.json", "tasks.csv", "index.html")
_OWN = {RESULT, JOURNAL, FILES, *_SHOWN, "rows", ".lock", "dispatches", FOLDER}
_Listed = dict[str, tuple[int, int]]


@contextlib.contextmanager
def open_folder(path: Path | None, request: RunRequest, *, force: bool) -> Iterator[Path]:
    """The folder of a new run, or of one that was ended before it was done; nobody else may use it meanwhile."""
    folder = path or Path("outputs") / f"run_{_word(request.scene.stem)}_{_word(request.case or 'first')}"
    if path is None and (folder / RESULT).exists():
        folder = folder.with_name(f"{folder.name}_{time.strftime('%Y%m%d_%H%M%S')}")
    if folder.is_dir() and not force:
        held = visible_names(folder)
        if RESULT in held or held - _OWN:
            what = "a finished run" if RESULT in held else "other things"
            raise RequestError(
                f"{folder} holds {what}", hint="name another place with -o, or add --force to write into it"
            )
    elif folder.exists() and not folder.is_dir():
        raise RequestError(f"{folder} is no directory", hint="name another place with -o")
    listed = _listed(folder)
    own = {*listed, FILES} if listed else set()
    for name in (RESULT, FILES, *_SHOWN):
        if os.path.lexists(folder / name) and name not in own:
            raise RequestError(
                f"{folder / name} is not of a run, and is not replaced even with --force",
                hint="name another place with -o",
            )
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / ".lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise RequestError(f"another run writes into {folder}", hint="name another place with -o") from None
    try:
        yield folder
    finally:
        lock.release()
        (folder / ".lock").unlink(missing_ok=True)


def keep(run: WholeRun, data: dict[str, Any], folder: Path) -> None:
    """Writes what the run leaves: where its result is, all of it is."""
    with whole_files(folder, force=True, last=RESULT, record=(SWIMLANE,)) as beside:
        with (beside / "timeline.json").open("wb") as file:
            write_timeline(run, file)
        with (beside / "tasks.csv").open("wb") as file:
            write_tasks(run, file)
        (beside / FOLDER).mkdir()
        write_records(run, beside / FOLDER)
        (beside / "index.html").write_text(page_text(run, data, folder), encoding="utf-8")
        (beside / RESULT).write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
        own = [file for file in beside.rglob("*") if file.is_symlink() or file.is_file()]
        real = folder.resolve()
        workspaces = {Path(place).resolve().relative_to(real).parts[:2] for place in data.get("replayed", ())}
        made = [
            folder / JOURNAL,
            *(file for parts in workspaces for file in folder.joinpath(*parts).rglob("*")),
        ]
        listed = {str(file.relative_to(beside)): _facts(file) for file in own}
        listed |= {
            str(file.relative_to(folder)): _facts(file)
            for file in made
            if file.is_symlink() or file.is_file()
        }
        (beside / FILES).write_text(json.dumps(listed, indent=0) + "\n", encoding="utf-8")
    (folder / "rows").unlink(missing_ok=True)


def remove(folder: Path) -> int:
    """Removes what a run wrote and has stayed as it was, then folders that are empty; how many files stay.

    Of a run that left no list, those files go that every run has. What somebody else put there or changed stays,
    and so do the working folder and what something is mounted on. A folder in which all is the run's goes at once.
    """
    listed = _listed(folder)
    names = list(listed) or [RESULT, JOURNAL, *_SHOWN]
    if _is_all_ours(folder, listed, {*names, FILES}):
        remove_directory(folder)
        return 0
    for name in [*names, FILES]:
        path = folder / name
        with contextlib.suppress(OSError, ValueError):
            inside = not any(part.is_symlink() for part in (folder, *_between(folder, path)))
            ours = name not in listed or listed[name] == _facts(path)
            if inside and ours and not stat.S_ISDIR(path.lstat().st_mode):
                path.unlink()
    for place in sorted({place for name in names for place in _between(folder, folder / name)}, reverse=True):
        with contextlib.suppress(OSError):  # it is not empty
            place.rmdir()
    with contextlib.suppress(OSError):
        if folder.resolve() not in (Path.cwd(), *Path.cwd().parents):
            folder.rmdir()  # never one that something is mounted on: the system sees to that
    return sum(1 for path in folder.rglob("*") if not path.is_dir()) if folder.is_dir() else 0


def _is_all_ours(folder: Path, listed: _Listed, names: set[str]) -> bool:
    """Whether a folder holds what the run wrote, as it wrote it, and nothing else."""
    working = (Path.cwd(), *Path.cwd().parents)
    if folder.is_symlink() or folder.resolve() in working or os.path.ismount(folder):
        return False
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_dir() and not path.is_symlink():
            if os.path.ismount(path) or path.resolve() in working:
                return False
        elif name not in names or (name in listed and listed[name] != _facts(path)):
            return False
    return True


def _between(folder: Path, path: Path) -> list[Path]:
    """The folders that lead from `folder` to a path below it; ValueError where it is not below."""
    if ".." in path.parts:
        raise ValueError(path)
    parts = path.relative_to(folder).parts[:-1]
    return [folder.joinpath(*parts[: count + 1]) for count in range(len(parts))]


def _facts(path: Path) -> tuple[int, int]:
    found = path.lstat()
    return found.st_size, found.st_mtime_ns


def _listed(folder: Path) -> _Listed:
    """What the run in a folder wrote; nothing where it left no list."""
    try:
        content = read_regular(folder / FILES, most=RECORD_BYTES, follow=False)
        return {
            name: facts for name, facts in msgspec.json.decode(content, type=_Listed).items() if _inside(name)
        }
    except (FileNotFoundError, msgspec.MsgspecError, InputError):
        return {}


def _inside(name: str) -> bool:
    return bool(name) and not Path(name).is_absolute() and ".." not in Path(name).parts


def _word(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.-]+", "-", text)


_MOST_BARS = 20_000  # that the page draws; timeline.json has all

_PAGE, _SCRIPT = (Path(__file__).with_name(f"run_page.{kind}") for kind in ("html", "js"))
_FACTS = (
    "cycles", "mhz", "chip", "dispatches", "distinct", "path", "kernels", "case", "scene", "bound", "occupancy",
)  # fmt: skip


def page_text(run: WholeRun, data: dict[str, Any], folder: Path) -> str:
    """One self-contained file. Of more tasks than a page can draw the longest are drawn."""
    import numpy as np

    schedule = run.schedule
    names = task_names(run.graph)
    kernels = {row["name"]: number for number, row in enumerate(data["kernels"])}
    rows = np.flatnonzero(schedule.kind == ActivityKind.KERNEL)
    longest = np.argsort(schedule.start[rows] - schedule.end[rows], kind="stable")[:_MOST_BARS]
    drawn = rows[np.sort(longest)]
    columns = (schedule.place, schedule.start, schedule.end, schedule.task)
    bars = [
        [core, start, end, kernels[names[task]], task]
        for core, start, end, task in zip(*(column[drawn].tolist() for column in columns), strict=True)
    ]
    ids = run.graph.tasks["id"].tolist()
    replayed = {
        int(Path(place).parents[2].name.rpartition("_")[2]): Path(place).relative_to(folder).as_posix()
        for place in data.get("replayed", [])
    }
    content = {
        **{key: data[key] for key in _FACTS},
        "names": core_names(run.machine.clusters),
        "all": len(rows),
        "bars": bars,
        "ids": {task: f"0x{ids[task]:x}" for *_, task in bars},
        "replayed": replayed,
    }
    # nothing in it may end the element that it stands in
    text = json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")
    title = f"{run.graph.scene.name} {run.graph.case.name}".replace("&", "&amp;").replace("<", "&lt;")
    script = shared("draw.js") + _SCRIPT.read_text(encoding="utf-8")
    parts = {"@TITLE@": title, "@STYLE@": shared("page.css"), "@SCRIPT@": script, "@DATA@": text}
    page = _PAGE.read_text(encoding="utf-8")
    for mark, part in parts.items():
        page = page.replace(mark, part)
    return page
