"""What is not the kernel's fault is not told as the kernel's, and nothing waits for what never comes."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from insight_trace import simulate
from insight_trace.__main__ import main
from insight_trace.doctor import cache as cache_part
from insight_trace.errors import JobError
from insight_trace.outcome import Fault
from insight_trace.simulate.embedded.toolchain import _require_room
from tests.simulate.kernel_text import write_kernel

EXAMPLES = Path(__file__).parents[2] / "examples"
SCENE = str(EXAMPLES / "vector_chain" / "scene.py")


@pytest.fixture(scope="module")
def replayed(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("replayed")
    assert main(["capture", SCENE, "-o", str(place / "dump")]) == 0
    words = ["replay", SCENE, "--func-id", "0", "--dump-dir", str(place / "dump"), "-o", str(place / "ws")]
    assert main(words) == 0
    return place


@pytest.mark.parametrize("kind", ["fifo", "/dev/stdout", "/dev/null"])
def test_a_page_into_a_pipe_or_a_device_is_refused_at_once(replayed, tmp_path, kind):
    output = kind
    if kind == "fifo":
        output = str(tmp_path / "fifo")
        os.mkfifo(output)
    words = [
        sys.executable,
        "-m",
        "insight_trace",
        "view",
        str(replayed / "ws"),
        "-o",
        output,
        "--no-browser",
    ]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "is no regular file" in done.stderr


def test_a_slot_that_was_not_recorded_is_named_and_not_the_kernel(replayed, tmp_path, capsys):
    dump = tmp_path / "dump"
    shutil.copytree(replayed / "dump", dump)
    (manifest,) = dump.rglob("args_dump.json")
    (manifest.parent / "kernel_args_dump.json").unlink()
    content = json.loads(manifest.read_text())
    content["args"] = [one for one in content["args"] if one["role"] != "output"]
    manifest.write_text(json.dumps(content))
    assert main(["replay", SCENE, "--func-id", "0", "--dump-dir", str(dump), "-o", str(tmp_path / "ws")]) != 0
    said = capsys.readouterr().err
    assert "slot 2 was not recorded, and the kernel reads it" in said
    assert "[kernel]" not in said


@pytest.mark.parametrize(
    "said",
    [
        "collect2: fatal error: cannot find 'ld'",
        "g++: fatal error: cannot execute 'as': execvp: No such file",
    ],
)
def test_a_compiler_without_a_linker_is_the_machines_fault(said):
    with pytest.raises(JobError, match="finds no assembler or linker"):
        _require_room(said)


def test_a_kernel_that_forks_in_its_constructor_is_ended_and_told(tmp_path):
    before = "#include <unistd.h>\nstruct Early { Early() { if (fork() == 0) _exit(0); } } early;\n"
    failure = simulate(write_kernel(tmp_path, "", before=before), {0: np.zeros(8, np.float32)}).failure
    assert failure is not None
    assert failure.fault is Fault.KERNEL
    assert "the kernel called fork" in failure.message


def test_doctor_says_that_no_program_runs_from_a_cache_on_a_noexec_mount(tmp_path, monkeypatch):
    monkeypatch.setenv("INSIGHT_TRACE_CACHE", str(tmp_path / "cache"))
    assert cache_part().found
    real = os.statvfs(tmp_path)

    class NoExec:
        f_flag = real.f_flag | os.ST_NOEXEC

    monkeypatch.setattr(os, "statvfs", lambda _path: NoExec)
    assert not cache_part().found
    assert "noexec" in cache_part().advice
