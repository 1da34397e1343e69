"""A manifest's JSON in batches: the header first, then its records a piece at a time.

Writers put one record on a line, so a piece that ends with a line can be decoded by itself, and rows can
be shown while the rest is still unread. A file of any other layout is decoded in one go. The file is mapped,
never read whole.
"""

from __future__ import annotations

import contextlib
import mmap
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from insight_trace.errors import InputError
from insight_trace.reading import open_regular, prepared

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LIST_KEYS = ("args", "tensors", "dispatches")

_LIST = re.compile(rb'"(args|tensors|dispatches)"[ \t\r\n]*:[ \t\r\n]*\[')
_MARK = b'["\\u0001the records\\u0001"]'
_HEADER_LIMIT = 1 << 16
_FIRST_PIECE, _PIECE = 1 << 16, 1 << 20
_SHORTEST = 16  # bytes of a record: its task, slot and element type have names
_RECORD_PATH = r" - at `\$\[(\d+)\]\.?([^`]*)`$"

T = TypeVar("T")


class Manifest:
    """One open manifest: `header` (its top-level keys), `key` of the list of records, and the records."""

    def __init__(self, path: Path, text: mmap.mmap) -> None:
        self.path = path
        self._text = text
        self.key = ""
        self.header: dict[str, Any] = {}
        self._body: tuple[int, int] | None = None
        self._whole: msgspec.Raw | None = None
        if not self._read_edges():
            self._read_whole()

    def _read_edges(self) -> bool:
        """Takes the header from both ends of the file; False if the file is not laid out that way."""
        found = _LIST.search(self._text[:_HEADER_LIMIT])
        if found is None:
            return False
        end = self._text.rfind(b"]", max(found.end(), len(self._text) - _HEADER_LIMIT))
        if end < 0:
            return False
        edges = self._text[: found.end() - 1] + _MARK + self._text[end + 1 :]
        try:
            header = msgspec.json.decode(edges, type=dict[str, msgspec.Raw])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return False
        key = found.group(1).decode()
        if bytes(header.get(key, b"")) != _MARK:
            return False  # a list of that name, but not the one at the top
        if any(other in header for other in LIST_KEYS if other != key):
            return False
        self._keep(key, header)
        self._body = (found.end(), end)
        return True

    def _read_whole(self) -> None:
        with self._json_errors():
            header = msgspec.json.decode(self._text, type=dict[str, msgspec.Raw])
        lists = [key for key in LIST_KEYS if key in header]
        if not lists:
            raise InputError(
                "no list of records: none of the keys args, tensors and dispatches is there",
                where=str(self.path),
                hint="give the JSON file of a dump, its directory, or the run directory",
            )
        self._whole = header[lists[0]]
        self._keep(lists[0], header)

    def _keep(self, key: str, header: dict[str, msgspec.Raw]) -> None:
        self.key = key
        with self._json_errors():
            self.header = {k: msgspec.json.decode(v) for k, v in header.items() if k not in LIST_KEYS}

    def where(self, record: int, key: str) -> str:
        return f"{self.path}, {self.key}[{record}], key {key}"

    @property
    def is_split(self) -> bool:
        """Whether header and records stand apart, so that pieces of the records can be decoded alone."""
        return self._body is not None

    @property
    def end(self) -> int:
        """Where the records' text ends."""
        assert self._body is not None
        return self._body[1]

    def text(self, begin: int, end: int) -> bytes:
        return self._text[begin:end]

    def lines(self, begin: int, end: int) -> NDArray[np.int64]:
        """Where the lines of a piece begin that are long enough to hold a record."""
        import numpy as np

        breaks = np.flatnonzero(np.frombuffer(self._text, np.uint8, end - begin, begin) == ord("\n"))
        begins = np.concatenate([[0], breaks + 1])
        lengths = np.concatenate([breaks, [end - begin]]) - begins
        found: NDArray[np.int64] = begins[lengths >= _SHORTEST] + begin
        return found

    def release(self, end: int) -> None:
        """Lets the system forget what was read before `end`."""
        self._text.madvise(mmap.MADV_DONTNEED, 0, end - end % mmap.PAGESIZE)

    def batches(self, record: type[T]) -> Iterator[list[T]]:
        """The records in order, in lists of a few thousand as soon as they are decoded."""
        for _, _, batch in self.pieces(record):
            yield batch

    def pieces(self, record: type[T]) -> Iterator[tuple[int, int, list[T]]]:
        """The same, each with where its text begins and ends (both 0 where the text was decoded as a whole)."""
        decoder = msgspec.json.Decoder(prepared(list[record]))  # type: ignore[valid-type]
        done = 0
        if self._body is not None:
            position, end = self._body
            step = _FIRST_PIECE
            while position < end:
                stop = self._text.find(b"\n", min(position + step, end), end)
                stop = end if stop < 0 else stop
                piece = self._text[position:stop].strip()
                last = stop == end
                # Between two pieces stands exactly one comma, and after the last none.
                comma = piece.endswith(b",")
                if comma is last or (len(piece) == comma and done + comma):
                    break
                with self._json_errors(base=done):
                    try:
                        batch = decoder.decode(b"[" + (piece if last else piece[:-1]) + b"]")
                    except msgspec.ValidationError:
                        raise
                    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                        break  # records span lines: the whole text decides
                done += len(batch)
                yield position, stop, batch
                position, step = stop + 1, _PIECE
            else:
                return
        if self._whole is None:
            self._read_whole()
        assert self._whole is not None
        with self._json_errors():
            records = decoder.decode(self._whole)
        yield 0, 0, records[done:]

    @contextlib.contextmanager
    def _json_errors(self, base: int = 0) -> Iterator[None]:
        try:
            yield
        except msgspec.ValidationError as error:
            text = str(error)
            match = re.search(_RECORD_PATH, text)
            where = str(self.path)
            if match:
                where += f", {self.key}[{base + int(match.group(1))}]"
                where += f", key {match.group(2)}" if match.group(2) else ""
                text = text[: match.start()]
            raise InputError(text, where=where, hint="the record is broken, or not a dump record") from None
        except msgspec.DecodeError as error:
            cut = "truncated" in str(error)
            raise InputError(
                "the JSON is cut off" if cut else f"not valid JSON: {error}",
                where=str(self.path),
                hint="the run that wrote it did not finish; dump again"
                if cut
                else "give a dump's JSON file, its directory, or the run directory",
            ) from None
        except UnicodeDecodeError as error:
            raise InputError(f"not UTF-8 text: {error.reason}", where=str(self.path)) from None
        except RecursionError:
            raise InputError("nested too deep to be a manifest", where=str(self.path)) from None


@contextlib.contextmanager
def open_manifest(path: Path) -> Iterator[Manifest]:
    """Maps a manifest; it stays open for the length of the block."""
    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(open_regular(path))
            text = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:
            raise InputError(
                "the file is empty", where=str(path), hint="the run that wrote it did not finish; dump again"
            ) from None
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", where=str(path)) from None
        # Not closed here: decoded pieces of a whole text may still look into the map.
        yield Manifest(path, text)
