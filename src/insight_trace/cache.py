"""Compiled things by content, shared by any number of processes, kept under a size limit.

An entry is a directory. It is built beside its place and renamed, so a reader finds it whole or not at all.
Programs are run from it: what somebody else made, or may write to, is not used. Where the cache cannot be used (a full
disk, no permission, another's folder), a private one among the temporary files serves.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
import stat
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from insight_trace.errors import InputError, JobError
from insight_trace.limits import STAMP_BYTES
from insight_trace.reading import regular_text
from insight_trace.scratch import owned_folder

SIZE_LIMIT = 2 * 1024**3
_TRIM_TO = 0.8
_ADDED = ".added"  # sizes of what was built since entries were last counted
_COUNT_EVERY = 32  # once this part of the limit was added: counting looks at every file
_STAMP = ".used"
_NAME_A_PLACE = "set INSIGHT_TRACE_CACHE or TMPDIR to a directory with free space"


def default_root() -> Path:
    asked = os.environ.get("INSIGHT_TRACE_CACHE")
    if asked:
        return Path(asked)
    named = os.environ.get("XDG_CACHE_HOME", "").strip()
    try:
        return (Path(named) if named else Path.home() / ".cache") / "insight-trace"
    except RuntimeError:  # a user whom nobody gave a home
        spare = _spare_root()
        if spare is None:
            raise JobError("there is no place for a cache", hint=_NAME_A_PLACE) from None
        return spare


def _spare_root() -> Path | None:
    """A directory among the temporary files that belongs to this user alone; None if there cannot be one."""
    root = Path(tempfile.gettempdir()) / f"insight-trace-cache-{os.getuid()}"
    try:
        root.mkdir(mode=0o700, exist_ok=True)
        return None if whose_it_is(root) else root
    except OSError:
        return None


def whose_it_is(path: Path) -> str:
    """Why a path is not safe to run programs from; "" where it is ours or the administrator's alone."""
    status = path.lstat()
    if status.st_uid not in (os.getuid(), 0):
        return f"{path} belongs to another user ({status.st_uid})"
    if stat.S_ISLNK(status.st_mode):
        return whose_it_is(path.resolve(strict=True))
    # of a file in a folder that nobody else may enter, the mode is no matter
    return f"others may write to {path}" if stat.S_ISDIR(status.st_mode) and status.st_mode & 0o022 else ""


def _made_private(folder: Path) -> Path:
    """A folder of a cache, made if it is not there, closed to others; PermissionError where it is not ours."""
    try:
        folder.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        folder = folder.resolve()
        status = folder.lstat()
        if status.st_uid == os.getuid() and stat.S_ISDIR(status.st_mode) and status.st_mode & 0o022:
            folder.chmod(0o700)  # what others put there meanwhile is theirs, and is not used
    reason = whose_it_is(folder)
    if reason:
        raise PermissionError(errno.EPERM, reason)
    return folder


def content_key(parts: Iterable[bytes | str]) -> str:
    """A name for content: the same parts in the same order give the same name."""
    digest = hashlib.sha256()
    for part in parts:
        raw = part.encode(errors="surrogateescape") if isinstance(part, str) else part
        digest.update(len(raw).to_bytes(8, "little"))
        digest.update(raw)
    return digest.hexdigest()[:40]


