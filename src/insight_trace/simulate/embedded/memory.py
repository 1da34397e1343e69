"""Global memory of one job: a sparse file that the runner maps at a fixed address.

Python lays it out and fills it; the kernel reads and writes it in the runner's process; the outputs are
then in the same file. A page that neither touches costs nothing, whatever the size of its buffer.
"""

from __future__ import annotations

import mmap
import os
import weakref
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from insight_trace.errors import JobError
from insight_trace.simulate.embedded.job_files import NoRoomError, take_room
from insight_trace.storage import NO_ROOM

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Above every address that a sanitizer or the loader uses on x86-64 and aarch64, so that it is always free:
# the same job sees the same addresses on every run.
BASE = 0x2000_0000_0000
_HIGHEST = BASE + 2**38
_PAGE = 4096
GUARD = 64 * 1024


class Buffer(Struct, frozen=True):
    """A named piece of global memory."""

    name: str
    address: int
    size: int  # what it is said to have
    padded: int  # what may be touched
    view: int = 0  # bytes up to the end of what the kernel is told of it; 0: all
    only_output: bool = False  # what is in it before the run is not meant to be read


class GlobalMemory:
    """Buffers are reserved first; `create` makes the file; `view` gives a buffer's bytes."""

    def __init__(self) -> None:
        self.buffers: list[Buffer] = []
        self.end = BASE
        self._map: mmap.mmap | None = None
        self._file = -1
        self._offset = 0

    def reserve_at(
        self, address: int, name: str, size: int, padded: int, view: int, only_output: bool
    ) -> Buffer:
        """A buffer at an address that others point to; these are reserved first, in the order of their addresses."""
        padded = max(size, padded, 1)
        if not self.end <= address <= _HIGHEST - padded:
            raise JobError(f"{name} cannot lie at {address:#x}", hint="its record was changed, or is damaged")
        buffer = Buffer(name, address, size, padded, view, only_output)
        self.buffers.append(buffer)
        self.end = (address + padded + _PAGE - 1) // _PAGE * _PAGE
        return buffer

    def reserve(
        self, name: str, size: int, padded: int | None = None, view: int = 0, only_output: bool = False
    ) -> Buffer:
        padded = max(size, padded or size, 1)
        buffer = Buffer(name, self.end, size, padded, view, only_output)
        self.buffers.append(buffer)
        # a gap that is never mapped follows every buffer
        self.end += (padded + _PAGE - 1) // _PAGE * _PAGE + GUARD
        return buffer

    @property
    def size(self) -> int:
        return self.end - BASE

    def create(self, path: Path, offset: int = 0) -> None:
        """Makes the file, or with an `offset` adds to the one that is there."""
        size = self.size
        self._offset = offset
        try:
            with path.open("r+b" if offset else "w+b") as file:
                os.ftruncate(file.fileno(), offset + size)
                self._map = mmap.mmap(file.fileno(), size, offset=offset)
                self._file = os.dup(file.fileno())
                self._closed = weakref.finalize(self, os.close, self._file)
        except (OSError, OverflowError) as error:
            full = isinstance(error, OSError) and error.errno in NO_ROOM
            raise (NoRoomError if full else JobError)(
                f"{size:,} bytes of global memory cannot be made: {error}",
                hint="set TMPDIR to a file system that has room and supports sparse files of that size",
            ) from None

    def release(self) -> None:
        """Lets go of the file, which stays as it is."""
        assert self._map is not None, "create() comes first"
        self._map = None  # closed with the last view of it
        self._closed()

    def stored_past(self, buffer: Buffer) -> int | None:
        """The first byte past a buffer's end that holds something other than the zero it began with."""
        first = self._offset + buffer.address - BASE + buffer.size
        try:
            # most of it was never touched; to look at it would make its pages
            if os.lseek(self._file, first, os.SEEK_DATA) >= first - buffer.size + buffer.padded:
                return None
        except OSError:  # nothing from there on
            return None
        past = self.view(buffer)[buffer.size :]
        return buffer.size + int((past != 0).argmax()) if past.any() else None

    def take_room(self, buffer: Buffer, size: int) -> None:
        """Makes sure that the first bytes of a buffer can be written; NoRoomError if not."""
        take_room(self._file, self._offset + buffer.address - BASE, min(size, buffer.padded))

    def view(self, buffer: Buffer) -> NDArray[np.uint8]:
        import numpy as np

        assert self._map is not None, "create() comes first"
        return np.frombuffer(self._map, np.uint8, buffer.padded, buffer.address - BASE)

    def write(self, buffer: Buffer, offset: int, content: bytes) -> None:
        assert self._map is not None, "create() comes first"
        start = buffer.address - BASE + offset
        take_room(self._file, self._offset + start, len(content))
        self._map[start : start + len(content)] = content

    def job_lines(self, path: Path) -> list[str]:
        return [f"gm\t{escape(str(path))}\t{BASE}\t{self.size}", *self.region_lines()]

    def region_lines(self) -> list[str]:
        return [
            f"region\t{b.address}\t{b.size}\t{b.padded}\t{escape(b.name)}\t{b.view}\t{int(b.only_output)}"
            for b in self.buffers
        ]


def escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n")


def unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out, i = [], 0
    while i < len(text):
        if text[i] == "\\" and i + 1 < len(text):
            i += 1
            out.append({"t": "\t", "n": "\n"}.get(text[i], text[i]))
        else:
            out.append(text[i])
        i += 1
    return "".join(out)
