"""The replay command as a person types it: what it prints, what it refuses, what it leaves behind."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from insight_trace.__main__ import main
from insight_trace.insight import validate

ROOT = Path(__file__).resolve().parents[2]
SCENE = str(ROOT / "examples" / "paged_attention" / "scene.py")


@pytest.fixture(scope="module")
def dump(tmp_path_factory):
    """A capture of the example, made by the command itself."""
    folder = tmp_path_factory.mktemp("captured") / "dump"
    assert main(["capture", SCENE, "--case", "CaseSmall1", "-o", str(folder)]) == 0
    return str(folder)


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_the_last_line_is_the_insight_directory_and_it_is_valid(dump, capsys):
    code = main(
        ["replay", SCENE, "--case", "CaseSmall1", "--func-id", "1", "--dump-dir", dump, "--dispatch-id", "5"]
    )
    lines = capsys.readouterr().out.splitlines()
    assert code == 0
    assert lines[-1].startswith("open ")
    directory = Path(lines[-1].split(maxsplit=1)[1])
    assert directory.name == "simulator"
    assert directory.parents[1].name == "insight_export"
    assert directory.parents[2].name.startswith("insight_trace_paged-attention_CaseSmall1_SF_")
    assert validate(directory) == []
    assert any(line.startswith("verified") and "slot 1 exact" in line for line in lines)


def test_json_has_the_keys_that_scripts_read(dump, capsys):
    assert main(["replay", SCENE, "--func-id", "0", "--dump-dir", dump, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["simulator"] == "embedded"
    assert result["cycles"] > 0
    (output,) = result["outputs"]
    assert (output["slot"], output["status"], output["max_error"], output["why"]) == (2, "verified", 0.0, "")
    assert (output["compared"], output["ulp"], output["against"]) == (256, 0.0, "recorded after completion")
    assert [(a["slot"], a["kind"], a["tier"]) for a in result["arguments"]] == [
        (0, "tensor", "exact"),
        (1, "tensor", "exact"),
        (2, "tensor", "output"),
    ]
    assert Path(result["directory"]).is_dir()
    assert result["warnings"] == []


def test_without_a_source_the_case_is_captured_first(capsys):
    assert main(["replay", SCENE, "--case", "CaseSmall1", "--kernel", "SF", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert {o["status"] for o in result["outputs"]} == {"verified"}


def test_a_recipe_needs_no_dump_and_says_that_nothing_can_be_verified(capsys):
    assert main(["replay", SCENE, "--case", "CaseSmall1", "--kernel", "QK", "--recipe", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert {o["status"] for o in result["outputs"]} == {"unverifiable"}
    assert "synthetic" in {a["tier"] for a in result["arguments"]}


def test_a_workspace_can_be_replayed_again_with_the_same_result(dump, tmp_path, capsys):
    assert main(["replay", SCENE, "--func-id", "3", "--dump-dir", dump, "-o", "first", "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert main(["replay", "first", "-o", "second", "--json"]) == 0
    second = json.loads(capsys.readouterr().out)
    assert second["cycles"] == first["cycles"]
    assert second["outputs"] == first["outputs"]
    # the last block of a row does not write its running sum
    assert {o["status"] for o in second["outputs"]} == {"verified", "unwritten"}
    record = json.loads((tmp_path / "first" / "replay.json").read_text())
    assert record["dispatch"]["func_ids"] == [3]
    assert record["kernels"][0]["sha256"]


def test_the_workspace_alone_holds_the_five_files_for_the_vendors_simulator(dump, capsys):
    command = ["replay", SCENE, "--func-id", "1", "--dump-dir", dump, "--dry-run", "-o", "w"]
    assert main(command) == 0
    names = {path.name for path in Path("w").iterdir()}
    assert {
        "replay_kernel.cpp",
        "replay_launch.cpp",
        "replay_host.cpp",
        "CMakeLists.txt",
        "run_collect.sh",
    } <= names
    assert not (Path("w") / "insight_export").exists()
    assert capsys.readouterr().out.splitlines()[-1] == "workspace  w"


def test_a_changed_payload_is_a_mismatch_which_fails_and_says_what_differs(dump, tmp_path, capsys):
    import shutil

    broken = tmp_path / "broken"
    shutil.copytree(dump, broken)
    payload = next(broken.rglob("args.bin"))
    manifest = json.loads(next(broken.rglob("args_dump.json")).read_text())
    record = next(r for r in manifest["args"] if r["func_id"] == [0] and r["stage"] == "after_completion")
    with payload.open("r+b") as file:
        file.seek(record["bin_offset"] + 3)
        file.write(b"\x7e")
    task = record["task_id"]
    command = ["replay", SCENE, "--func-id", "0", "--dump-dir", str(broken), "--task-id", task]
    assert main([*command, "-o", "a"]) == 1
    said = capsys.readouterr()
    assert "mismatch" in said.out
    assert "its inputs, members and blocks are those of the recording" in said.err
    assert "insight-trace check a" in said.err
    changed = [*command, "-o", "b", "--json"]
    assert main(changed) == 1
    assert json.loads(capsys.readouterr().out)["differences"] == []


def test_a_replay_loads_nothing_that_is_for_others(dump):
    """What it does load is most of its time."""
    words = ["replay", SCENE, "--func-id", "0", "--dump-dir", dump]
    code = f"import sys; from insight_trace.__main__ import main; main({words!r}); print(*sys.modules, file=sys.stderr)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stderr.split()
    others = {"numpy.ma", "dataclasses", "rich", "jinja2", "elftools", "insight_trace.insight.reader"}
    others |= {
        f"insight_trace.simulate.{name}" for name in ("embedded.checked_run", "msprof.msprof_simulator")
    }
    assert "insight_trace.recording.store" in loaded
    assert not others & set(loaded)


def test_timing_only_gives_the_same_cycles_and_verifies_nothing(dump, capsys):
    command = ["replay", SCENE, "--func-id", "2", "--dump-dir", dump, "--json"]
    assert main([*command, "-o", "a"]) == 0
    whole = json.loads(capsys.readouterr().out)
    assert main([*command, "-o", "b", "--timing-only"]) == 0
    timed = json.loads(capsys.readouterr().out)
    assert timed["cycles"] == whole["cycles"]
    assert timed["outputs"] == []


def test_many_blocks_load_faster_when_their_data_is_in_l2(dump, capsys):
    command = ["replay", SCENE, "--func-id", "3", "--dump-dir", dump, "--block-dim", "24", "--json"]
    assert main([*command, "-o", "a"]) == 0
    from_memory = json.loads(capsys.readouterr().out)["cycles"]
    assert main([*command, "-o", "b", "--l2", "warm"]) == 0
    from_l2 = json.loads(capsys.readouterr().out)["cycles"]
    assert from_l2 < from_memory
    assert main(["replay", "b", "-o", "again", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cycles"] == from_l2
