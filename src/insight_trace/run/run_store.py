"""An index of runs: one SQLite file that any number of processes add to. The runs themselves stay in their folders."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from insight_trace import limits
from insight_trace.errors import InputError, RequestError
from insight_trace.reading import prepared

_VERSION = 1
_WAIT_SECONDS = 60.0  # for another writer
_RESULT = "run.json"
_TABLE = """
create table if not exists runs (
  id integer primary key autoincrement, made real not null, scene text not null, "case" text not null,
  chip text not null, cycles integer not null, micros real not null, dispatches integer not null,
  distinct_ integer not null, directory text not null, data text not null
)
"""


_Line = tuple[int, float, str, str, str, int, float, int, str, str]


@dataclass(frozen=True, slots=True)
class _ToldKernel:
    name: str
    dispatches: int
    least: int
    median: int
    most: int
    path_share: float
    bound: str
    work: int


@dataclass(frozen=True, slots=True)
class _Told:
    """What is looked at of a run's data."""

    cycles: int
    path: dict[str, int]
    kernels: list[_ToldKernel]


@dataclass(frozen=True, slots=True)
class StoredRun:
    """One line of the index; `data` is what `run --json` printed."""

    id: int
    made: float  # seconds since 1970
    scene: str
    case: str
    chip: str
    cycles: int
    micros: float
    dispatches: int
    directory: Path
    data: dict[str, Any]

    @property
    def there(self) -> bool:
        return (self.directory / _RESULT).is_file()


def default_index() -> Path:
    """INSIGHT_TRACE_RUNS, else outputs/runs.sqlite."""
    return Path(os.environ.get("INSIGHT_TRACE_RUNS") or Path("outputs") / "runs.sqlite")


class RunStore:
    """The index at a path; it is made with the first run that is added."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextlib.contextmanager
    def _open(self, *, write: bool) -> Iterator[sqlite3.Connection]:
        if write:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        elif not self.path.is_file():
            raise RequestError(
                f"there is no index of runs at {self.path}",
                hint="`insight-trace run` makes one; --index or INSIGHT_TRACE_RUNS names another",
            )
        try:
            connection = sqlite3.connect(self.path, timeout=_WAIT_SECONDS, isolation_level=None)
            try:
                if write:
                    connection.execute("begin immediate")  # one writer at a time; the others wait
                    self._require_version(connection)
                    connection.execute(_TABLE)
                else:
                    self._require_version(connection)
                yield connection
                if write:
                    connection.execute("commit")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("rollback")
                raise
            finally:
                connection.close()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise InputError(
                f"the index of runs cannot be used: {error}",
                where=str(self.path),
                hint="look at its disk (room, permissions); --index or INSIGHT_TRACE_RUNS names another",
            ) from None

    def _require_version(self, connection: sqlite3.Connection) -> None:
        (found,) = connection.execute("pragma user_version").fetchone()
        if found == 0:
            if connection.in_transaction:
                connection.execute(f"pragma user_version = {_VERSION}")
        elif found != _VERSION:
            raise InputError(f"an index of version {found}, known is {_VERSION}", where=str(self.path))

    def add(self, data: dict[str, Any], directory: Path) -> int:
        """Adds a run and gives its number. A folder that was used again is one run, the last."""
        place = str(directory.resolve())
        with self._open(write=True) as connection:
            connection.execute("delete from runs where directory = ?", (place,))
            done = connection.execute(
                'insert into runs (made, scene, "case", chip, cycles, micros, dispatches, distinct_, directory, data)'
                " values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    time.time(), data["scene"], data["case"], data["chip"], data["cycles"], data["micros"],
                    data["dispatches"], data["distinct"], place, json.dumps(data),
                ),
            )  # fmt: skip
            return int(done.lastrowid or 0)

    def runs(self, scene: str | None = None, case: str | None = None) -> list[StoredRun]:
        """Runs, the last first; `scene` is a part of its path."""
        with self._open(write=False) as connection:
            rows = connection.execute(
                'select id, made, scene, "case", chip, cycles, micros, dispatches, directory, data from runs '
                'where (:scene is null or instr(scene, :scene) > 0) and (:case is null or "case" = :case) order by id desc',
                {"scene": scene, "case": case},
            ).fetchall()
        return [self._stored(row) for row in rows]

    def _stored(self, row: tuple[Any, ...]) -> StoredRun:
        """A line of the index, which anybody may have written."""
        try:
            number, made, where, name, chip, cycles, micros, count, directory, text = msgspec.convert(
                row, _Line
            )
            data = json.loads(text)
            msgspec.convert(data, prepared(_Told))
            time.localtime(made)
        except (msgspec.MsgspecError, ValueError, OverflowError, OSError, RecursionError) as error:
            raise InputError(
                f"a line of the index of runs is no run: {limits.cut(str(error))}",
                where=str(self.path),
                hint="remove the file: runs stay in their folders, and new ones make another",
            ) from None
        return StoredRun(number, made, where, name, chip, cycles, micros, count, Path(directory), data)

    def run(self, word: str) -> StoredRun:
        """The run of a number, `last`, or the one before it, `last-1`."""
        found = self.runs()
        if word.startswith("last"):
            back = word.removeprefix("last").removeprefix("-") or "0"
            if back.isdecimal() and int(back) < len(found):
                return found[int(back)]
        for run in found:
            if word.isdecimal() and run.id == int(word):
                return run
        raise RequestError(f"there is no run {word}", hint="`insight-trace runs list` shows them")

    def forget(self, runs: list[StoredRun]) -> dict[int, int]:
        """Takes runs out of the index and removes what they wrote; how many files of others stay, by run."""
        from insight_trace.run.run_directory import remove

        stayed = {run.id: remove(run.directory) for run in runs if run.there}
        with self._open(write=True) as connection:
            connection.executemany("delete from runs where id = ?", [(run.id,) for run in runs])
        return stayed


def compared(one: dict[str, Any], other: dict[str, Any]) -> list[tuple[str, int | None, int | None]]:
    """Total and cycles of every kernel in both runs; None where one of them lacks it."""
    before = {row["name"]: row["work"] for row in one["kernels"]}
    after = {row["name"]: row["work"] for row in other["kernels"]}
    names = sorted({*before, *after}, key=lambda name: -abs(after.get(name, 0) - before.get(name, 0)))
    return [("the run", one["cycles"], other["cycles"]), *((n, before.get(n), after.get(n)) for n in names)]
