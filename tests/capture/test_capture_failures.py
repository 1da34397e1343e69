"""A run that cannot go on says whose fault it is and where, and keeps the dump up to there."""

import json
import shutil

import pytest
from capture_scenes import EXAMPLES, make_scene, orchestration_line, orchestration_of

import insight_trace
from insight_trace.__main__ import main

CALL = "get_tensor_data<float>"  # the last call of the runtime before things go wrong
NEVER = "volatile bool forever = true; while (forever) {}"

# what goes wrong -> the line it stands on, whose fault it is, what is said
ORCHESTRATIONS = {
    "an exception": ('throw std::runtime_error("no tea");', CALL, "input", "no tea"),
    "an unknown func id": ("rt_submit_aiv_task(9, task);", "(9, task)", "input", "func id 9"),
    "a vector kernel as a cube task": ("rt_submit_aic_task(0, task);", "_aic_", "input", "vector kernel"),
    "a tensor after a scalar": (
        "CoreTaskArgs t; t.add_scalar(1); t.add_input(a); rt_submit_aiv_task(0, t);",
        "t.add_scalar(1)",
        "input",
        "tensors come first",
    ),
    "more arguments than slots": (
        "CoreTaskArgs t; for (int i = 0; i < 60; ++i) t.add_input(a); rt_submit_aiv_task(0, t);",
        "i < 60",
        "input",
        "too many tensors",
    ),
    "a view that leaves its tensor": (
        "uint32_t at[2] = {60, 0}; a.view(shape, at);",
        "a.view(shape, at)",
        "input",
        "leaves dimension 0 of 64",
    ),
    "an error it reports itself": (
        'rt_report_fatal(PTO2_ERROR_INVALID_ARGS, "bad size %d", 3);',
        "bad size",
        "input",
        "bad size 3",
    ),
    "an endless loop": (NEVER, CALL, "input", "still running"),
    "a wild pointer": ("*reinterpret_cast<int *>(8) = 1;", CALL, "input", "0x8"),
}


def failed(scene, folder, *extra):
    out = folder / "run"
    result = insight_trace.capture(scene, output=out, seconds=1.0, **dict(extra))
    assert not result.passed
    assert result.failure is not None
    return result, out / "args_dump" / "args_dump.json"


# the first task is done before things go wrong
_BODIES = {
    what: "{ uint32_t i[2] = {0, 0}; get_tensor_data<float>(out, 2, i); }\n    " + body
    for what, (body, *_) in ORCHESTRATIONS.items()
}


@pytest.mark.parametrize("what", ORCHESTRATIONS)
def test_an_orchestration_that_goes_wrong_is_named_with_its_line(what, tmp_path):
    _, at, fault, said = ORCHESTRATIONS[what]
    scene = make_scene(tmp_path, _BODIES[what], among=_BODIES.values())
    result, manifest = failed(scene, tmp_path)
    assert result.failure.fault.value == fault
    assert said in result.failure.message
    assert result.failure.file == str(orchestration_of(scene)[0])
    assert result.failure.line == orchestration_line(scene, at)
    dump = json.loads(manifest.read_text())
    assert dump["partial"] is True
    assert said in dump["failure"]["message"]
    assert {r["task_id"] for r in dump["args"]} == {"0x0000000000000000"}
    assert len(insight_trace.load_dump(manifest).dispatches) == 1


@pytest.mark.parametrize(
    ("body", "said"),
    [("this is no C++;", "does not compile"), ("CoreTaskArgs t; t.add_scalar(a);", "a scalar is a number")],
)
def test_an_orchestration_that_does_not_compile_is_named_with_its_line(body, said, tmp_path, capsys):
    scene = make_scene(tmp_path, body)
    assert main(["capture", str(scene), "-o", str(tmp_path / "run")]) == 1
    error = capsys.readouterr().err
    assert said in error
    assert f"orchestration.cpp:{orchestration_line(scene, body)}" in error
    assert not (tmp_path / "run").exists()


OWN = "CoreTaskArgs t; t.add_input(a); t.add_output(info); rt_submit_aiv_task(1, t);"


@pytest.mark.parametrize(
    ("kernel", "said", "limit"),
    [
        ("*reinterpret_cast<volatile int *>(16) = 1;", "0x10", ""),
        ("volatile int n = 0; while (n == 0) {}", "still running after 1 s", "time"),
        ("MatrixTile t; TASSIGN(t, 0); Matrix m(reinterpret_cast<float *>(64)); TLOAD(t, m);", "", ""),
    ],
)
def test_a_kernel_that_crashes_or_hangs_is_named_and_its_outputs_are_marked(kernel, said, limit, tmp_path):
    result, manifest = failed(make_scene(tmp_path, OWN, kernel), tmp_path)
    assert result.failure.fault.value == "kernel"
    assert said in result.failure.message
    assert result.failure.limit == limit
    assert "kernel OWN" in result.task
    assert "submitted at" in result.task
    dump = json.loads(manifest.read_text())
    unfinished = [r for r in dump["args"] if r.get("partial")]
    assert [(r["func_id"], r["arg_index"]) for r in unfinished] == [([1], 1)]
    assert dump["partial"] is True
    insight_trace.load_dump(manifest)


