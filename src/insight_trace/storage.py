"""Outputs are whole or absent: written beside their place, then put into it by one call that never overwrites.

Every file and folder that a user gets goes through `whole_file`, `whole_directory` or `whole_files`.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import shutil
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from insight_trace.errors import JobError, RequestError

_NOREPLACE, _EXCHANGE = 1, 2  # flags of renameat2
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_AT_FDCWD = -100
_OWN = ".insight-trace-"  # hidden names of what is being written: .<name>.insight-trace-<letters>
_SECONDS_UNLOCKED = 10.0  # a new piece is locked within microseconds; an unlocked older one is a dead run's


def refuse_existing(
    path: Path, *, force: bool, record: Sequence[str] = (), inputs: Sequence[Path] = ()
) -> None:
    """An existing output is only replaced when the user asked for it and nothing else can be lost by that.

    A folder is replaced if it is empty or carries one of the files `record` (patterns below it) that say it is
    an output of the same kind; never one that is or holds an input, the working folder or a mount point.
    """
    if not os.path.lexists(path):
        return
    if path.exists() and not path.is_file() and not path.is_dir():
        raise RequestError(
            f"{path} is no regular file: a pipe or a device cannot take a file that is whole or absent",
            hint="name a file",
        )
    if not force:
        raise RequestError(
            f"{path} exists already", hint="choose another name, or give --force to replace it"
        )
    reason = _why_kept(path, record, inputs)
    if reason:
        raise RequestError(
            f"{path} {reason}, and is not replaced even with --force",
            hint="choose another name, or remove it yourself",
        )


_REPORTS = {"SARIF": b"sarif", "JUnit": b"<testsuite"}  # what stands at the begin of each form


def require_reports(sarif: Path | None, junit: Path | None) -> None:
    """A report is replaced by the next one of its form; any other file of that name stays, and is asked about at once."""
    if sarif is not None and junit is not None and sarif.absolute() == junit.absolute():
        raise RequestError(f"{sarif} cannot hold both reports", hint="name a file for each")
    for form, path in (("SARIF", sarif), ("JUnit", junit)):
        if path is None or not path.is_file():
            continue
        with path.open("rb") as file:
            begin = file.read(4096)
        if begin and _REPORTS[form] not in begin:
            raise RequestError(
                f"{path} is no {form} report, and is not replaced by one", hint="name another file"
            )


def _why_kept(path: Path, record: Sequence[str], inputs: Sequence[Path]) -> str:
    """Why an existing path must stay; empty where it may go."""
    if path.is_symlink():
        return "is a link"
    real = path.resolve()
    for given in inputs:
        source = given.resolve()
        if source == real or real in source.parents:
            return f"holds an input ({given})" if source != real else "is an input"
    if not path.is_dir():
        return "" if stat.S_ISREG(path.stat().st_mode) else "is no regular file"
    try:
        working = Path.cwd()
    except FileNotFoundError:
        working = None
    if working is not None and (working == real or real in working.parents):
        return "holds the working folder"
    if any(point == real or real in point.parents for point in _mount_points()):
        return "is or holds a mount point"
    if any(path.iterdir()) and not any(next(path.glob(name), None) for name in record):
        return "is no output of this command"
    return ""


def _mount_points() -> list[Path]:
    try:
        lines = Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines()
    except OSError:
        return []
    octal = {"\\040": " ", "\\011": "\t", "\\012": "\n", "\\134": "\\"}
    points = []
    for line in lines:
        name = line.split(" ")[4]
        for code, character in octal.items():
            name = name.replace(code, character)
        points.append(Path(name))
    return points


@contextlib.contextmanager
def whole_file(
    path: Path,
    *,
    force: bool = False,
    inputs: Sequence[Path] = (),
    mode: int = 0o666,
    sync: bool = True,
) -> Iterator[IO[bytes]]:
    """A binary file to write; it appears at `path`, complete, only when the block ends without error.

    `mode` is cut by the umask. `sync=False` is for a file of a directory that is itself put into place only
    when all of it is there.
    """
    refuse_existing(path, force=force, inputs=inputs)
    if path.is_dir():
        raise RequestError(f"{path} is a folder", hint="name a file")
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(path)
    beside = _beside(path)
    try:
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with os.fdopen(handle, "wb") as file:
            _lock(handle)
            yield file
            file.flush()
            if sync:
                os.fsync(handle)
            _publish(beside, path, force=force, inputs=inputs)
    except BaseException as error:
        _name(error, path)
        with contextlib.suppress(OSError):
            beside.unlink()
        raise


def write_whole(
    path: Path, content: bytes | str, *, force: bool = True, mode: int = 0o666, sync: bool = True
) -> None:
    """Writes one file, whole or not at all."""
    with whole_file(path, force=force, mode=mode, sync=sync) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextlib.contextmanager
def whole_directory(
    path: Path,
    *,
    force: bool = False,
    record: Sequence[str] = (),
    inputs: Sequence[Path] = (),
    mode: int = 0o777,
) -> Iterator[Path]:
    """A directory to fill; it appears at `path` only when the block ends without error.

    With `force`, what is there is replaced under the conditions of `refuse_existing`.
    """
    refuse_existing(path, force=force, record=record, inputs=inputs)
    with _filled(path, mode) as beside:
        yield beside
        _publish(beside, path, force=force, record=record, inputs=inputs)


@contextlib.contextmanager
def whole_files(
    folder: Path, *, force: bool = False, last: str = "", record: Sequence[str] = ()
) -> Iterator[Path]:
    """A directory to fill with files; they appear in `folder`, which may hold others, when the block ends.

    A file that stands there with the very same bytes is left alone: it may be what a killed run got done. Where the
    file `last` is there, so are the others.
    """
    if not os.path.lexists(folder):
        with whole_directory(folder) as beside:
            yield beside
        return
    if not folder.is_dir():
        raise RequestError(f"{folder} is no folder", hint="name a folder, or one that does not exist yet")
    with _filled(folder / "files", 0o700) as beside:
        yield beside
        pieces = sorted(beside.iterdir(), key=lambda piece: (piece.name == last, piece.name))
        fresh = [piece for piece in pieces if not _same(piece, folder / piece.name)]
        for piece in fresh:
            refuse_existing(folder / piece.name, force=force, record=record)
        for piece in fresh:
            _publish(piece, folder / piece.name, force=force, record=record)
        shutil.rmtree(beside, ignore_errors=True)


def second_name(path: Path, name: Path) -> None:
    """The file under another name, too: a hard link, or a copy where the file system has none."""
    try:
        os.link(path, name)
    except OSError:
        shutil.copyfile(path, name)


@contextlib.contextmanager
def scratch_directory(folder: Path) -> Iterator[Path]:
    """A hidden folder inside `folder`, gone at the end; one that a killed run left goes with the next."""
    with _filled(folder / "scratch", 0o700) as beside:
        try:
            yield beside
        finally:
            shutil.rmtree(beside, ignore_errors=True)


def _same(one: Path, other: Path) -> bool:
    import filecmp

    return other.is_file() and not other.is_symlink() and filecmp.cmp(one, other, shallow=False)


@contextlib.contextmanager
def _filled(path: Path, mode: int) -> Iterator[Path]:
    """A hidden folder to fill, locked, gone if the block fails."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(path)
    beside = _beside(path)
    handle = None
    try:
        beside.mkdir(mode=mode)  # a signal may come as soon as it is there
        handle = os.open(beside, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        _lock(handle)
        yield beside
    except BaseException as error:
        _name(error, path)
        shutil.rmtree(beside, ignore_errors=True)
        raise
    finally:
        if handle is not None:
            os.close(handle)


def _name(error: BaseException, path: Path) -> None:
    """A write that finds no room does not say where; the one who opened the file does."""
    if isinstance(error, OSError) and error.errno in NO_ROOM and error.filename is None:
        error.filename = str(path)


# --- the one call that puts something into its place ----------------------------------------------------


def remove_directory(path: Path) -> None:
    """Removes a folder by one call that takes it out of sight; what is then left of it is deleted as far as it can be."""
    for piece in path.parent.glob(f".*{_OWN}*"):
        remove_if_dead(piece)  # what a killed run left of a folder that it removed, too
    beside = _beside(path)
    path.rename(beside)
    try:
        shutil.rmtree(beside, ignore_errors=True)
    except BaseException:  # an interruption: nobody would ever look for the rest
        shutil.rmtree(beside, ignore_errors=True)
        raise


def _publish(
    beside: Path,
    path: Path,
    *,
    force: bool = False,
    record: Sequence[str] = (),
    inputs: Sequence[Path] = (),
) -> None:
    """Puts `beside` at `path`, which fails if the place was taken meanwhile: then the result is kept nearby."""
    try:
        if force and os.path.lexists(path):
            refuse_existing(path, force=True, record=record, inputs=inputs)
            _replace(beside, path, record)
        else:
            _take(beside, path)
    except (FileExistsError, RequestError):
        kept = _kept(beside, path)
        raise JobError(
            f"{path} was made by somebody else in the meantime and is left alone",
            hint=f"the result is in {kept}",
        ) from None


def _take(beside: Path, path: Path) -> None:
    """Renames unless something is there, which is FileExistsError."""
    if _renameat2(beside, path, _NOREPLACE):
        return
    if beside.is_dir():
        path.mkdir()  # fails if it is there; an empty folder is replaced by a rename, one with content is not
        beside.rename(path)
        return
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC))
    beside.replace(path)


