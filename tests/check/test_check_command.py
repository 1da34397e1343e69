"""The command: findings in text, JSON and SARIF; allowances; exit codes."""

import json
from pathlib import Path

import pytest

from insight_trace.__main__ import main
from insight_trace.check.suppressions import Allowance, apply, in_file
from insight_trace.errors import InputError
from insight_trace.finding import Finding, Place, Severity
from insight_trace.recording import open_recording
from tests.conftest import ROOT

SCENE = ROOT / "examples" / "vector_chain" / "scene.py"
RACE = Finding(
    "race",
    Severity.ERROR,
    "VADDS reads what TLOAD writes",
    "set_flag",
    (Place("a.cpp", 3, "MOV", "MTE2"), Place("a.cpp", 7, "VADDS", "V")),
    "UB",
    0,
    256,
)


def test_the_kernels_of_an_example_are_checked(capsys):
    assert main(["check", str(SCENE), "--json", "--strict"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["kernels"]
    assert all(kernel["failure"] is None for kernel in told["kernels"])
    severities = {f["severity"] for kernel in told["kernels"] for f in kernel["findings"]}
    assert severities <= {"note"}, told


def test_an_allowance_covers_its_line_and_category_only():
    fits = Allowance("a.cpp", 7, "race", "a.cpp:7")
    other_line = Allowance("a.cpp", 8, "race", "a.cpp:8")
    other_category = Allowance("a.cpp", 7, "misaligned", "a.cpp:7")
    kept, allowed, unused = apply([RACE], [fits, other_line, other_category])
    assert (kept, allowed, unused) == ([], [RACE], [other_line, other_category])
    assert apply([RACE], [other_line])[0] == [RACE]


def test_a_line_of_the_allowance_file_that_cannot_be_read_is_named(tmp_path):
    path = tmp_path / "allow"
    path.write_text("# mine\na.cpp:7 race\nb.cpp\n")
    with pytest.raises(InputError, match=r"b\.cpp") as error:
        in_file(path)
    assert str(path) in error.value.where
    path.write_text("a.cpp:7 race  # known\nb.cpp tile-overlap\n")
    assert [(a.file, a.line, a.category) for a in in_file(path)] == [
        ("a.cpp", 7, "race"),
        ("b.cpp", 0, "tile-overlap"),
    ]


def test_a_sarif_file_that_is_there_is_not_replaced(tmp_path, capsys):
    path = Path(tmp_path / "found.sarif")
    path.write_text("mine")
    assert main(["check", str(SCENE), "--sarif", str(path)]) == 2
    assert path.read_text() == "mine"
    assert "exists already" in capsys.readouterr().err


def test_what_a_checked_replay_found_stands_in_its_recording(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    scene = ROOT / "examples" / "mixed_example" / "scene.py"
    assert main(["capture", str(scene), "--case", "Default", "-o", "dump"]) == 0
    words = ["replay", str(scene), "--case", "Default", "--func-id", "0,1,2", "--dump-dir", "dump"]
    assert main([*words, "--check", "-o", "replayed"]) == 0
    told = capsys.readouterr().out
    recording = open_recording(tmp_path / "replayed")
    assert recording.findings
    assert all(finding["message"] in told for finding in recording.findings)
    # and over every instruction that a finding names there is a mark in what Insight opens
    (path,) = (tmp_path / "replayed").rglob("simulator/trace.json")
    events = json.loads(path.read_text())["traceEvents"]
    marks = [e["name"] for e in events if e["ph"] == "X" and e["tid"] == "USERMARK"]
    named = [f["category"] for f in recording.findings for place in f["places"] if place["row"] >= 0]
    assert named
    assert sorted(marks) == sorted(named)
    assert 0 <= recording.about["estimates"]["share"] < 1


def test_a_capture_checks_what_it_recorded(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["capture", str(SCENE), "-o", "dump", "--check", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert len(told["kernels"]) == 3
    assert all(kernel["failure"] is None for kernel in told["kernels"])


def test_nothing_is_left_behind_by_a_check(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["check", str(SCENE), "--perturb", "2"]) == 0
    assert "0 errors" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_findings_of_a_build_name_the_lines_of_the_users_program(capsys):
    build = ROOT / "examples" / "pypto_run"
    assert main(["check", str(build), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    places = [place for kernel in told["kernels"] for f in kernel["findings"] for place in f["places"]]
    assert {place["python"].partition(":")[0] for place in places} == {"model.py"}
