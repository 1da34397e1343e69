"""Whenever a capture is ended, what it leaves is a dump that loads, marked as partial, or nothing at all."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest
from capture_scenes import EXAMPLES

import insight_trace

SCENE = EXAMPLES / "paged_attention" / "scene.py"


def start(folder):
    command = [sys.executable, "-m", "insight_trace", "capture", str(SCENE), "--case", "Case1"]
    command += ["-o", str(folder), "--skip-golden", "--dump-args", "3"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.fixture(scope="module", autouse=True)
def _compiled():
    insight_trace.capture(SCENE, "CaseSmall1", level=0)


KILLS = 50 if os.environ.get("INSIGHT_TRACE_LONG_TESTS") else 8


@pytest.mark.parametrize("number", range(KILLS))
def test_a_kill_at_any_moment_leaves_a_partial_dump_or_none(number, tmp_path):
    moment = random.Random(number).uniform(0.1, 3.0)
    process = start(tmp_path / "run")
    time.sleep(moment)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert check(tmp_path / "run") >= 0


def test_a_polite_end_keeps_everything_up_to_then(tmp_path):
    process = start(tmp_path / "run")
    while not (tmp_path / "run" / "args_dump" / ".rows").exists():
        time.sleep(0.05)
    time.sleep(0.7)
    process.send_signal(signal.SIGTERM)
    _, error = process.communicate(timeout=20)
    assert process.returncode == 1
    assert b"interrupted" in error
    assert check(tmp_path / "run") > 4
    assert not (tmp_path / "run" / "args_dump" / ".rows").exists()


def check(folder):
    """How many dispatches the partial dump has; -1 would be a dump that does not load."""
    if not folder.exists():
        return 0
    manifest = json.loads((folder / "args_dump" / "args_dump.json").read_text())
    assert manifest["partial"] is True
    dump = insight_trace.load_dump(folder / "args_dump" / "args_dump.json")
    return len(list(dump.dispatches))
