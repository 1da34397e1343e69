"""Compiled things by content, shared by any number of processes, kept under a size limit.

An entry is a directory. It is built beside its place and renamed, so a reader finds it whole or not at all.
Where the cache cannot be used (a full disk, no permission), work goes on in a temporary directory.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

SIZE_LIMIT = 2 * 1024**3
_TRIM_TO = 0.8
_STAMP = ".used"


def default_root() -> Path:
    asked = os.environ.get("INSIGHT_TRACE_CACHE")
    if asked:
        return Path(asked)
    from platformdirs import user_cache_path

    return user_cache_path("insight-trace", appauthor=False)


def content_key(parts: Iterable[bytes | str]) -> str:
    """A name for content: the same parts in the same order give the same name."""
    digest = hashlib.sha256()
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        digest.update(len(raw).to_bytes(8, "little"))
        digest.update(raw)
    return digest.hexdigest()[:40]


class Cache:
    """A directory of entries by key."""

    def __init__(self, root: Path | None = None, limit: int = SIZE_LIMIT) -> None:
        self.root = root or default_root()
        self.limit = limit

    def get(self, kind: str, key: str) -> Path | None:
        """The entry, or None. Using it counts as recent."""
        entry = self.root / kind / key
        stamp = entry / _STAMP
        try:
            # a day's precision is enough to find what nobody uses any more
            if time.time() - stamp.stat().st_mtime > 3600:
                os.utime(stamp)
        except FileNotFoundError:
            return None
        except OSError:
            pass
        return entry

    def drop(self, entry: Path) -> None:
        """Removes an entry that turned out to be broken."""
        shutil.rmtree(entry, ignore_errors=True)

    def put(self, kind: str, key: str, build: Callable[[Path], None]) -> Path:
        """The entry under `key`, built into an empty directory first if it is not there."""
        found = self.get(kind, key)
        if found:
            return found
        parent = self.root / kind
        try:
            parent.mkdir(parents=True, exist_ok=True)
            with self._lock(parent / f".{key}.lock"):
                found = self.get(kind, key)
                return found or self._build(parent, key, build)
        except OSError as error:
            warnings.warn(
                f"the cache at {self.root} cannot be used ({error}); going on without", stacklevel=2
            )
            beside = Path(tempfile.mkdtemp(prefix="insight-trace-"))
            build(beside)
            return beside

    def _build(self, parent: Path, key: str, build: Callable[[Path], None]) -> Path:
        beside = Path(tempfile.mkdtemp(prefix=f".{key}.", dir=parent))
        try:
            build(beside)
            (beside / _STAMP).touch()
            entry = parent / key
            try:
                beside.rename(entry)
            except OSError:
                if not entry.is_dir():  # not a build that was quicker: a real fault
                    raise
                shutil.rmtree(beside, ignore_errors=True)
            self._trim()
            return entry
        except BaseException:
            shutil.rmtree(beside, ignore_errors=True)
            raise

    @contextlib.contextmanager
    def _lock(self, path: Path) -> Iterator[None]:
        from filelock import FileLock

        with FileLock(str(path)):
            yield
        path.unlink(missing_ok=True)

    def _trim(self) -> None:
        """Removes what was used longest ago until the limit holds again."""
        entries = []
        for stamp in self.root.glob(f"*/*/{_STAMP}"):
            with contextlib.suppress(OSError):
                size = sum(file.stat().st_size for file in stamp.parent.iterdir())
                entries.append((stamp.stat().st_mtime, size, stamp.parent))
        total = sum(size for _, size, _ in entries)
        if total <= self.limit:
            return
        for _, size, entry in sorted(entries)[:-1]:
            shutil.rmtree(entry, ignore_errors=True)
            total -= size
            if total <= self.limit * _TRIM_TO:
                return
