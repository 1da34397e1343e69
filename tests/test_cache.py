"""The cache of compiled things: whole or absent, shared by processes, kept small, never in the way."""

import os
import shutil
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from insight_trace.cache import Cache, content_key
from insight_trace.errors import JobError


def writes(text: str):
    def build(into: Path) -> None:
        (into / "made").write_text(text)

    return build


def test_an_entry_is_built_once(tmp_path):
    cache = Cache(tmp_path)
    first = cache.put("kind", "key", writes("one"))
    assert (cache.put("kind", "key", writes("two")) / "made").read_text() == "one"
    assert cache.get("kind", "key") == first
    assert cache.get("kind", "other") is None


def test_a_key_depends_on_where_a_part_ends():
    assert content_key(["ab", "c"]) != content_key(["a", "bc"])
    assert content_key(["ab", b"c"]) == content_key([b"ab", "c"])


@pytest.mark.parametrize("harm", ["cut", "removed", "unstamped"])
def test_a_broken_entry_is_built_again(tmp_path, harm):
    cache = Cache(tmp_path)
    entry = cache.put("kind", "key", writes("whole"))
    if harm == "cut":
        (entry / "made").write_text("wh")
    elif harm == "removed":
        (entry / "made").unlink()
    else:
        (entry / ".used").write_text("no size here")
    assert (cache.put("kind", "key", writes("again")) / "made").read_text() == "again"


def test_a_build_that_fails_leaves_nothing(tmp_path):
    def build(into: Path) -> None:
        (into / "half").write_text("x")
        raise JobError("no")

    with pytest.raises(JobError, match="no"):
        Cache(tmp_path).put("kind", "key", build)
    assert not [path for path in (tmp_path / "kind").iterdir() if not path.name.endswith(".lock")]


def test_what_a_killed_build_left_is_removed_by_the_next_and_what_is_being_built_is_not(tmp_path):
    cache = Cache(tmp_path)
    dead = tmp_path / "kind" / ".dead.own-abc"
    dead.mkdir(parents=True)
    os.utime(dead, (1, 1))

    def build(into: Path) -> None:
        os.utime(into, (1, 1))
        cache.put("kind", "other", writes("other"))
        (into / "made").write_text("still here")

    assert (cache.put("kind", "key", build) / "made").read_text() == "still here"
    assert sorted(path.name for path in (tmp_path / "kind").iterdir()) == ["key", "other"]


def test_what_was_used_longest_ago_goes_when_the_limit_is_reached(tmp_path):
    cache = Cache(tmp_path, limit=2500)
    old = cache.put("kind", "old", writes("x" * 1000))
    stamp = old / ".used"
    past = time.time() - 86400
    os.utime(stamp, (past, past))
    cache.put("kind", "middle", writes("x" * 1000))
    cache.put("kind", "new", writes("x" * 1000))
    assert cache.get("kind", "old") is None
    assert cache.get("kind", "new") is not None
    size = sum(file.stat().st_size for file in tmp_path.rglob("made"))
    assert size <= 2500


def test_what_somebody_comes_to_use_while_room_is_made_stays(tmp_path, monkeypatch):
    cache = Cache(tmp_path, limit=2100)
    stamps = []
    for name, hours in (("first", 3), ("second", 2)):
        stamps.append(cache.put("kind", name, writes("x" * 1000)) / ".used")
        past = time.time() - hours * 3600
        os.utime(stamps[-1], (past, past))
    remove = shutil.rmtree

    def removing(entry, **how):
        if entry.name == "first":  # meanwhile another process takes the second
            assert Cache(tmp_path).get("kind", "second")
        remove(entry, **how)

    monkeypatch.setattr(shutil, "rmtree", removing)
    cache.put("kind", "new", writes("x" * 1000))
    assert [cache.get("kind", name) is not None for name in ("first", "second", "new")] == [False, True, True]


def test_many_small_entries_are_not_counted_for_each_of_them(tmp_path, monkeypatch):
    counted = []
    trim = Cache._trim
    monkeypatch.setattr(Cache, "_trim", lambda cache: counted.append(1) or trim(cache))
    for number in range(64):
        Cache(tmp_path, limit=100_000).put("kind", f"{number}", writes("x" * 1000))
    assert 16 <= len(counted) <= 22
    for number in range(64, 130):
        Cache(tmp_path, limit=100_000).put("kind", f"{number}", writes("x" * 1000))
    assert sum(file.stat().st_size for file in tmp_path.rglob("made")) <= 105_000


@pytest.mark.parametrize("noted", [b"", b"12\nhal", b"\xff\x00"])
def test_a_note_of_what_was_added_that_is_no_note_only_has_entries_counted(tmp_path, noted):
    cache = Cache(tmp_path, limit=2500)
    stamp = cache.put("kind", "old", writes("x" * 1000)) / ".used"
    os.utime(stamp, (1, 1))
    (tmp_path / ".added").write_bytes(noted)
    cache.put("kind", "new", writes("x" * 1000))
    (tmp_path / ".added").write_bytes(noted)
    cache.put("kind", "newest", writes("x" * 1000))
    assert cache.get("kind", "old") is None
    assert cache.get("kind", "newest")


