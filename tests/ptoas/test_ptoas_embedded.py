"""The kernels of the example build run on the embedded core, and give what NumPy says."""

import dataclasses
import importlib.util
import shutil
from pathlib import Path

import numpy as np
import pytest

import insight_trace
from insight_trace.__main__ import main
from insight_trace.errors import InputError
from insight_trace.insight.validator import validate_directory
from insight_trace.profile import ProfileRequest, list_kernels, profile
from insight_trace.ptoas.embedded_runner import EmbeddedRunner, entry_source
from insight_trace.ptoas.figures import _busy
from insight_trace.ptoas.inputs import content_of
from insight_trace.ptoas.run import ProfileRun
from insight_trace.ptoas.spec import Content

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
    return EmbeddedRunner(seconds=120)


@pytest.mark.parametrize("name", NAMES)
def test_a_kernel_computes_what_numpy_says(name, expected, runner):
    kernel = KERNELS[name]
    simulation = runner.simulate(kernel)
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


def test_a_run_gives_directories_that_pass_the_validator(example_build, capsys):
    wanted = [
        word for name in ("softmax_rows", "matmul_64", "decode.vector_add") for word in ("--func", name)
    ]
    assert main(["profile", "--build-dir", str(example_build), "--jobs", "2", *wanted]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "EXPORTED 3/3"
    found = sorted(Path(lines[-2].removeprefix("RUN_ROOT ")).glob("funcs/*/collect/out/OPPROF_*/simulator"))
    assert len(found) == 3
    for directory in found:
        assert validate_directory(directory) == []
        assert list(directory.glob("core0.*/*instr_exe*.csv"))


def test_the_same_kernel_gives_the_same_bytes(example_build, tmp_path, runner):
    runs = []
    for place in ("one", "two"):
        request = ProfileRequest(example_build, funcs=("strided_copy",), output_root=tmp_path / place)
        out = profile(request, runner).root / "funcs" / "strided_copy" / "collect" / "out"
        runs.append({str(p.relative_to(out)): p.read_bytes() for p in out.rglob("*") if p.is_file()})
    assert runs[0] == runs[1]
    assert runs[0]


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


def test_a_kernel_that_does_not_compile_says_where(example_build, runner):
    source = example_build / "ptoas" / "strided_copy.cpp"
    source.write_text(source.read_text().replace("TSTORE(", "TSTOER("))
    result = profile(ProfileRequest(example_build, funcs=("strided_copy",)), runner)
    message = result.rows[0].cell("message")
    assert "TSTOER" in message
    assert f"{source}:" in message


def test_the_entry_passes_buffers_by_slot_and_the_lane_by_the_core():
    text = entry_source(KERNELS["up_group_0"])
    assert "up_relu_aic(insight_buffer<bfloat16_t>(args, 0)" in text
    assert "static_cast<int32_t>(get_sub_block_id(args)));" in text
    odd = dataclasses.replace(KERNELS["up_group_0"], source=Path('a"b.cpp'))
    with pytest.raises(InputError, match="cannot stand in an #include"):
        entry_source(odd)


def test_busy_cycles_count_overlaps_once():
    start, end = np.array([0, 5, 20, 21]), np.array([10, 8, 25, 30])
    assert _busy(start, end) == 20
    assert _busy(start[:0], end[:0]) == 0


def test_a_build_is_profiled_from_python_by_its_path(example_build):
    for extra in (
        "ptoas",
        "next_levels/decode/ptoas/vector_add.cpp",
        "next_levels/decode/ptoas/vector_add.pto",
    ):
        path = example_build / extra
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    result = insight_trace.profile(str(example_build))
    assert [(row.func, row.status) for row in result.rows] == [("residual_norm", "exported")]
