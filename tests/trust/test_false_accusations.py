"""What is not the kernel's fault is not told as the kernel's, and nothing waits for what never comes."""

import errno
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from insight_trace import simulate
from insight_trace.__main__ import main
from insight_trace.doctor import cache as cache_part
from insight_trace.errors import InputError, JobError, as_error
from insight_trace.outcome import Fault
from insight_trace.simulate.embedded import job_files
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


@pytest.mark.parametrize("where", ["the working folder", "a word"])
def test_a_name_that_is_not_utf_8_is_refused_before_anything_is_done(where, tmp_path):
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/d\xff\xe9r")
    shutil.copytree(EXAMPLES / "vector_chain", f"{odd}/chain")
    scene = "chain/scene.py" if where == "the working folder" else f"{odd}/chain/scene.py"
    for words in (["capture", scene, "-o", "dump"], ["scene", scene], ["run", scene, "-o", "run"]):
        done = subprocess.run(
            [sys.executable, "-m", "insight_trace", *words],
            cwd=odd if where == "the working folder" else tmp_path, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert done.returncode == 2
        assert "r'" not in done.stderr
        assert "this name is not UTF-8" in done.stderr
        assert "\\udcff" in done.stderr
        assert "rename it" in done.stderr
    assert os.listdir(odd) == ["chain"]


def test_a_file_with_such_a_name_among_the_inputs_is_the_inputs_fault():
    try:
        "a folder \udcff".encode()
    except UnicodeEncodeError as error:
        found = as_error(error)
    assert found.exit_code == InputError("").exit_code
    assert "is not UTF-8" in found.what


@pytest.mark.parametrize("full", ["memory", "memory and disk"])
def test_no_room_for_a_jobs_files_is_the_machines_fault(full, tmp_path, monkeypatch, capsys):
    """Both places of a job's files are folders of a file system that is full, as posix_fallocate says it."""
    real = os.posix_fallocate
    places = (
        (job_files._SHARED_MEMORY, tmp_path) if full == "memory and disk" else (job_files._SHARED_MEMORY,)
    )
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def fallocate(file: int, start: int, size: int) -> None:
        at = Path(f"/proc/self/fd/{file}").readlink()
        if any(at.is_relative_to(place) for place in places):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(file, start, size)

    monkeypatch.setattr(os, "posix_fallocate", fallocate)
    source = write_kernel(tmp_path, "")
    if full == "memory":
        assert simulate(source, {0: np.zeros(8, np.float32)}).failure is None
        return
    with pytest.raises(JobError) as found:
        simulate(source, {0: np.zeros(8, np.float32)})
    assert "no room for" in found.value.what
    assert "TMPDIR" in found.value.hint
    assert not list(tmp_path.glob("insight-trace-*"))


@pytest.mark.parametrize(("size", "turns"), [("16k", 0), ("300k", 0), ("4m", 100_000)])
def test_a_disk_that_becomes_full_while_a_kernel_runs_is_the_machines_fault(size, turns, tmp_path):
    """On a real small file system, in a mount namespace of its own: no room to begin, to end, for all instructions."""
    flags = "set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0); wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);"
    source = write_kernel(tmp_path, f"for (int i = 0; i < {turns}; ++i) {{ {flags} }}")
    small = tmp_path / "small"
    small.mkdir()
    script = f"""
import pathlib, tempfile
import numpy as np
from insight_trace import simulate
from insight_trace.simulate.embedded import job_files
def run():
    return simulate({str(source)!r}, {{0: np.zeros(8, np.float32)}}).failure
assert run() is None  # compiled where there is room
job_files._SHARED_MEMORY = pathlib.Path({str(small)!r})
tempfile.tempdir = {str(small)!r}
try:
    print("ran", run())
except Exception as error:
    print(type(error).__name__, error)
"""
    mount = ["unshare", "-m", "sh", "-c", f'mount -t tmpfs -o size={size} none {small} && exec "$@"', "sh"]
    if shutil.which("unshare") is None or subprocess.run([*mount, "true"], capture_output=True).returncode:
        pytest.skip("only who may mount can have a small disk")
    done = subprocess.run([*mount, sys.executable, "-c", script], capture_output=True, text=True, timeout=600)
    assert done.stdout.startswith("NoRoomError no room for")
    assert "TMPDIR" in done.stdout
