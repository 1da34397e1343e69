"""`insight-trace profile` as a person types it."""

import importlib
import io
import json
import subprocess
import sys

import pytest
from small_kernels import write_kernel

from insight_trace.__main__ import main


@pytest.fixture
def scripted(monkeypatch):
    make = importlib.import_module("scripted_runner").make
    monkeypatch.setattr("insight_trace.profile.embedded_runner.EmbeddedRunner", make)


LISTING = """\
gather_columns        aiv  a2a3  ptoas/gather_columns.cpp
matmul_64             aic  a2a3  ptoas/matmul_64.cpp
matmul_k_loop         aic  a2a3  ptoas/matmul_k_loop.cpp
row_blocks_by_length  aiv  a2a3  ptoas/row_blocks_by_length.cpp
scale_rows_dynamic    aiv  a2a3  ptoas/scale_rows_dynamic.cpp
softmax_rows          aiv  a2a3  ptoas/softmax_rows.cpp
spmd_axpy             aiv  a2a3  ptoas/spmd_axpy.cpp
strided_copy          aiv  a2a3  ptoas/strided_copy.cpp
up_group_0            mix  a2a3  ptoas/up_group_0.cpp
vector_add            aiv  a2a3  ptoas/vector_add.cpp
residual_norm         aiv  a2a3  next_levels/decode/ptoas/residual_norm.cpp
decode.vector_add     aiv  a2a3  next_levels/decode/ptoas/vector_add.cpp
"""


def test_list_funcs_prints_name_kind_arch_and_path_and_touches_nothing(example_build, capsys):
    before = sorted(example_build.rglob("*"))
    assert main(["profile", "--build-dir", str(example_build), "--list-funcs"]) == 0
    assert capsys.readouterr().out == LISTING
    assert sorted(example_build.rglob("*")) == before


def test_list_funcs_as_json_says_how_each_argument_was_decided(example_build, capsys):
    wanted = ["--list-funcs", "--json", "--func", "spmd_axpy"]
    assert main(["profile", "--build-dir", str(example_build), *wanted]) == 0
    (kernel,) = json.loads(capsys.readouterr().out)["kernels"]
    assert kernel["entry"] == "spmd_axpy"
    assert [a["label"] for a in kernel["arguments"]][:3] == ["x", "y", "out"]
    assert kernel["arguments"][3]["why"] == "hidden argument, by its name"


def test_a_broken_kernel_is_listed_with_its_reason(example_build, capsys):
    (example_build / "ptoas" / "matmul_64.pto").unlink()
    assert main(["profile", "--build-dir", str(example_build), "--list-funcs", "--func", "matmul_64"]) == 0
    assert "has no .pto beside it" in capsys.readouterr().out


