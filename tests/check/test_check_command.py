"""The command: findings in text, JSON and SARIF; allowances; exit codes."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from insight_trace.__main__ import main
from insight_trace.check.sarif import sarif
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


def test_a_sarif_file_names_rule_level_and_line(tmp_path):
    run = sarif([RACE], tmp_path)["runs"][0]
    assert run["tool"]["driver"]["rules"] == [{"id": "race"}]
    (result,) = run["results"]
    assert (result["ruleId"], result["level"]) == ("race", "error")
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 7
    assert result["relatedLocations"][0]["physicalLocation"]["region"]["startLine"] == 3


# What the schema of SARIF 2.1.0 knows of the objects that are written: all its properties of them that are used here,
# those that it requires, and no others (it closes every object).
_OBJECTS = {
    "log": ({"$schema": str, "version": str, "runs": ["run"]}, {"version", "runs"}),
    "run": ({"tool": "tool", "results": ["result"], "columnKind": str}, {"tool"}),
    "tool": ({"driver": "component"}, {"driver"}),
    "component": ({"name": str, "version": str, "rules": ["rule"]}, {"name"}),
    "rule": ({"id": str}, {"id"}),
    "result": (
        {
            "ruleId": str, "ruleIndex": int, "level": str, "message": "message", "occurrenceCount": int,
            "locations": ["location"], "relatedLocations": ["location"],
        },
        {"message"},
    ),
    "message": ({"text": str}, {"text"}),
    "location": ({"id": int, "physicalLocation": "place", "message": "message"}, set()),
    "place": ({"artifactLocation": "artifact", "region": "region"}, {"artifactLocation"}),
    "artifact": ({"uri": str}, {"uri"}),
    "region": ({"startLine": int}, {"startLine"}),
}  # fmt: skip


def _hold(value: Any, kind: Any) -> None:
    """Fails where a value is not what the schema says."""
    if isinstance(kind, list):
        assert isinstance(value, list)
        for one in value:
            _hold(one, kind[0])
    elif isinstance(kind, str):
        known, required = _OBJECTS[kind]
        assert isinstance(value, dict)
        assert required <= set(value) <= set(known), (kind, value)
        for name, one in value.items():
            _hold(one, known[name])
    else:
        assert type(value) is kind, (value, kind)


def test_a_sarif_file_has_the_objects_of_the_schema_and_nothing_else(tmp_path):
    nowhere = Finding("output-unwritten", Severity.WARNING, "slot 2 is an output", "store there")
    barrier = Finding(
        "redundant-sync", Severity.NOTE, "idle", "", (Place("/a b/x y.cpp", 0, "BAR", "V"),), count=9
    )
    log = sarif([RACE, nowhere, barrier], tmp_path)
    _hold(log, "log")
    assert log["version"] == "2.1.0"
    results = log["runs"][0]["results"]
    rules = [rule["id"] for rule in log["runs"][0]["tool"]["driver"]["rules"]]
    for result in results:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in ("none", "note", "warning", "error")
        assert result["occurrenceCount"] >= 1
        for location in [*result["locations"], *result.get("relatedLocations", [])]:
            assert location["physicalLocation"]["region"]["startLine"] >= 1
            assert re.fullmatch(r"[\w./:%~-]+", location["physicalLocation"]["artifactLocation"]["uri"])
    assert [result["occurrenceCount"] for result in results] == [1, 1, 9]


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
