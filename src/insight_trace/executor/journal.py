"""Results of jobs, one line each, kept as they come: a run that was ended goes on where it was."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Generic, TypeVar

import msgspec

from insight_trace import limits
from insight_trace.errors import InputError
from insight_trace.reading import prepared, read_regular

T = TypeVar("T")


class Journal(Generic[T]):
    """A file of named results. A last line that a kill cut off is left out; another run's lines are welcome."""

    def __init__(self, path: Path, kind: type[T]) -> None:
        self.path = path
        self._decoder = msgspec.json.Decoder(prepared(tuple[str, kind]))  # type: ignore[valid-type]
        self.known: dict[str, T] = dict(self._read())
        self._earlier = frozenset(self.known)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        self._used: set[str] = set()

    @property
    def used(self) -> int:
        """How many results of an earlier run were asked for."""
        return len(self._used)

    def get(self, name: str) -> T:
        """What is known of a job."""
        if name in self._earlier:
            self._used.add(name)
        return self.known[name]

    def _read(self) -> Mapping[str, T]:
        try:
            content = read_regular(self.path, most=limits.JSON_BYTES)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise InputError(f"the journal cannot be read: {error.strerror}", where=str(self.path)) from None
        found: dict[str, T] = {}
        whole, _, cut = content.rpartition(b"\n")
        if cut:  # so that the next line begins where a line begins
            os.truncate(self.path, len(whole) + 1 if whole else 0)
        for number, line in enumerate(whole.split(b"\n") if whole else [], 1):
            try:
                name, result = self._decoder.decode(line)
            except (msgspec.MsgspecError, ValueError, RecursionError) as error:
                raise InputError(
                    f"this is no result: {limits.cut(str(error))}",
                    where=f"{self.path}:{number}",
                    hint="remove the file to begin anew",
                ) from None
            found[name] = result
        return found

    def add(self, name: str, result: T) -> None:
        """Keeps a result; it is on disk when this returns."""
        self.known[name] = result
        line = msgspec.json.encode((name, result)) + b"\n"
        while line:  # a disk that becomes full takes a part, and then says so
            line = line[os.write(self._file, line) :]
        os.fsync(self._file)

    def __enter__(self) -> Journal[T]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._file)