def _replace(beside: Path, path: Path, record: Sequence[str]) -> None:
    if not beside.is_dir():
        beside.replace(path)
        return
    if not _renameat2(beside, path, _EXCHANGE):
        old = _beside(path)
        path.rename(old)
        _take(beside, path)
        beside = old
    elif _why_kept(beside, record, ()):  # changed between look and exchange: back with it
        _renameat2(beside, path, _EXCHANGE)
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    shutil.rmtree(beside, ignore_errors=True)


def _kept(beside: Path, path: Path) -> Path:
    for number in range(2, 10_000):
        place = path.with_name(f"{path.name}.{number}")
        with contextlib.suppress(FileExistsError):
            _take(beside, place)
            return place
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))


def _renameat2(source: Path, target: Path, flags: int) -> bool:
    """False where the machine or the file system does not know the call."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        return False
    if call(_AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), ctypes.c_uint(flags)) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        return False
    raise OSError(number, os.strerror(number), str(source), None, str(target))


# --- what is being written, and what a dead run left of it ----------------------------------------------


def _beside(path: Path) -> Path:
    # a long name is cut, so that the hidden one is no longer than a file system takes
    return path.with_name(f".{_stem(path)}{_OWN}{os.urandom(4).hex()}")


def _stem(path: Path) -> str:
    return os.fsdecode(os.fsencode(path.name)[:200])


def _lock(handle: int) -> None:
    """Held as long as this process lives; a file system without locks only means that leftovers stay."""
    with contextlib.suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _remove_leftovers(path: Path) -> None:
    """Removes what killed runs left while they wrote `path`: it is theirs by name and nobody holds its lock."""
    prefix = f".{_stem(path)}{_OWN}"
    try:
        pieces = [piece for piece in path.parent.iterdir() if piece.name.startswith(prefix)]
    except OSError:
        return
    for piece in pieces:
        remove_if_dead(piece)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Others who lock the same folder wait; it leaves no file. Where a file system has no locks, nobody waits."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def visible_names(folder: Path) -> set[str]:
    """What a folder holds, without hidden pieces that are being written or that a killed run left."""
    return {e.name for e in folder.iterdir() if not (e.name.startswith(".") and _OWN in e.name)}


def remove_if_dead(place: Path) -> None:
    """Removes a hidden or temporary piece if the run that made it is gone."""
    try:
        handle = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return
    try:
        facts = os.fstat(handle)
        if time.time() - facts.st_mtime < _SECONDS_UNLOCKED:
            return
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if stat.S_ISDIR(facts.st_mode):
            shutil.rmtree(place, ignore_errors=True)
        else:
            place.unlink(missing_ok=True)
    except OSError:
        return  # it is locked: somebody is writing it
    finally:
        os.close(handle)


def require_room(place: Path, need: int, what: str, hint: str) -> None:
    """Refuses what a file system cannot hold before any of it is written; `place` need not be there yet."""
    folder = next(each for each in (place, *place.absolute().parents) if each.is_dir())
    facts = os.statvfs(folder)
    free = facts.f_bavail * facts.f_frsize
    if need > free:
        raise JobError(
            f"{what} takes about {need >> 20:,} MiB; {free >> 20:,} MiB are free",
            where=str(folder),
            hint=hint,
        )
