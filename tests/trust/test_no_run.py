"""With --no-run a person reads: nothing is started and nobody's Python is imported, whichever the command."""

import shutil
import subprocess
from pathlib import Path

import pytest

from insight_trace.__main__ import main
from insight_trace.commands import COMMANDS
from insight_trace.run.run_store import RunStore
from tests.run.test_run_store import data_of

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A scene whose module leaves a mark where it is imported, a dump of it and a workspace."""
    root = tmp_path_factory.mktemp("read")
    shutil.copytree(EXAMPLES / "vector_chain", root / "chain")
    shutil.copytree(EXAMPLES / "pypto_run", root / "build")
    scene = root / "chain" / "scene.py"
    assert main(["capture", str(scene), "-o", str(root / "dump")]) == 0
    words = ["replay", str(scene), "--func-id", "0", "--dump-dir", str(root / "dump"), "--dispatch-id", "0"]
    assert main([*words, "-o", str(root / "ws")]) == 0
    RunStore(root / "runs.sqlite").add(data_of(1000), root)
    scene.write_text(scene.read_text() + f"\nopen({str(root / 'ran')!r}, 'w').close()\n")
    return root


READS = {
    "scene": ("{r}/chain/scene.py",),
    "dump": ("list", "{r}/dump"),
    "view": ("{r}/ws", "-o", "{t}/page.html", "--no-browser"),
    "stats": ("{r}/ws",),
    "compare": ("{r}/ws", "{r}/ws"),
    "query": ("{r}/ws", "select count(*) from instructions"),
    "clean": ("{r}/ws", "-o", "{t}/clean"),
    "export": ("--validate", "{r}/ws"),
    "runs": ("--index", "{r}/runs.sqlite", "list"),
    "new": ("mine", "-o", "{t}/mine"),
    "replay": ("{r}/chain/scene.py", "--list-tasks", "--args-dump", "{r}/dump"),
    "profile": ("--build-dir", "{r}/build", "--target", "a2a3", "--list-funcs"),
}
REFUSES = {
    "capture": ("{r}/chain/scene.py", "-o", "{t}/dump"),
    "replay": ("{r}/chain/scene.py", "--func-id", "0", "-o", "{t}/one"),
    "replay-all": ("{r}/chain/scene.py", "--dump-dir", "{r}/dump", "-o", "{t}/all"),
    "profile": ("--build-dir", "{r}/build", "--target", "a2a3"),
    "exec": ("--", "true"),
    "kernel": ("{r}/chain/kernels/add.cpp",),
    "run": ("{r}/chain/scene.py", "-o", "{t}/run"),
    "op": ("TADD", "--dtype", "float32", "--rows", "16", "--cols", "64"),
    "core-swimlane": ("--test", "{r}/chain/scene.py", "--func-id", "0"),
    "check": ("{r}/ws",),
    "diff": ("{r}/build", "{r}/build"),
    "judge": ("{r}/task.json", "{r}/chain/kernels/add.cpp"),
    "mcp": ("--root", "{t}"),
    "debug": ("{r}/ws",),
    "why": ("{r}/ws", "--first-mismatch"),
    "diverge": ("{r}/ws", "{r}/ws"),
    "view": ("{r}/ws", "--values", "-o", "{t}/page.html"),
    "gate": ("{t}/base.json", "{r}/chain/scene.py", "--update"),
    "calibrate": ("{r}/chain/scene.py", "--dump-dir", "{r}/dump", "--pmu", "{r}/pmu.csv", "-o", "{t}/chip.toml"),
    "demo": ("-o", "{t}/demo"),
    "doctor": (),
}  # fmt: skip


def _run(place, tmp_path, monkeypatch, command, words) -> int:
    def started(*words, **_):
        raise AssertionError(f"started {words}")

    monkeypatch.setattr(subprocess, "Popen", started)
    monkeypatch.chdir(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in place.rglob("*")}
    code = main([command, "--no-run", *(word.format(r=place, t=tmp_path) for word in words)])
    assert not (place / "ran").exists()
    assert {path: path.stat().st_mtime_ns for path in place.rglob("*")} == before
    return code


def test_every_command_is_one_or_the_other():
    assert {*READS, *REFUSES} == set(COMMANDS)


@pytest.mark.parametrize("command", READS)
def test_what_only_reads_does_as_always(command, place, tmp_path, monkeypatch):
    assert _run(place, tmp_path, monkeypatch, command, READS[command]) == 0


@pytest.mark.parametrize("command", REFUSES)
def test_what_would_run_something_refuses_and_writes_nothing(command, place, tmp_path, monkeypatch, capsys):
    assert _run(place, tmp_path, monkeypatch, command, REFUSES[command]) == 2
    said = capsys.readouterr().err
    assert "--no-run" in said
    assert "would be run" in said
    assert not list(tmp_path.iterdir())


def test_the_words_behind_two_dashes_are_the_programs_own(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert main(["exec", "--", "echo", "--no-run", "--debug"]) == 0
    assert "--no-run --debug" in capfd.readouterr().out
