"""What injected faults found, each as a small test of its own."""

import errno
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from insight_trace import simulate, storage, supervisor
from insight_trace.__main__ import main
from insight_trace.errors import JobError, as_error
from insight_trace.executor import Local, run_named
from insight_trace.executor.journal import Journal
from insight_trace.model import CoreType
from insight_trace.run.bulk_replay import FAILED
from insight_trace.run.run_directory import open_folder
from insight_trace.run.run_store import RunStore
from insight_trace.run.whole_run import RunRequest
from insight_trace.simulate.embedded import compiler, job_files
from insight_trace.simulate.embedded.memory import GlobalMemory
from insight_trace.simulate.embedded.toolchain import Toolchain
from insight_trace.storage import scratch_directory, visible_names, whole_files

CORPUS = Path(__file__).resolve().parents[1] / "data" / "fuzz"
KERNEL = Path(__file__).resolve().parents[2] / "examples" / "kernels" / "vector_add.cpp"
RUN = {
    "scene": "s", "case": "c", "chip": "x", "cycles": 1, "micros": 1.0, "dispatches": 1, "distinct": 1, "kernels": [],
    "path": {},
}  # fmt: skip


def test_a_run_goes_on_beside_what_a_killed_one_left_hidden_and_removes_its_scratch(tmp_path):
    request = RunRequest(Path("scene.py"), None, None)
    killed = tmp_path / "run" / ".scratch.insight-trace-00000000"
    with open_folder(tmp_path / "run", request, force=False) as folder, scratch_directory(folder) as scratch:
        (scratch / "graph").touch()
        shutil.copytree(scratch, killed)
        shutil.copytree(scratch, folder / ".files.insight-trace-00000000")
    os.utime(killed, (0, 0))
    with open_folder(tmp_path / "run", request, force=False) as folder, scratch_directory(folder):
        assert visible_names(folder) <= {".lock"}
        assert not killed.exists()


def test_a_run_goes_on_where_one_was_killed_while_its_files_appeared(tmp_path):
    """Its list is there and its result is not."""
    (tmp_path / "index.html").write_text("of the run")
    (tmp_path / "files.json").write_text('{"index.html": [10, 1]}')
    with open_folder(tmp_path, RunRequest(Path("scene.py"), None, None), force=False) as folder:
        assert folder == tmp_path


def test_the_file_that_says_all_is_there_comes_last(tmp_path, monkeypatch):
    taken: list[str] = []
    real = storage._take
    monkeypatch.setattr(storage, "_take", lambda beside, path: (taken.append(path.name), real(beside, path)))
    (tmp_path / "out").mkdir()
    with whole_files(tmp_path / "out", last="b.json") as beside:
        for name in ("a.csv", "b.json", "c.html"):
            (beside / name).touch()
    assert taken == ["a.csv", "c.html", "b.json"]


def test_pruned_runs_are_out_of_sight_at_once_even_if_they_cannot_be_deleted(tmp_path, monkeypatch):
    store = RunStore(tmp_path / "runs.sqlite")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").touch()
    store.add(RUN, tmp_path / "run")
    monkeypatch.setattr(storage.shutil, "rmtree", lambda *_, **__: None)
    store.forget(store.runs())
    assert not (tmp_path / "run").exists()
    assert store.runs() == []


def test_a_prune_that_is_interrupted_leaves_nothing_hidden_and_what_a_killed_one_left_goes_with_the_next(
    tmp_path, monkeypatch
):
    real, calls = shutil.rmtree, []

    def interrupted(*given: object, **named: object) -> None:
        calls.append(given)
        if len(calls) == 1:
            raise KeyboardInterrupt
        real(*given, **named)

    killed = tmp_path / ".one.insight-trace-00000000"
    for folder in (killed, tmp_path / "two"):
        folder.mkdir()
        (folder / "run.json").touch()
    os.utime(killed, (0, 0))
    monkeypatch.setattr(storage, "remove_if_dead", lambda piece: real(piece))
    monkeypatch.setattr(storage.shutil, "rmtree", interrupted)
    with pytest.raises(KeyboardInterrupt):
        storage.remove_directory(tmp_path / "two")
    assert len(calls) == 2
    assert not list(tmp_path.iterdir())


def test_a_clean_that_was_killed_between_its_two_files_is_finished_by_the_next(tmp_path, capsys):
    shutil.copyfile(CORPUS / "trace.json", tmp_path / "trace.json")
    assert main(["clean", str(tmp_path / "trace.json")]) == 0
    (tmp_path / "instr_metrics.json").unlink()
    assert main(["clean", str(tmp_path / "trace.json")]) == 0
    assert (tmp_path / "instr_metrics.json").is_file()
    (tmp_path / "trace.clean.json").write_text("another's")
    assert main(["clean", str(tmp_path / "trace.json")]) == 2
    assert "exists already" in capsys.readouterr().err


