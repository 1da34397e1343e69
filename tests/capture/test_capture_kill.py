"""Whenever a capture is ended, what it leaves is a dump that loads, marked as partial, or nothing at all."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from capture_scenes import EXAMPLES

import insight_trace
from insight_trace import supervisor
from insight_trace.capture.dump_rows import ROW

SCENE = EXAMPLES / "paged_attention" / "scene.py"


def start(folder):
    command = [sys.executable, "-m", "insight_trace", "capture", str(SCENE), "--case", "Case1"]
    command += ["-o", str(folder), "--skip-golden", "--dump-args", "3"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.fixture(scope="module", autouse=True)
def _compiled():
    insight_trace.capture(SCENE, "CaseSmall1", level=0)


def test_a_runner_whose_caller_died_before_it_could_ask_for_a_signal_ends_by_itself(tmp_path, monkeypatch):
    class Elsewhere:
        """The caller's number is that of a process which is not the runner's parent."""

        def __getattr__(self, name):
            return (lambda: 1) if name == "getpid" else getattr(os, name)

    monkeypatch.setattr(supervisor, "os", Elsewhere())
    run = insight_trace.capture(SCENE, "CaseSmall1", output=tmp_path / "run")
    assert run.tasks == 0
    assert run.failure is not None
    assert not (tmp_path / "run").exists()


def test_a_kill_while_it_records_loses_nothing_that_was_recorded(tmp_path):
    process = start(tmp_path / "run")
    rows = tmp_path / "run" / "args_dump" / ".rows"
    wait_for(rows)
    time.sleep(1.0)
    before = rows.stat().st_size // ROW.itemsize
    process.send_signal(signal.SIGKILL)
    process.communicate()
    check(tmp_path / "run")
    limit = time.monotonic() + 60
    while rows.exists() and time.monotonic() < limit:  # the runner saw its caller go and has the dump written
        time.sleep(0.1)
    assert not rows.exists()
    manifest = json.loads((tmp_path / "run" / "args_dump" / "args_dump.json").read_text())
    assert manifest["failure"]["message"] == "the capture was killed"
    assert len(manifest["args"]) >= before > 100
    assert check(tmp_path / "run") > 20
    assert (tmp_path / "run" / "args_dump" / "kernel_args_dump.json").exists()


def test_a_polite_end_keeps_everything_up_to_then(tmp_path):
    process = start(tmp_path / "run")
    wait_for(tmp_path / "run" / "args_dump" / ".rows")
    time.sleep(0.7)
    process.send_signal(signal.SIGTERM)
    _, error = process.communicate(timeout=20)
    assert process.returncode == 1
    assert b"interrupted" in error
    assert check(tmp_path / "run") > 4
    assert not (tmp_path / "run" / "args_dump" / ".rows").exists()


def wait_for(path):
    while not path.exists():
        time.sleep(0.02)


def check(folder):
    """How many dispatches the partial dump has; -1 would be a dump that does not load."""
    if not folder.exists():
        return 0
    manifest = json.loads((folder / "args_dump" / "args_dump.json").read_text())
    assert manifest["partial"] is True
    dump = insight_trace.load_dump(folder / "args_dump" / "args_dump.json")
    return len(list(dump.dispatches))
