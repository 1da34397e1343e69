"""Folders for a while: nothing of them stays, whoever ended their owner."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from insight_trace.scratch import PREFIX, scratch_folder
from insight_trace.simulate.embedded.compiler import Compiler

WAITS = """
import sys, time
from insight_trace.scratch import scratch_folder
with scratch_folder("test") as place:
    (place / "file").write_text("x")
    print(place, flush=True)
    time.sleep(1000)
"""


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """An empty folder for temporary files, of this process and of those that it starts."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def test_a_folder_is_gone_after_its_block_also_when_that_fails(temporary):
    def fails() -> None:
        with scratch_folder("test") as place:
            (place / "file").write_text("x")
            assert place.parent == temporary
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert not list(temporary.iterdir())


@pytest.mark.usefixtures("temporary")
def test_the_folder_of_an_owner_that_was_killed_goes_with_the_next_one():
    with subprocess.Popen([sys.executable, "-c", WAITS], stdout=subprocess.PIPE, text=True) as owner:
        place = Path(owner.stdout.readline().strip())
        os.utime(place, (1, 1))
        with scratch_folder():
            assert place.is_dir()  # its owner lives
        owner.send_signal(signal.SIGKILL)
    with scratch_folder():
        assert not place.exists()


def test_folders_of_others_are_left_alone(temporary):
    foreign = [temporary / "insight-trace-cache-0", temporary / f"{PREFIX}file"]
    foreign[0].mkdir()
    foreign[1].write_text("a file")
    for path in foreign:
        os.utime(path, (1, 1))
    with scratch_folder():
        pass
    assert sorted(temporary.iterdir()) == sorted(foreign)


def test_a_compiler_that_is_ended_leaves_no_temporary_files(temporary, monkeypatch):
    monkeypatch.setenv("INSIGHT_TRACE_COMPILE_SECONDS", "0.5")
    endless = ("/bin/sh", "-c", 'echo x > "$TMPDIR/cc1.s"; cat "$TMPDIR/cc1.s"; exec sleep 1000')
    ended = Compiler(endless, "endless 1.0").run([])
    assert ended.said == b"x\n"
    assert ended.over == "time"
    assert not list(temporary.iterdir())
