"""A golden passes only by something that was compared, element by element of the same shape."""

import json
from pathlib import Path

import numpy as np
import pytest
from capture_scenes import make_scene, orchestration_of

from insight_trace.__main__ import main
from insight_trace.scene.tensors import difference


def _scene(tmp_path, golden: str, tolerance: str) -> Path:
    scene = make_scene(tmp_path, "")
    text = scene.read_text().replace("args.out[:] = 2", golden)
    scene.write_text(text.replace("    CASES =", f"    {tolerance or 'pass'}\n    CASES ="))
    return scene


def _captured(tmp_path, capsys, golden: str, tolerance: str = "") -> tuple[int, dict]:
    scene = _scene(tmp_path, golden, tolerance)
    code = main(["capture", str(scene), "-o", str(tmp_path / "dump"), "--json"])
    return code, json.loads(capsys.readouterr().out)["golden"]


def test_a_golden_that_changes_nothing_does_not_pass_by_a_run_that_does_nothing(tmp_path, capsys):
    scene = make_scene(tmp_path, "")
    source, _ = orchestration_of(scene)
    idle = tmp_path / "idle.cpp"
    idle.write_text(source.read_text().replace("rt_submit_aiv_task(0, task);", ""))
    scene.write_text(scene.read_text().replace(str(source), str(idle)).replace("args.out[:] = 2", "pass"))
    assert main(["capture", str(scene), "-o", str(tmp_path / "dump")]) == 0
    said = capsys.readouterr().out
    assert "golden     nothing compared: the golden function changes no output of this scene" in said
    assert "passed" not in said


def test_a_golden_says_how_many_elements_it_compared(tmp_path, capsys):
    code, golden = _captured(tmp_path, capsys, "args.out[:] = 2")
    assert (code, golden["passed"], golden["compared"]) == (0, True, 4096)


def test_a_golden_of_another_shape_is_not_spread_over_the_output(tmp_path, capsys):
    code, golden = _captured(tmp_path, capsys, "args.out = np.full((1, 1), 2, np.float32)")
    assert code == 1
    assert golden["passed"] is False
    assert "the golden has the shape [1, 1], the output [64, 64]" in golden["message"]


def test_a_golden_that_is_within_the_tolerance_of_doing_nothing_is_no_evidence(tmp_path, capsys):
    code, golden = _captured(tmp_path, capsys, "args.out[:] = 123", "ATOL = 1e9")
    assert (code, golden["passed"], golden["compared"]) == (0, None, 0)


@pytest.mark.parametrize("given", ["RTOL = 1.0", "RTOL = float('inf')", "ATOL = float('nan')", "ATOL = -1"])
def test_what_everything_or_nothing_is_within_is_no_tolerance(given, tmp_path, capsys):
    scene = _scene(tmp_path, "args.out[:] = 2", given)
    assert main(["capture", str(scene), "-o", str(tmp_path / "dump")]) == 1
    said = capsys.readouterr().err
    assert "is no tolerance" in said
    assert str(scene) in said
    assert not (tmp_path / "dump").exists()


@pytest.mark.parametrize("shape", [(1, 64), (64, 1), (64,), (), (32, 128)])
def test_shapes_that_are_not_the_outputs_are_named(shape):
    largest, text = difference("out", np.ones((64, 64)), np.ones(shape), 1, 1)
    assert largest == np.inf
    assert "the golden has the shape" in text


def test_dimensions_of_one_are_the_same_elements():
    assert difference("out", np.ones((1, 64)), np.ones(64), 0, 0) == (0.0, "")