@pytest.mark.usefixtures("scripted")
def test_on_a_terminal_a_table_follows_the_kernels(example_build, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setenv("SCRIPTED_FAIL", "softmax_rows")
    monkeypatch.setattr(sys, "stdout", terminal)
    assert main(["profile", "--build-dir", str(example_build)]) == 1
    shown = terminal.getvalue()
    for text in ("bound by", "matmul_64", "exported", "1009", "FAIL softmax_rows", "EXPORTED 11/12"):
        assert text in shown


def test_long_steps_have_a_line_and_every_step_is_in_the_table():
    from rich.console import Console

    from insight_trace.commands.profile import _Lines, _LiveTable
    from insight_trace.profile.manifest import ManifestRow
    from insight_trace.profile.profile_run import Progress

    done = ManifestRow("b", "exported", {"artifact_count": "4", "cycles": "77", "bound_by": "MTE2"})
    steps = [Progress("a", step, 1, 12) for step in ("running", "build", "simulate", "collect")]
    stream = io.StringIO()
    lines, table = _Lines(stream), _LiveTable()
    for progress in [*steps, Progress("b", "exported", 2, 12, done)]:
        lines(progress)
        table.latest[progress.kernel] = progress
    shown = [
        "[02/12] run a",
        "[02/12] build a",
        "[02/12] collect a",
        "OK b: artifacts=4 cycles=77 bound by MTE2",
    ]
    assert stream.getvalue().splitlines() == shown
    console = Console(file=io.StringIO(), width=80)
    console.print(table.table())
    text = [line.split() for line in console.file.getvalue().splitlines()]
    assert text == [
        ["kernel", "step", "cycles", "bound", "by", "workload"],
        ["a", "collect"],
        ["b", "exported", "77", "MTE2"],
    ]


@pytest.mark.usefixtures("scripted")
def test_a_failed_kernel_makes_exit_code_1_and_is_named(example_build, capsys, monkeypatch):
    monkeypatch.setenv("SCRIPTED_FAIL", "softmax_rows")
    assert main(["profile", "--build-dir", str(example_build)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "EXPORTED 11/12"
    assert lines[-2] == "FAILED_FUNCS softmax_rows:collect_failed"
    assert "FAIL softmax_rows: collect_failed: kernel.cpp:7: error: 'TFOO' was not declared" in lines


@pytest.mark.usefixtures("scripted")
def test_an_empty_trace_is_warned_about_on_the_line_in_the_summary_and_in_the_manifest(
    example_build, capsys, monkeypatch
):
    monkeypatch.setenv("SCRIPTED_IDLE", "row_blocks_by_length")
    assert main(["profile", "--build-dir", str(example_build), "--func", "row_blocks_by_length"]) == 0
    out = capsys.readouterr().out
    assert "WARN row_blocks_by_length" in out
    assert "--input arg1=FILE" in out
    root = out.splitlines()[-2].removeprefix("RUN_ROOT ")
    for name in ("summary.txt", "manifest_export.csv"):
        with open(f"{root}/{name}") as file:  # noqa: PTH123
            assert "degenerate: " in file.read()


@pytest.mark.usefixtures("scripted")
def test_resume_continues_the_latest_run(example_build, capsys, monkeypatch):
    monkeypatch.setenv("SCRIPTED_FAIL", "vector_add")
    assert main(["profile", "--build-dir", str(example_build)]) == 1
    monkeypatch.delenv("SCRIPTED_FAIL")
    capsys.readouterr()
    assert main(["profile", "--build-dir", str(example_build), "--resume"]) == 0
    out = capsys.readouterr().out
    assert out.count(" run ") == 1
    assert out.endswith("EXPORTED 12/12\n")


@pytest.mark.usefixtures("example_build")
def test_relative_paths_are_those_of_the_caller(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main(["profile", "--build-dir", "build", "--list-funcs"]) == 0
    assert capsys.readouterr().out == LISTING


@pytest.mark.usefixtures("scripted")
def test_a_case_is_run_with_the_arguments_behind_the_dashes(tmp_path, capsys, monkeypatch):
    write_kernel(tmp_path / "kept" / "ptoas", "k")
    case = tmp_path / "case.py"
    case.write_text(
        "import shutil, sys\n"
        "assert sys.argv[1] == '--into'\n"
        f"shutil.copytree({str(tmp_path / 'kept')!r}, 'build_output/' + sys.argv[2])\n"
    )
    monkeypatch.chdir(tmp_path)
    assert main(["profile", "--case", "case.py", "--jobs", "1", "--", "--into", "made"]) == 0
    out = capsys.readouterr().out
    assert out.endswith("EXPORTED 1/1\n")
    assert f"RUN_ROOT {tmp_path / 'build_output' / 'made'}" in out


def test_a_case_may_be_handed_to_task_submit(example_build, capsys):
    case = example_build / "case.py"
    case.touch()
    wanted = ["--case", str(case), "--run-env", "A=1", "--task-submit", "--task-device", "0"]
    wanted += ["--build-output-root", str(example_build / "out")]
    assert main(["profile", *wanted, "--list-funcs", "--", "--batch", "4"]) == 1
    assert "task-submit could not be started" in capsys.readouterr().err


def test_the_earlier_name_of_the_command_works_as_a_module(example_build):
    words = ["-m", "insight_trace.profile", "--build-dir", str(example_build), "--list-funcs"]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True)
    assert done.stdout == LISTING


def test_help_names_every_group_and_costs_no_heavy_import():
    code = (
        "import sys\nfrom insight_trace.__main__ import main\nmain(['profile', '--help'])\n"
        "assert not {'numpy', 'rich', 'jinja2'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for group in ("what to profile", "values of arguments", "how to run", "toolchain"):
        assert group in done.stdout