def test_what_is_used_all_the_time_stays_though_it_was_made_first(tmp_path):
    cache = Cache(tmp_path, limit=2900)
    for name, minutes in (("engine", 20), ("kernel", 10)):
        made = cache.put("kind", name, writes("x" * 1000))
        past = time.time() - minutes * 60
        os.utime(made / ".used", (past, past))
    assert cache.get("kind", "engine")
    cache.put("kind", "new", writes("x" * 1000))
    assert cache.get("kind", "engine")
    assert cache.get("kind", "kernel") is None


def test_a_cache_that_cannot_be_written_is_bypassed_with_a_warning(tmp_path, monkeypatch):
    spare = tmp_path / "spare"
    spare.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(spare))
    in_the_way = tmp_path / "file"
    in_the_way.write_text("not a directory")
    cache = Cache(in_the_way / "cache")
    with pytest.warns(UserWarning, match="cannot be used"):
        entry = cache.put("kind", "key", writes("made elsewhere"))
    assert entry.is_relative_to(spare)
    with pytest.warns(UserWarning, match="cannot be used"):
        assert (cache.put("kind", "key", writes("not needed")) / "made").read_text() == "made elsewhere"


def test_a_spare_place_that_others_can_write_is_not_trusted(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    spare = tmp_path / f"insight-trace-cache-{os.getuid()}"
    spare.mkdir()
    spare.chmod(0o777)
    (tmp_path / "file").write_text("")
    with pytest.raises(JobError, match="neither the cache nor a temporary directory"):
        Cache(tmp_path / "file" / "cache").put("kind", "key", writes("x"))


_BUILDER = """
import sys, time
from pathlib import Path
from insight_trace.cache import Cache
root = Path(sys.argv[1])
def build(into):
    with (root / "builds").open("a") as log:
        log.write("built\\n")
    (into / "first").write_text("1")
    time.sleep(0.3)
    (into / "second").write_text("2")
entry = Cache(root).put("kind", "key", build)
assert (entry / "first").read_text() == "1" and (entry / "second").read_text() == "2"
"""


def test_many_processes_at_once_see_a_whole_entry_and_build_it_once(tmp_path):
    processes = [subprocess.Popen([sys.executable, "-c", _BUILDER, str(tmp_path)]) for _ in range(5)]
    assert [process.wait() for process in processes] == [0] * 5
    assert (tmp_path / "builds").read_text() == "built\n"


def test_who_waited_for_a_lock_that_is_gone_takes_the_new_one(tmp_path):
    at_once, most, made = [0], [0], []

    def build(into: Path) -> None:
        at_once[0] += 1
        most[0] = max(most[0], at_once[0])
        time.sleep(0.01)
        made.append(into)
        at_once[0] -= 1

    def ask() -> None:
        for _ in range(3):
            Cache(tmp_path).put("kind", "key", build, usable=lambda _entry: False)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (most[0], len(made)) == (1, 12)
    assert not list((tmp_path / "kind").glob(".*.lock"))


def test_folders_of_a_cache_are_private_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        entry = Cache(tmp_path / "cache").put("kind", "key", writes("x"))
    finally:
        os.umask(before)
    modes = [stat.S_IMODE(place.stat().st_mode) for place in (entry, entry.parent, entry.parent.parent)]
    assert modes == [0o700] * 3


@pytest.mark.parametrize("where", ["root", "kind", "entry", "file"])
def test_what_another_user_made_is_not_used(tmp_path, monkeypatch, where):
    """As if somebody had prepared a runner where ours is looked for."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    entry = Cache(tmp_path / "cache").put("kind", "key", writes("prepared"))
    theirs = {
        "root": entry.parent.parent, "kind": entry.parent, "entry": entry, "file": entry / "made",
    }[where]  # fmt: skip
    real = Path.lstat

    def lstat(path: Path) -> os.stat_result:
        found = real(path)
        if path != theirs:
            return found
        return os.stat_result((*found[:4], 4711, *found[5:]))

    monkeypatch.setattr(Path, "lstat", lstat)
    cache = Cache(tmp_path / "cache")
    assert cache.get("kind", "key") is None
    if where in ("root", "kind"):
        with pytest.warns(UserWarning, match="belongs to another user"):
            made = cache.put("kind", "key", writes("our own"))
    else:
        monkeypatch.setattr(Path, "lstat", real)
        made = cache.put("kind", "key", writes("our own"))
    assert (made / "made").read_text() == "our own"


def test_a_cache_that_others_could_write_to_is_closed_to_them(tmp_path):
    entry = Cache(tmp_path / "cache").put("kind", "key", writes("ours"))
    entry.parent.chmod(0o777)
    cache = Cache(tmp_path / "cache")
    assert cache.get("kind", "key") is None
    assert (cache.put("kind", "key", writes("made again")) / "made").read_text() in ("ours", "made again")
    assert stat.S_IMODE(entry.parent.stat().st_mode) == 0o700


def test_what_a_run_uses_is_not_trimmed_by_times_in_the_future(tmp_path):
    cache = Cache(tmp_path, limit=5000)
    ours = cache.put("kind", "ours", writes("x" * 3000))
    for number in range(3):
        other = Cache(tmp_path, limit=10**9).put("kind", f"other{number}", writes("x" * 3000))
        os.utime(other / ".used", (time.time() + 10**8,) * 2)
    cache.put("kind", "one more", writes("x" * 100))
    assert ours.is_dir()
    assert sum(1 for path in (tmp_path / "kind").iterdir() if path.name.startswith("other")) < 3
