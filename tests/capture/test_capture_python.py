"""Orchestrations in Python have the verbs of the C++ ones and fail as clearly."""

import json
import threading

import pytest
from capture_scenes import EXAMPLES, line_of

import insight_trace

SCENE = EXAMPLES / "python_orchestration" / "scene.py"
CALL = "total = rt.submit_aiv_task(ADD, rt.args().add_input(a, b).add_output(rt.create(TILE)))"


def scene_with(folder, line):
    text = SCENE.read_text().replace("../vector_chain", str(EXAMPLES / "vector_chain"))
    assert CALL in text
    path = folder / "scene.py"
    path.write_text(text.replace(CALL, f"{CALL}\n            {line}"))
    return path


def test_an_orchestration_in_python_runs_and_records(tmp_path):
    result = insight_trace.capture(SCENE, output=tmp_path / "run", level=3)
    assert result.passed
    assert result.tasks == 8
    records = json.loads((tmp_path / "run" / "args_dump" / "args_dump.json").read_text())["args"]
    assert len(records) == 28
    assert {r["func_id"][0] for r in records if r["bin_size"]} == {2}  # dump() marks the product's arguments
    scalars = {(r["dtype"], r["value"]) for r in records if r["kind"] == "scalar"}
    assert scalars == {("FLOAT32", 1.0), ("FLOAT32", 2.0), ("INT32", 64)}


def test_it_reads_and_writes_values_and_names_dependencies(tmp_path):
    line = (
        "state = rt.alloc_tensors(rt.create((4,), initial=7.0));"
        "rt.set_tensor_data(state[0], 2, value=5.5);"
        "seen = [rt.get_tensor_data(state[0], i) for i in range(4)] + [rt.get_tensor_data(total[0], 0, 0)];"
        "rt.submit_dummy_task(rt.args().set_dependencies(total));"
        "assert seen[:4] == [7.0, 7.0, 5.5, 7.0] and abs(seen[4]) <= 2, seen"
    )
    assert insight_trace.capture(scene_with(tmp_path, line), output=tmp_path / "run").passed


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("rt.submit_aiv_task(7, rt.args().add_input(a))", "func id 7"),
        ("a.view((65, 64), (0, 0))", "leaves dimension 0 of 64"),
        ("rt.args().add_scalar(1).add_input(a)", "tensors come first"),
        ("while True: pass", "still running"),
    ],
)
def test_a_failure_has_the_line_of_the_python_source(line, said, tmp_path):
    scene = scene_with(tmp_path, line)
    result = insight_trace.capture(scene, output=tmp_path / "run", seconds=2.0)
    assert result.failure is not None
    assert said in result.failure.message
    assert result.failure.file == str(scene)
    assert "orchestration" not in [thread.name for thread in threading.enumerate()]  # nothing runs on
    expected = line_of(scene, CALL if "while" in line else line)
    assert result.failure.line == expected
    assert json.loads((tmp_path / "run" / "args_dump" / "args_dump.json").read_text())["partial"] is True