def test_a_wrong_result_is_a_failed_run(tmp_path, capsys):
    out = "CoreTaskArgs t; t.add_input(a, out); t.add_output(out); rt_submit_aiv_task(0, t);"
    assert main(["capture", str(make_scene(tmp_path, out)), "-o", str(tmp_path / "run")]) == 1
    said = capsys.readouterr().out
    assert "golden     FAILED" in said
    assert "4096 of 4096 differ, first out[0,0] is 3 and should be 2" in said


OWN_COMPARISON = """
    def compare_outputs(self, test_args, golden_args, output_names, params):
        print("looking at", output_names)
        super().compare_outputs(test_args, golden_args, [], params)
"""


def test_a_scene_may_compare_less_than_all_and_what_it_prints_is_not_in_the_answer(tmp_path, capsys):
    out = "CoreTaskArgs t; t.add_input(a, out); t.add_output(out); rt_submit_aiv_task(0, t);"
    scene = make_scene(tmp_path, out)
    assert main(["capture", str(scene), "--json", "--dump-args", "0"]) == 1
    assert not json.loads(capsys.readouterr().out)["golden"]["passed"]
    scene.write_text(scene.read_text() + OWN_COMPARISON)
    assert main(["capture", str(scene), "--json", "--dump-args", "0"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["golden"]["passed"]
    assert "looking at ['out']" in said.err


def test_a_case_or_platform_that_does_not_exist_is_answered_with_those_that_do(tmp_path, capsys):
    scene = str(make_scene(tmp_path, ""))
    assert main(["capture", scene, "--case", "Nope"]) == 2
    assert "it has Default, Other" in capsys.readouterr().err
    assert main(["capture", scene, "--case", "Default", "--platform", "a5"]) == 2
    assert "it runs on a2a3sim" in capsys.readouterr().err
    assert main(["capture", scene, "--platform", "z80"]) == 2
    assert "its cases run on a2a3, a2a3sim" in capsys.readouterr().err


def test_an_existing_directory_is_kept_unless_force_is_given(tmp_path, capsys):
    scene = str(EXAMPLES / "vector_chain" / "scene.py")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine").touch()
    assert main(["capture", scene, "-o", str(tmp_path / "run")]) == 2
    assert "exists already" in capsys.readouterr().err
    assert (tmp_path / "run" / "mine").exists()
    assert main(["capture", scene, "-o", str(tmp_path / "run"), "--force"]) == 2
    assert (tmp_path / "run" / "mine").exists()
    (tmp_path / "run" / "args_dump").mkdir()
    (tmp_path / "run" / "args_dump" / "args_dump.json").write_text("{}")  # it is a capture's folder
    assert main(["capture", scene, "-o", str(tmp_path / "run"), "--force"]) == 0
    assert not (tmp_path / "run" / "mine").exists()


def test_a_run_that_fails_before_its_first_task_leaves_no_directory(tmp_path):
    scene = make_scene(tmp_path, "")
    scene.write_text(scene.read_text().replace("aicpu_orchestration_entry", "no_such_function"))
    result = insight_trace.capture(scene, output=tmp_path / "run")
    assert result.failure is not None
    assert "no function no_such_function" in result.failure.message
    assert result.directory is None
    assert not (tmp_path / "run").exists()


@pytest.fixture
def chain(tmp_path):
    shutil.copytree(EXAMPLES / "vector_chain", tmp_path / "chain")
    return tmp_path / "chain" / "scene.py"


def test_a_scene_without_a_golden_function_is_captured_and_not_compared(chain, tmp_path, capsys):
    chain.write_text(chain.read_text().replace("def compute_golden", "def compute_nothing"))
    assert main(["capture", str(chain), "-o", str(tmp_path / "run")]) == 0
    assert "golden     not compared" in capsys.readouterr().out


def test_a_scene_without_arguments_says_what_to_define(chain, tmp_path, capsys):
    chain.write_text(chain.read_text().replace("def generate_args", "def generate_nothing"))
    assert main(["capture", str(chain), "-o", str(tmp_path / "run")]) == 1
    said = capsys.readouterr().err
    assert "has no generate_args" in said
    assert "NotImplementedError" not in said
    assert not (tmp_path / "run").exists()
