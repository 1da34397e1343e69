"""The kernels of the example build run on the embedded core, and give what NumPy says."""

import dataclasses
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from insight_trace.__main__ import main
from insight_trace.errors import InputError
from insight_trace.insight import open_trace
from insight_trace.insight.validator import validate_directory
from insight_trace.options import RunOptions
from insight_trace.profile import ProfileRequest, list_kernels, run_profile
from insight_trace.profile.embedded_runner import EmbeddedRunner, entry_source
from insight_trace.profile.manifest import latest_run, read_manifest
from insight_trace.profile.profile_run import ProfileRun
from insight_trace.ptoas.buffer_content import content_of
from insight_trace.ptoas.kernel_plan import Settings
from insight_trace.ptoas.planned_kernel import Content
from insight_trace.replay.pipeline import execute
from insight_trace.trace.stats import stats

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "examples" / "pypto_build"
KERNELS = {k.name: k for k in list_kernels(ProfileRequest(BUILD))}
TOLERANCE = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 1e-2}

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no compiler")

NAMES = list(KERNELS)


@pytest.fixture(scope="module")
def expected():
    spec = importlib.util.spec_from_file_location("expected", BUILD / "expected.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.EXPECTED


@pytest.fixture(scope="module")
def runner():
    return EmbeddedRunner(RunOptions(seconds=120))


@pytest.mark.parametrize("name", NAMES)
def test_a_kernel_computes_what_numpy_says(name, expected, runner):
    kernel = KERNELS[name]
    simulation = execute(runner.job(kernel), runner.options, record=False).simulation
    assert simulation is not None
    assert simulation.failure is None, str(simulation.failure)
    assert not simulation.findings
    buffers = {b.label: content_of(b, kernel.seed) for b in kernel.buffers}
    outputs = expected[name](buffers, {v.label: v.value for v in kernel.values})
    for slot, buffer in enumerate(kernel.buffers):
        if buffer.label in outputs:
            got = np.asarray(simulation.outputs[slot], dtype=np.float64)
            want = np.asarray(outputs[buffer.label], dtype=np.float64)
            close = TOLERANCE[buffer.dtype.numpy_name]
            np.testing.assert_allclose(got, want, rtol=close, atol=close)


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory):
    """All twelve kernels, as a person types it: what was printed, and the run's directory."""
    build = tmp_path_factory.mktemp("whole") / "build"
    shutil.copytree(BUILD, build)
    command = [sys.executable, "-m", "insight_trace", "profile", "--build-dir", str(build), "--jobs", "2"]
    command += ["--simulator", "embedded"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment())
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    return lines, Path(lines[-2].removeprefix("RUN_ROOT "))


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def test_all_twelve_are_exported_and_every_directory_passes_the_validator(whole_run):
    lines, root = whole_run
    assert lines[-1] == "EXPORTED 12/12"
    found = sorted(root.glob("funcs/*/collect/out/OPPROF_*/simulator"))
    assert {path.relative_to(root).parts[1] for path in found} == set(NAMES)
    assert len(found) == 12
    for directory in found:
        assert validate_directory(directory) == [], directory
        assert list(directory.glob("core0.*/*instr_exe*.csv"))


@pytest.mark.parametrize("name", NAMES)
def test_each_kernel_has_its_clean_trace_metrics_and_figures_beside_its_trace(name, whole_run):
    _, root = whole_run
    folder = root / "funcs" / name
    row = read_manifest(root)[name]
    trace = open_trace(folder)
    figures = json.loads((folder / "stats.json").read_text())
    busy = {(p["core"], p["pipe"]): p["busy"] for p in figures["pipes"]}
    for core, pipes in json.loads(row.cell("pipe_cycles")).items():
        for pipe, cycles in pipes.items():
            # setting a register occupies a pipe and is no work of the kernel's
            assert 0 < cycles <= busy[core, pipe]
    assert figures["instructions"] == stats(trace).instructions
    clean = json.loads((folder / f"{name}.clean.json").read_text())
    drawn = [event["name"] for event in clean["traceEvents"] if event["ph"] == "X"]
    assert drawn
    assert not {"SET_FLAG", "WAIT_FLAG", "BAR"} & set(drawn)
    table = json.loads((folder / "instr_metrics.json").read_text())
    assert set(table["cores"]) == {core["core"] for core in figures["cores"]}
    assert row.cell("bound_by") in (folder / "summary.txt").read_text()
    cores = {"aic": 1, "aiv": 1, "mix": 3}[KERNELS[name].kind.value]
    assert len(figures["cores"]) == cores


