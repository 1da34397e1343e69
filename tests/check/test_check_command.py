"""The command: findings in text, JSON and SARIF; allowances; exit codes."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from insight_trace.__main__ import main
from insight_trace.arguments.slots import CallerArray, ReplayArguments, make_tensor
from insight_trace.check.suppressions import Allowance, apply, in_file
from insight_trace.dtypes import dtype_named
from insight_trace.errors import InputError
from insight_trace.finding import Finding, Place, Severity
from insight_trace.model import CoreType, Kernel, Role, Tier
from insight_trace.recording import open_recording
from insight_trace.simulate.embedded.checked_run import run_checked
from insight_trace.simulate.embedded.simulator import EmbeddedOptions
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
    shutil.copytree(ROOT / "examples" / "mixed_example", tmp_path / "wrong")
    scene = tmp_path / "wrong" / "scene.py"
    add = tmp_path / "wrong" / "kernels" / "add.cpp"
    add.write_text(add.read_text().replace("wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);", ""))
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
    assert sorted(mark.split(": ")[-1] for mark in marks) == sorted(named)
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


def test_findings_of_a_build_name_the_lines_of_the_users_program(tmp_path, capsys):
    build = tmp_path / "build"
    shutil.copytree(ROOT / "examples" / "pypto_run", build)
    for source in build.rglob("square_rows.cpp"):
        lines = source.read_text().splitlines(keepends=True)
        first = next(number for number, line in enumerate(lines) if "wait_flag(PIPE_MTE2, PIPE_V" in line)
        lines[first] = "\n"
        source.write_text("".join(lines))
    assert main(["check", str(build), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    found = [finding for kernel in told["kernels"] for finding in kernel["findings"]]
    assert [finding["category"] for finding in found] == ["race"]
    assert {place["python"].partition(":")[0] for place in found[0]["places"]} == {"model.py"}


def _add(tmp_path, change):
    """The example that adds two vectors, with a change of its text, and what a check of it finds."""
    source = (ROOT / "examples" / "kernels" / "vector_add.cpp").read_text()
    changed = change(source)
    assert changed != source
    path = tmp_path / "add.cpp"
    path.write_text(changed)
    values = np.ones(4 * 4096, np.float32)
    slots = [
        make_tensor(slot, dtype_named("FLOAT32"), values.shape, CallerArray(values), Tier.EXACT, role=role)
        for slot, role in enumerate((Role.INPUT, Role.INPUT, Role.OUTPUT))
    ]
    kernel = Kernel("add", path, CoreType.AIV)
    return run_checked([kernel], ReplayArguments(tuple(slots)), EmbeddedOptions()).findings


@pytest.mark.parametrize(
    ("wait", "before"),
    [("PIPE_MTE2, PIPE_V", 46), ("PIPE_V, PIPE_MTE3", 49), ("PIPE_MTE3, PIPE_MTE2", 42)],
)
def test_a_forgotten_wait_is_one_finding_that_names_the_flag(tmp_path, wait, before):
    found = _add(tmp_path, lambda text: text.replace(f"        wait_flag({wait}, event);\n", ""))
    errors = [finding for finding in found if finding.severity is Severity.ERROR]
    assert len(errors) == 1
    assert f"nothing waits for the flag {wait}, EVENT_ID0" in errors[0].message
    assert "more conflicts that follow from it" in errors[0].message
    assert errors[0].fix == f"wait_flag({wait}, EVENT_ID0) before line {before}"
    assert not [finding for finding in found if finding.category in ("double-set", "set-without-wait")]


def test_rows_of_an_output_that_are_never_written_are_named(tmp_path):
    found = _add(tmp_path, lambda text: text.replace("        TSTORE(", "        if (done) TSTORE("))
    (only,) = [finding for finding in found if finding.category == "output-unwritten"]
    assert "16,384 of its 65,536 bytes are never written: 0x0..0x4000" in only.message


def test_tiles_of_one_op_that_overlap_in_part_are_an_error(tmp_path):
    found = _add(tmp_path, lambda text: text.replace("base + 2 * kTile * sizeof(float)", "base + kTile * 2"))
    (first, *_) = found
    assert first.category == "tile-overlap"
    assert first.severity is Severity.ERROR
    assert "the result of TADD (line 47)" in first.message


def test_a_check_that_finds_an_error_exits_with_1_unless_asked_not_to(tmp_path, capsys):
    shutil.copytree(SCENE.parent, tmp_path / "scene")
    kernel = next((tmp_path / "scene").rglob("*.cpp"))
    for each in (tmp_path / "scene").rglob("*.cpp"):
        if "wait_flag(PIPE_MTE2, PIPE_V" in each.read_text():
            kernel = each
    text = kernel.read_text()
    line = next(line for line in text.splitlines(keepends=True) if "wait_flag(PIPE_MTE2, PIPE_V" in line)
    kernel.write_text(text.replace(line, "\n"))
    assert main(["check", str(tmp_path / "scene" / SCENE.name)]) == 1
    assert main(["check", str(tmp_path / "scene" / SCENE.name), "--no-fail"]) == 0
    assert "nothing waits for the flag" in capsys.readouterr().out


def test_what_did_not_run_to_its_end_is_not_called_free_of_errors() -> None:
    from insight_trace.outcome import Failure, Fault
    from insight_trace.replay.examine import CheckResult, Examined

    ended = Examined(("A",), (0,), ())
    hung = Examined(("B",), (1,), (), failure=Failure(Fault.KERNEL, "hangs"))
    assert CheckResult(()).summary().startswith("nothing was checked")
    assert "0 errors" not in CheckResult((hung,)).summary()
    assert CheckResult((ended, hung)).summary().endswith("0 errors in the other 1")
    assert CheckResult((ended,)).summary() == "1 kernel · 0 errors · 0 did not run to their end"