class Cache:
    """A directory of entries by key."""

    def __init__(self, root: Path | None = None, limit: int = SIZE_LIMIT) -> None:
        self.root = (root or default_root()).absolute()
        if self.root.is_symlink():
            self.root = self.root.resolve()
        self.limit = limit

    def get(self, kind: str, key: str) -> Path | None:
        """The entry, or None if it is not there or not whole any more. Using it counts as recent."""
        entry = self.root / kind / key
        stamp = entry / _STAMP
        try:
            used = stamp.stat().st_mtime
            lines = regular_text(stamp, most=STAMP_BYTES).splitlines()
            sizes = {entry / name: int(size) for size, name in (line.split(" ", 1) for line in lines)}
            safe = not any(map(whose_it_is, (self.root, entry.parent, entry, *sizes)))
            whole = safe and all(file.lstat().st_size == size for file, size in sizes.items())
        except (OSError, ValueError, InputError):
            whole = False
        if not whole:
            if entry.is_dir():
                self.drop(entry)
            return None
        # to the minute: what every run needs must not look older than what one long run has just made
        if abs(time.time() - used) > 60:
            with contextlib.suppress(OSError):
                os.utime(stamp)
        return entry

    def drop(self, entry: Path) -> None:
        """Removes an entry that turned out to be broken."""
        shutil.rmtree(entry, ignore_errors=True)

    def put(
        self,
        kind: str,
        key: str,
        build: Callable[[Path], None],
        usable: Callable[[Path], bool] = Path.is_dir,
    ) -> Path:
        """The entry under `key`, built into an empty directory first if it is not there or not `usable`."""
        found = self.get(kind, key)
        if found and usable(found):
            return found
        parent = self.root / kind
        try:
            _made_private(self.root)
            _made_private(parent)
            with self._lock(parent / f".{key}.lock"):
                found = self.get(kind, key)
                if found and usable(found):
                    return found
                if (parent / key).is_dir():
                    self.drop(parent / key)
                return self._build(parent, key, build)
        except OSError as error:
            spare = _spare_root()
            if spare is None or spare == self.root:
                raise JobError(
                    f"neither the cache nor a temporary directory can be written: {error}",
                    where=str(self.root),
                    hint=_NAME_A_PLACE,
                ) from None
            warnings.warn(f"the cache at {self.root} cannot be used ({error}); using {spare}", stacklevel=2)
            return Cache(spare, self.limit).put(kind, key, build, usable)

    def _build(self, parent: Path, key: str, build: Callable[[Path], None]) -> Path:
        with owned_folder(parent, f".{key}.own-", ".*.own-*") as beside:
            build(beside)
            sizes = [f"{file.stat().st_size} {file.name}" for file in sorted(beside.iterdir())]
            (beside / _STAMP).write_text("\n".join(sizes))
            entry = parent / key
            try:
                beside.rename(entry)
            except OSError:
                if not entry.is_dir() or whose_it_is(entry):  # not a build that was quicker: a real fault
                    raise
            if self._grew(sum(int(line.split(" ", 1)[0]) for line in sizes)):
                self._trim()
            return entry

    def _grew(self, size: int) -> bool:
        """Notes what was added, and says whether it is so much by now that entries are to be counted."""
        noted = self.root / _ADDED
        try:
            with noted.open("a+") as file:
                file.write(f"{size}\n")
                file.seek(0)
                sizes = [int(line) for line in file.read(STAMP_BYTES).split()]
        except (OSError, ValueError):
            return True
        if len(sizes) > 1 and sum(sizes) < self.limit / _COUNT_EVERY:
            return False
        with contextlib.suppress(OSError):
            noted.write_text("0\n")
        return True

    @contextlib.contextmanager
    def _lock(self, path: Path) -> Iterator[None]:
        while True:
            with path.open("wb") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                try:
                    ours = path.stat().st_ino == os.fstat(file.fileno()).st_ino
                except FileNotFoundError:
                    ours = False
                if not ours:
                    continue  # who held it before has removed it: another may hold the name's new file
                try:
                    yield
                finally:
                    path.unlink(missing_ok=True)
                return

    def _trim(self) -> None:
        """Removes what was used longest ago until the limit holds again."""
        entries = []
        for stamp in self.root.glob(f"*/*/{_STAMP}"):
            with contextlib.suppress(OSError):
                size = sum(file.stat().st_size for file in stamp.parent.iterdir())
                used = stamp.stat().st_mtime
                entries.append((used if used <= time.time() + 60 else 0.0, size, stamp.parent))
        total = sum(size for _, size, _ in entries)
        if total <= self.limit:
            return
        for used, size, entry in sorted(entries)[:-1]:
            try:
                if used and (entry / _STAMP).stat().st_mtime != used:
                    continue  # somebody has come to use it since
            except OSError:
                continue
            shutil.rmtree(entry, ignore_errors=True)
            total -= size
            if total <= self.limit * _TRIM_TO:
                return
