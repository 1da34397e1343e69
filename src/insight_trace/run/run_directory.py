"""The folder of a run: what is known while it goes on, and what it leaves."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from insight_trace.errors import RequestError
from insight_trace.run.run_page import page_text
from insight_trace.run.run_records import FOLDER, write_records
from insight_trace.run.run_timeline import write_tasks, write_timeline
from insight_trace.run.whole_run import RunRequest, WholeRun
from insight_trace.storage import visible_names, whole_files

RESULT = "run.json"
JOURNAL = "jobs.jsonl"
_OWN = {RESULT, JOURNAL, "timeline.json", "tasks.csv", "index.html", "rows", ".lock", "dispatches", FOLDER}


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
    with whole_files(folder, force=True, last=RESULT) as beside:
        with (beside / "timeline.json").open("wb") as file:
            write_timeline(run, file)
        with (beside / "tasks.csv").open("wb") as file:
            write_tasks(run, file)
        (beside / FOLDER).mkdir()
        write_records(run, beside / FOLDER)
        (beside / "index.html").write_text(page_text(run, data, folder), encoding="utf-8")
        (beside / RESULT).write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
    (folder / "rows").unlink(missing_ok=True)


def _word(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.-]+", "-", text)
