"""Opening files that others wrote: regular ones alone, of a size that was looked at before it is read."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from threading import Lock
from typing import IO, TYPE_CHECKING, Any, TypeVar

from insight_trace.errors import InputError
from insight_trace.limits import cut

if TYPE_CHECKING:
    from numpy.typing import NDArray

T = TypeVar("T")
_PREPARING = Lock()


def prepared(kind: type[T]) -> type[T]:
    """The type itself, once msgspec knows it: two threads that are the first to decode a type can end the process."""
    known: Any = kind
    _prepare(known)
    return kind


@cache
def _prepare(kind: Any) -> None:
    import msgspec

    with _PREPARING:
        msgspec.json.Decoder(kind)


def open_regular(path: Path, *, most: int | None = None, follow: bool = True) -> IO[bytes]:
    """The file, to be read; InputError if it is a pipe, a device or a folder, or larger than `most` bytes.

    `follow=False` refuses a link, for places where only a program of ours should have written. OSError is the
    caller's, or that of the command line, which names the path.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    try:
        # never a bare descriptor: an interruption after the file has taken it over would close it twice
        file = open(path, "rb", opener=lambda name, _: os.open(name, flags))  # noqa: SIM115
    except IsADirectoryError:
        raise InputError("is a folder, not a file", where=cut(str(path)), hint="name a file in it") from None
    try:
        facts = os.fstat(file.fileno())
        if not stat.S_ISREG(facts.st_mode):
            raise InputError(f"is {_kind(facts.st_mode)}, not a file", where=cut(str(path)))
        if most is not None and facts.st_size > most:
            raise InputError(
                f"has {facts.st_size:,} bytes, and at most {most:,} are read",
                where=cut(str(path)),
                hint="docs/limits.md says which sizes are taken",
            )
    except BaseException:
        file.close()
        raise
    return file


def read_regular(path: Path, *, most: int, follow: bool = True) -> bytes:
    """The content of a regular file of at most `most` bytes."""
    with open_regular(path, most=most, follow=follow) as file:
        size = os.fstat(file.fileno()).st_size
        content = file.read(size + 1)
        if len(content) > size:  # it grows meanwhile
            content += file.read(most + 1 - len(content))
    if len(content) > most:
        raise InputError(f"grew beyond {most:,} bytes while it was read", where=cut(str(path)))
    return content


def regular_text(path: Path, *, most: int, errors: str = "strict") -> str:
    """The same as text, with lines that end as Python's do; UnicodeDecodeError is the caller's."""
    text = read_regular(path, most=most).decode("utf-8", errors)
    return text.replace("\r\n", "\n").replace("\r", "\n")


@contextlib.contextmanager
def readable(path: Path, what: str = "") -> Iterator[None]:
    """What the system says against reading a file is an InputError that names it."""
    try:
        yield
    except OSError as error:
        said = f"{what} cannot be read: {error.strerror or error}".strip()
        raise InputError(said, where=cut(str(path))) from None


def is_file(path: Path) -> bool:
    """Whether a file stands there; also for a name that a stranger's file gives, which may be none."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def is_folder(path: Path) -> bool:
    """The same for a folder."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def load_json(path: Path, *, most: int) -> Any:
    """The content of a JSON file; InputError where there is none, whatever the file holds."""
    try:
        with readable(path):
            return json.loads(read_regular(path, most=most))
    except ValueError as error:
        raise InputError(f"not JSON: {cut(str(error))}", where=cut(str(path))) from None
    except RecursionError:
        raise InputError("nested too deep to be read", where=cut(str(path))) from None


def load_npy(path: Path) -> NDArray[Any]:
    """The array of a .npy file, mapped; InputError where NumPy cannot make one of it."""
    import numpy as np

    try:
        with open_regular(path):
            pass
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of headers that an old NumPy wrote
            array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
            if not isinstance(array, np.ndarray):
                raise InputError("is an archive of arrays, not one array", where=cut(str(path)))
            return array
    except (OSError, InputError):
        raise
    except Exception as error:  # its header is evaluated as text, which can go wrong in any way
        raise InputError(f"not a readable .npy file: {cut(str(error))}", where=cut(str(path))) from None


def _kind(mode: int) -> str:
    if stat.S_ISFIFO(mode):
        return "a pipe"
    if stat.S_ISSOCK(mode):
        return "a socket"
    return "a device"
