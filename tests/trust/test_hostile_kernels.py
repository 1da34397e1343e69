"""Kernels that mean harm are contained, what they did is told, and nothing outlives them."""

import os
import re
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

from insight_trace import limits, simulate
from insight_trace.outcome import Fault
from insight_trace.simulate.embedded import job_files, memory
from insight_trace.supervisor import adopting
from tests.simulate.kernel_text import write_kernel
from tests.trust.hostile_kernels import BEFORE, KERNELS, Hostile, source
from tests.trust.test_supervisor import MARK, gone


@pytest.fixture(scope="module")
def kernel(tmp_path_factory) -> Path:
    before, body = source()
    written = write_kernel(tmp_path_factory.mktemp("hostile"), body, before=before, name="hostile.cpp")
    # compiled here, once: a test's time is that of its run
    assert simulate(written, {0: np.zeros(64, np.float32), 1: 10_000}).failure is None
    return written


def _children() -> set[int]:
    return {
        int(number)
        for task in Path("/proc/self/task").iterdir()
        for number in (task / "children").read_text().split()
    }


@pytest.mark.parametrize("hostile", KERNELS, ids=lambda k: k.name)
def test_a_hostile_kernel_is_contained_and_what_it_did_is_told(kernel, hostile: Hostile):
    before = _children()
    begin = time.monotonic()
    number = KERNELS.index(hostile)
    values = {0: np.zeros(64, np.float32), 1: number}
    failure = simulate(kernel, values, seconds=hostile.seconds, memory_limit=256 << 20).failure
    assert failure is not None
    assert re.search(hostile.says, failure.message), failure.message
    assert failure.fault in (Fault.KERNEL, Fault.ENVIRONMENT), failure
    assert "\n" not in failure.message
    assert len(failure.message) < 2100
    if hostile.line:
        assert Path(failure.file).name == "hostile.cpp"
        assert failure.line > 0
    assert time.monotonic() - begin < hostile.seconds + 40
    assert _children() <= before


def test_a_kernel_that_stops_its_process_is_ended_from_outside_and_told_as_too_long(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "RUN_GRACE_SECONDS", 0.5)
    kernel = write_kernel(tmp_path, "    raise(SIGSTOP);", before=BEFORE)
    failure = simulate(kernel, {0: 1}, seconds=0.5).failure
    assert failure.limit == "time"
    assert failure.fault is Fault.KERNEL
    assert "still running" in failure.message
    assert "memory" not in failure.message


def test_what_a_kernel_forked_outside_the_sandbox_ends_with_its_run(tmp_path, monkeypatch):
    monkeypatch.setenv(MARK, str(tmp_path))
    body = '    if (fork() == 0) { setsid(); sleep(1000); }\n    printf("forked");'
    with adopting():
        run = simulate(write_kernel(tmp_path, body, before=BEFORE), {0: 1}, sandbox="off")
    assert run.failure is None
    assert run.printed == "forked"
    assert gone(str(tmp_path))


def test_there_are_sixty_of_them():
    assert len(KERNELS) >= 60
    assert len({k.name for k in KERNELS}) == len(KERNELS)


def test_a_kernel_sees_no_secret_of_the_environment_and_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_TOKEN", "secret")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").touch()
    body = """\
    int entries = 0;
    DIR *folder = opendir(".");
    while (dirent *entry = readdir(folder)) entries += entry->d_name[0] != '.';
    printf("[%s] %d entries", getenv("MY_TOKEN") ? getenv("MY_TOKEN") : "none", entries);"""
    kernel = write_kernel(tmp_path, body, before=BEFORE)
    assert simulate(kernel, {0: 1}).printed == "[none] 0 entries"
    assert simulate(kernel, {0: 1}, sandbox="off").printed.startswith("[secret] ")


def test_a_job_leaves_no_files(kernel, tmp_path, monkeypatch):
    monkeypatch.setattr(job_files, "_SHARED_MEMORY", tmp_path)
    assert simulate(kernel, {0: np.zeros(64, np.float32), 1: 0}).failure is not None
    assert not list(tmp_path.iterdir())


def test_memory_without_room_sends_the_job_to_disk(kernel, tmp_path, monkeypatch):
    """As with the 64 MiB that a container has: reserving fails in the first place and not in the second."""
    places = []

    def take_room(file: int, start: int, size: int) -> None:
        place = Path(f"/proc/self/fd/{file}").readlink()
        if place.parent not in places:
            places.append(place.parent)
        if len(places) == 1:
            raise job_files.NoRoomError("no room")

    monkeypatch.setattr(memory, "take_room", take_room)
    monkeypatch.setattr(job_files, "_SHARED_MEMORY", tmp_path / "shm")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    for name in ("shm", "tmp"):
        (tmp_path / name).mkdir()
    assert simulate(kernel, {0: np.zeros(64, np.float32), 1: 10_000}).failure is None
    assert [place.parent.name for place in places] == ["shm", "tmp"]


def test_what_a_dead_run_left_in_memory_is_removed_and_a_living_ones_is_not(tmp_path, monkeypatch):
    monkeypatch.setattr(job_files, "_SHARED_MEMORY", tmp_path)
    dead = tmp_path / "insight-trace-job-dead"
    dead.mkdir()
    os.utime(dead, (1, 1))
    with job_files.job_directory() as living:
        os.utime(living, (1, 1))
        with job_files.job_directory():
            assert living.is_dir()
            assert not dead.exists()