def test_a_checked_profile_names_the_kernel_that_is_wrong_and_no_other(tmp_path, capsys):
    build = tmp_path / "build"
    shutil.copytree(BUILD, build)
    source = build / "ptoas" / "vector_add.cpp"
    lines = source.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if "PIPE_MTE2, PIPE_V" not in line]
    assert len(kept) == len(lines) - 2
    source.write_text("".join(kept), encoding="utf-8")
    words = ["profile", "--build-dir", str(build), "--simulator", "embedded", "--check"]
    assert main([*words, "--func", "vector_add", "--func", "matmul_64"]) == 0
    said = capsys.readouterr()
    found = [line for line in said.out.splitlines() if line.startswith("FOUND ")]
    assert found
    assert all(line.startswith("FOUND vector_add ") for line in found), found
    add = next(number for number, line in enumerate(kept, 1) if "TADD(" in line)
    assert any("error [race]" in line and f"line {add}, V" in line for line in found), found
    assert "to fix it: set_flag(PIPE_MTE2, PIPE_V, e)" in said.out
    assert "orders nothing" not in said.err, "a note is no warning"
    root = latest_run(build)
    assert root
    for name in ("vector_add", "matmul_64"):
        told = json.loads((root / "logs" / name / "findings.json").read_text(encoding="utf-8"))
        assert any(finding["severity"] == "error" for finding in told) is (name == "vector_add")
        (timeline,) = (root / "funcs" / name).rglob("simulator/trace.json")
        events = json.loads(timeline.read_text(encoding="utf-8"))["traceEvents"]
        marked = {e["name"] for e in events if e["ph"] == "X" and e["tid"] == "USERMARK"}
        assert ("error: race" in marked) is (name == "vector_add")


def test_the_same_kernel_gives_the_same_bytes(example_build, tmp_path, runner):
    runs = []
    for place in ("one", "two"):
        request = ProfileRequest(example_build, funcs=("strided_copy",), output_root=tmp_path / place)
        out = run_profile(request, runner).root / "funcs" / "strided_copy" / "collect" / "out"
        runs.append({str(p.relative_to(out)): p.read_bytes() for p in out.rglob("*") if p.is_file()})
    assert runs[0] == runs[1]
    assert runs[0]
    cache = str(runner.toolchain.cache.root).encode()
    assert not any(cache in content for content in runs[0].values()), (
        "the bytes depend on this machine's cache"
    )


def test_a_loop_that_never_turns_is_named_with_the_argument_to_set(tmp_path, runner):
    kernel = KERNELS["row_blocks_by_length"]
    zero = tmp_path / "zero.bin"
    zero.write_bytes(bytes(4))
    arguments = list(kernel.arguments)
    arguments[1] = dataclasses.replace(arguments[1], content=Content.FILE, file=zero)
    starved = dataclasses.replace(kernel, arguments=tuple(arguments))
    (row,) = ProfileRun(tmp_path / "run", runner).run([starved]).rows
    assert row.exported
    assert "core0.veccore0 executed 0 VECTOR instructions where the .pto asks for 4" in row.cell("message")
    (fed,) = ProfileRun(tmp_path / "fed", runner).run([kernel]).rows
    assert fed.cell("warnings") == ""


def test_a_pto_without_cpp_becomes_a_kernel_through_the_assembler_and_runs(example_build, tmp_path, runner):
    source = example_build / "ptoas" / "softmax_rows.cpp"
    source.rename(tmp_path / "assembled.cpp")
    ptoas = tmp_path / "ptoas"
    ptoas.write_text(
        f'#!/bin/sh\ncase "$1" in */softmax_rows.pto) cp {tmp_path}/assembled.cpp "$3";; *) exit 1;; esac\n'
    )
    ptoas.chmod(0o700)
    request = ProfileRequest(example_build, funcs=("softmax_rows",), ptoas_bin=ptoas)
    first = run_profile(request, runner)
    assert [(row.func, row.status) for row in first.rows] == [("softmax_rows", "exported")]
    assert first.rows[0].cell("source_cpp").endswith("assembled/0005/softmax_rows.cpp")
    again = run_profile(dataclasses.replace(request, output_root=tmp_path / "again"), runner)
    traces = [Path(run.rows[0].cell("trace_json")) for run in (first, again)]
    assert traces[0].parent.parent.name == traces[1].parent.parent.name
    assert not source.exists()


def test_a_kernel_run_as_the_second_chip_is_not_taken_for_idle(example_build, runner):
    wanted = ("softmax_rows", "up_group_0", "matmul_64")
    request = ProfileRequest(example_build, funcs=wanted, settings=Settings(target="a5"))
    rows = {row.func: row for row in run_profile(request, runner).rows}
    assert {row.cell("warnings") for row in rows.values()} == {
        "built for a2a3, run as a5 because --target says so"
    }
    # with nothing in L2 the scalar unit's own loads take longer than so small a tile
    assert rows["softmax_rows"].cell("bound_by") in ("VECTOR", "SCALAR")
    assert "RVECEX" in rows["softmax_rows"].cell("pipe_cycles")


def test_the_entry_passes_buffers_by_slot_and_the_lane_by_the_core():
    text = entry_source(KERNELS["up_group_0"])
    assert (
        "#if defined(__DAV_CUBE__)\n    up_relu_aic(\n        insight_trace_pointer<bfloat16_t>(args[0])"
        in text
    )
    assert "static_cast<int32_t>(get_sub_block_id(args)));" in text
    odd = dataclasses.replace(KERNELS["up_group_0"], source=Path('a"b.cpp'))
    with pytest.raises(InputError, match="cannot stand in an #include"):
        entry_source(odd)
