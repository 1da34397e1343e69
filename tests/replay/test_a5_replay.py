"""Our scenes on the 950 family: captured, replayed, exported, and refused where they were not written for it."""

import json
from pathlib import Path

import numpy as np
import pytest

import insight_trace
from insight_trace.__main__ import main
from insight_trace.insight import validate

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SCENE = str(EXAMPLES / "paged_attention" / "scene.py")


@pytest.fixture(scope="module")
def dump(tmp_path_factory):
    folder = tmp_path_factory.mktemp("captured") / "dump"
    assert main(["capture", SCENE, "--case", "CaseSmall1", "--platform", "a5sim", "-o", str(folder)]) == 0
    return str(folder)


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("scene", "case"),
    [
        ("paged_attention", "CaseSmall2"),
        ("paged_attention", "CaseVarSeq2"),
        ("vector_chain", "Default"),
        ("mixed_example", "Default"),
        ("spmd_multiblock", "Blocks4"),
    ],
)
def test_every_scene_of_ours_passes_its_golden_comparison_on_a5(scene, case, capsys):
    argv = ["capture", str(EXAMPLES / scene / "scene.py"), "--case", case, "--platform", "a5sim"]
    assert main([*argv, "-o", "run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["golden"]["passed"]


@pytest.mark.parametrize(("soc", "mhz"), [("Ascend950PR_9599", 1800), ("Ascend950PR_9589", 1650)])
def test_a_replay_has_the_lanes_of_the_950_and_its_clock(dump, soc, mhz, capsys):
    argv = ["replay", SCENE, "--func-id", "1", "--dump-dir", dump, "--target", "a5", "--soc-version", soc]
    assert main([*argv, "--dump-logs", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert {o["status"] for o in result["outputs"]} == {"verified"}
    directory = Path(result["directory"])
    assert validate(directory) == []
    events = json.loads((directory / "trace.json").read_text())["traceEvents"]
    slices = [e for e in events if e["ph"] == "X"]
    assert {"PUSHQ", "RVECLD", "RVECEX", "RVECST"} <= {e["tid"] for e in slices}
    assert all(e["name"].startswith("RV_") for e in slices if e["tid"].startswith("RVEC"))
    last = max(e["ts"] + e["dur"] for e in slices)
    assert last * mhz == pytest.approx(result["cycles"], abs=2)


def test_its_logs_number_their_instructions_and_export_to_the_same_trace(dump, capsys):
    argv = ["replay", SCENE, "--func-id", "1", "--dump-dir", dump, "--target", "a5", "--dump-logs", "--json"]
    assert main(argv) == 0
    directory = Path(json.loads(capsys.readouterr().out)["directory"])
    logs = directory.parent / "dump"
    popped = (logs / "core0.veccore0.instr_popped_log.dump").read_text().splitlines()
    assert all("(ID: " in line for line in popped)
    assert main(["export", str(logs), "--soc-version", "Ascend950PR_9599", "-o", "out", "--json"]) == 0
    (again,) = Path("out").glob("OPPROF_*/simulator/trace.json")

    derived = {
        "TILE OPS",
        "CRITICAL PATH",
        "CACHEMISS",
    }  # made of a recording; logs hold instructions and their operands
    lanes = {"SCALARLDST": "SCALAR"}  # logs name the unit that issues a load

    def slices(path):
        events = json.loads(path.read_text())["traceEvents"]
        shown = [e for e in events if e["ph"] == "X" and e["tid"] not in derived]
        return sorted((lanes.get(e["tid"], e["tid"]), e["name"], e["ts"], e["dur"]) for e in shown)

    assert slices(again) == slices(directory / "trace.json")


@pytest.mark.parametrize("func_id", ["0", "2", "3"])
def test_the_other_kernels_replay_and_are_verified(dump, func_id, capsys):
    assert main(["replay", SCENE, "--func-id", func_id, "--dump-dir", dump, "--target", "a5", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    found = {o["status"] for o in result["outputs"]}
    assert found == {"verified"} | ({"unwritten"} if func_id == "3" else set())
    assert validate(Path(result["directory"])) == []


def test_a_scene_of_the_other_family_is_refused_unless_asked_for(tmp_path, capsys):
    source = EXAMPLES / "paged_attention"
    text = (source / "scene.py").read_text().replace(', "a5sim", "a5"', "")
    text = text.replace('"kernels/', f'"{source}/kernels/').replace(
        '"orchestration.cpp"', f'"{source}/orchestration.cpp"'
    )
    scene = tmp_path / "scene.py"
    scene.write_text(text)
    argv = ["replay", str(scene), "--kernel", "SF", "--recipe", "--target", "a5"]
    assert main(argv) == 2
    said = capsys.readouterr().err
    assert "was written for a2a3, a2a3sim, not for a5" in said
    assert "--any-target" in said
    assert list(tmp_path.iterdir()) == [scene]
    assert main([*argv, "--any-target"]) == 0
    assert "Ascend950PR_9599" in capsys.readouterr().out


def _scene_for(tmp_path, platforms: str) -> Path:
    """Our paged attention, as if it had been written for those platforms alone."""
    source = EXAMPLES / "paged_attention"
    text = (source / "scene.py").read_text()
    every = '["a2a3sim", "a2a3", "a5sim", "a5"]'
    assert every in text
    text = text.replace(every, platforms).replace('"kernels/', f'"{source}/kernels/')
    scene = tmp_path / "scene.py"
    scene.write_text(text.replace('"orchestration.cpp"', f'"{source}/orchestration.cpp"'))
    return scene


def test_a_scene_of_a5_is_replayed_there_by_itself_and_refused_on_a2a3(tmp_path, capsys):
    scene = _scene_for(tmp_path, '["a5sim", "a5"]')
    argv = ["replay", str(scene), "--kernel", "SF", "--recipe"]
    assert main(argv) == 0
    assert "Ascend950PR_9599" in capsys.readouterr().out
    assert main([*argv, "--target", "a2a3"]) == 2
    assert "was written for a5, a5sim, not for a2a3" in capsys.readouterr().err
    assert main([*argv, "--target", "a2a3", "--any-target"]) == 0
    assert "Ascend910B1" in capsys.readouterr().out


def test_the_name_of_a_chip_says_the_family_too(tmp_path, capsys):
    scene = _scene_for(tmp_path, '["a2a3sim", "a2a3"]')
    argv = ["replay", str(scene), "--kernel", "SF", "--recipe", "--soc-version", "Ascend950PR_9589"]
    assert main(argv) == 2
    assert "was written for a2a3, a2a3sim, not for a5" in capsys.readouterr().err
    assert main([*argv, "--target", "a2a3"]) == 2
    assert "Ascend950PR_9589 is a chip of a5, and --target says a2a3" in capsys.readouterr().err
    assert main([*argv, "--any-target"]) == 0
    assert "at 1650 MHz · Ascend950PR_9589" in capsys.readouterr().out


def test_a_cube_kernel_with_tiles_of_the_other_family_does_not_run_without_a_word(tmp_path):
    """Its Left tile is not where this family's cube reads it."""
    text = (EXAMPLES / "kernels" / "tiled_matmul.cpp").read_text()
    own = "using namespace pto;"
    helper = """
template <class T, int R, int C>
using OtherLeft = Tile<TileType::Left, T, R, C, BLayout::RowMajor, R, C, SLayout::RowMajor, 512>;
"""
    assert "TileLeft<" in text
    kernel = tmp_path / "tiled_matmul.cpp"
    kernel.write_text(text.replace("TileLeft<", "OtherLeft<").replace(own, own + helper))
    ones = np.ones((64, 64), np.float16)
    slots = {0: ones, 1: ones, 2: np.zeros((64, 64), np.float32)}
    assert insight_trace.simulate(kernel, slots, core_type="aic", target="a2a3").failure is None
    failure = insight_trace.simulate(kernel, slots, core_type="aic", target="a5").failure
    assert failure
    assert "takes a Left tile in NZ" in failure.message
    assert failure.line


@pytest.mark.parametrize(
    ("folder", "family"), [("examples/a5/x", "a5"), ("examples/a2a3/x", ""), ("examples/x", "")]
)
def test_the_folder_of_a_checkout_names_the_family_and_none_above_it(folder, family, tmp_path):
    from insight_trace.replay.jobs import _family_of_place

    root = tmp_path / "a5" / "checkout"
    (root / folder).mkdir(parents=True)
    (root / ".git").mkdir()
    assert _family_of_place(root / folder / "k.cpp") == (family or ("a2a3" if "a2a3" in folder else ""))


def test_one_op_by_the_name_of_the_chip(capsys):
    argv = ["op", "TEXP", "--rows", "32", "--cols", "64", "--soc-version", "Ascend950PR_9599", "--json"]
    assert main(argv) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["soc_version"] == "Ascend950PR_9599"
    assert [row["pipe"] for row in result["instructions"]] == ["PUSHQ", "RVECLD", "RVECEX", "RVECST"]
    assert result["micros"] == pytest.approx(result["cycles"] / 1800)