def test_a_replay_that_failed_is_tried_again_and_one_with_an_answer_is_not(tmp_path):
    with Journal(tmp_path / "replays.jsonl", str) as journal:
        for verdict in (FAILED, "mismatch", "verified"):
            journal.add(verdict, verdict)
        jobs = [(name, name) for name in (FAILED, "mismatch", "verified", "new", "new")]
        run = []
        work = lambda name: run.append(name) or "verified"  # noqa: E731
        found = dict(run_named(Local(1), work, jobs, str, journal, lambda verdict: verdict != FAILED))
    assert run == [FAILED, "new"]
    assert [found[place] for place in range(5)] == [
        "verified",
        "mismatch",
        "verified",
        "verified",
        "verified",
    ]


def test_a_disk_that_takes_half_a_line_leaves_no_half_line_in_the_middle(tmp_path, monkeypatch):
    real = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: real(handle, data[: max(1, len(data) // 2)]))
    with Journal(tmp_path / "j.jsonl", int) as journal:
        journal.add("one", 1)
        journal.add("two", 2)
    with Journal(tmp_path / "j.jsonl", int) as journal:
        assert journal.known == {"one": 1, "two": 2}


def test_an_array_that_did_not_fit_is_told_as_a_full_disk():
    told = as_error(OSError("64 requested and 0 written"))
    assert "make room" in told.hint


def test_a_machine_that_starts_nothing_is_no_reason_to_take_another_compiler(monkeypatch):
    def run(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), os.devnull)

    monkeypatch.setattr(supervisor, "run", run)
    with pytest.raises(OSError, match="Input/output"):
        compiler._probe(("a compiler of this test",))


def test_a_compiler_that_finds_no_room_is_told_as_a_full_disk_and_not_as_a_fault_of_ours(
    tmp_path, monkeypatch
):
    script = tmp_path / "g++"
    said = "k.s: Fatal error: can't write 12 bytes to section .text of k.o: 'No space left on device'"
    script.write_text(
        f"#!/bin/sh\ncase $* in *--version*) echo 'g++ 12.2.0';; *) echo \"{said}\"; exit 1;; esac\n"
    )
    script.chmod(0o755)
    monkeypatch.setenv("CXX", str(script))
    monkeypatch.setenv("INSIGHT_TRACE_CACHE", str(tmp_path / "cache"))
    with pytest.raises(JobError, match="no room on a disk") as caught:
        Toolchain.find().kernel(KERNEL, CoreType.AIV)
    assert "fault of ours" not in str(caught.value)


def test_a_job_for_which_memory_has_no_room_is_done_on_disk_whatever_call_says_so(tmp_path, monkeypatch):
    memory = tmp_path / "shm"
    memory.mkdir()
    monkeypatch.setattr(job_files, "_SHARED_MEMORY", memory)
    real_truncate, real_mkdir, said = os.ftruncate, Path.mkdir, []

    def full(place: Path) -> None:
        if memory in place.parents:
            said.append(place.name)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(place))

    def truncate(file: int, size: int) -> None:
        full(Path(f"/proc/self/fd/{file}").readlink())
        real_truncate(file, size)

    def mkdir(place: Path, *given: object, **named: object) -> None:
        full(place)
        real_mkdir(place, *given, **named)

    for owner, name, fails, file in ((os, "ftruncate", truncate, "gm"), (Path, "mkdir", mkdir, "work")):
        with monkeypatch.context() as patched:
            patched.setattr(owner, name, fails)
            assert simulate(KERNEL, {slot: np.ones(64 * 64, np.float32) for slot in range(3)}).failure is None
        assert said.pop() == file


def test_another_error_of_the_machine_is_not_told_as_one_of_room(tmp_path):
    memory = GlobalMemory()
    memory.reserve("x", 64)
    with pytest.raises(JobError, match="cannot be made") as caught:
        memory.create(tmp_path / "absent" / "gm")
    assert "no room" not in str(caught.value)
    assert not isinstance(caught.value, job_files.NoRoomError)


@pytest.mark.parametrize("full", ["memory", "runner"])
def test_a_machine_without_memory_or_that_starts_no_runner_ends_a_profile(
    tmp_path, monkeypatch, capsys, full
):
    """It is no reason to make arguments up."""
    shutil.copytree(KERNEL.parents[1] / "pypto_run", tmp_path / "build")
    start = supervisor.Child.__init__

    def no_memory(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def no_runner(self: supervisor.Child, words: list[Path], **more: object) -> None:
        if "capture-runner" in str(words[0]):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/dev/shm/job/result.log")
        start(self, words, **more)

    if full == "memory":
        monkeypatch.setattr(os, "memfd_create", no_memory)
    else:
        monkeypatch.setattr(supervisor.Child, "__init__", no_runner)
    assert main(["profile", "--build-dir", str(tmp_path / "build"), "--func", "square_rows"]) == 1
    said = "the memory of the run" if full == "memory" else "result.log"
    assert f"{said}: No space left on device" in capsys.readouterr().err
