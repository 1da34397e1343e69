"""Collects payloads from anywhere into one .bin file."""

from __future__ import annotations

import contextlib
from pathlib import Path
from types import TracebackType
from typing import IO

from insight_trace.dump.payload import payload_bytes
from insight_trace.model import Payload
from insight_trace.storage import refuse_existing, whole_file

_PIECE = 1 << 20


class PayloadCopy:
    """A .bin file being written; it appears only if a payload was added and nothing failed."""

    def __init__(self, path: Path, *, force: bool) -> None:
        self._path = path
        self._force = force
        self._stack = contextlib.ExitStack()
        self._file: IO[bytes] | None = None
        self._position = 0

    @property
    def written(self) -> bool:
        return self._file is not None

    def add(self, payload: Payload) -> tuple[int, int]:
        """Appends a payload; returns its offset and size in this file."""
        if self._file is None:
            self._file = self._stack.enter_context(whole_file(self._path, force=self._force))
        data = payload_bytes(payload)
        for start in range(0, len(data), _PIECE):
            self._file.write(data[start : start + _PIECE])
        offset = self._position
        self._position += len(data)
        return offset, len(data)

    def __enter__(self) -> PayloadCopy:
        refuse_existing(self._path, force=self._force)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, trace)
