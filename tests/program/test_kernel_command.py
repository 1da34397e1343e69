"""`insight-trace kernel` and `insight_trace.kernel`: one kernel of a file, against NumPy."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import insight_trace
from insight_trace.errors import InsightTraceError
from insight_trace.program.kernel_file import KernelFile, parse_value, plan_kernel, with_expected

ROOT = Path(__file__).resolve().parents[2]
ADD = ROOT / "examples" / "own_program" / "add.cpp"


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "temporary").mkdir(exist_ok=True)
    return subprocess.run(
        [sys.executable, "-m", "insight_trace", "kernel", *words],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder / "temporary")},
        capture_output=True,
        text=True,
        timeout=600,
    )


def test_a_kernel_of_a_program_runs_from_its_file_alone(tmp_path: Path) -> None:
    x, y = np.random.default_rng(1).standard_normal((2, 4, 1024)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    np.save(tmp_path / "z.npy", x + y)
    words = [
        "--arg",
        "x=x.npy",
        "--arg",
        "y=y.npy",
        "--arg",
        "z=f32[4,1024]",
        "--arg",
        "rows=4",
        "--blocks",
        "2",
    ]
    ran = run(
        tmp_path,
        str(ADD),
        *words,
        "--expect",
        "z=z.npy",
        "-o",
        "w",
        "--also",
        "perf-sim",
        "--sandbox",
        "default",
        "--json",
    )
    assert ran.returncode == 0, ran.stderr
    said = json.loads(ran.stdout)
    assert sorted(path.name for path in (tmp_path / "w").glob("*.csv")) == [
        "add_pipeline_summary.csv",
        "pmu.csv",
    ]
    assert [one["status"] for one in said["outputs"]] == ["verified"]
    assert not list((tmp_path / "temporary").iterdir())  # what was expected is not left there
    why = subprocess.run(
        [sys.executable, "-m", "insight_trace", "why", "w", "2[1,7]"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert "add.cpp" in why.stdout, why.stderr
    np.save(tmp_path / "z.npy", x - y)
    wrong = run(tmp_path, str(ADD), *words, "--expect", "z=z.npy", "-o", "wrong")
    assert wrong.returncode == 1
    assert "mismatch" in wrong.stdout


def test_a_store_past_the_end_of_an_argument_is_found_without_a_check(tmp_path: Path) -> None:
    short = run(
        tmp_path, str(ADD), "--arg", "x=f32[2,1024]:random", "--arg", "y=f32[2,1024]", "--arg", "z=f32[1,1024]",
        "--arg", "rows=2", "-o", "w",
    )  # fmt: skip
    assert (
        "found      error [gm-out-of-bounds] the kernel stores past the end of slot 2 (4,096 bytes)"
        in short.stdout
    )
    two = np.ones((2, 1024), np.float32)
    with pytest.raises(InsightTraceError, match="stores past the end of slot 2"):
        insight_trace.kernel(ADD, "add")(two, two, np.zeros((1, 1024), np.float32), 2)


def test_an_array_comes_from_a_regular_file_and_is_waited_for_nowhere(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.npy")
    with pytest.raises(InsightTraceError, match="is a pipe, not a file"):
        parse_value(str(tmp_path / "pipe.npy"), "x")
    np.savez(tmp_path / "many.npz", x=np.zeros(3))
    (tmp_path / "many.npz").rename(tmp_path / "many.npy")
    with pytest.raises(InsightTraceError, match="an archive of arrays"):
        parse_value(str(tmp_path / "many.npy"), "x")
    (tmp_path / "deep.json").write_text("[" * 100_000)
    with pytest.raises(InsightTraceError, match="nested too deep"):
        parse_value(f"@{tmp_path / 'deep.json'}", "x")
    planned = plan_kernel(KernelFile(ADD, "add"), [np.zeros(1024, np.float32)] * 3 + [1])
    with pytest.raises(InsightTraceError, match="is a pipe, not a file"):
        with_expected(planned, {"z": tmp_path / "pipe.npy"}, tmp_path)


def test_what_is_missing_or_unknown_is_named(tmp_path: Path) -> None:
    missing = run(tmp_path, str(ADD), "--arg", "x=f32[64]")
    assert missing.returncode == 2
    assert "'y'" in missing.stderr
    unknown = run(tmp_path, str(ADD), "--arg", "q=1")
    assert unknown.returncode == 2
    assert "x, y, z, rows" in unknown.stderr
    no_kernel = run(tmp_path, str(ADD), "--entry", "subtract", "--arg", "x=1")
    assert no_kernel.returncode == 2
    assert "add" in no_kernel.stderr


def test_python_calls_a_kernel_with_arrays() -> None:
    add = insight_trace.kernel(ADD, "add")
    x = np.arange(2048, dtype=np.float32)
    z = np.zeros_like(x)
    cycles = add(x, np.ones_like(x), z, 2, blocks=2)
    assert cycles > 0
    np.testing.assert_array_equal(z, x + 1)
    with pytest.raises(InsightTraceError, match="rows"):
        add(x, x, z)


def test_code_and_pages_are_paid_for_in_a_first_launch_alone(tmp_path: Path) -> None:
    def cycles(*words: str) -> tuple[int, bool]:
        given = ("x=f32[2,1024]", "y=f32[2,1024]", "z=f32[2,1024]", "rows=2")
        arguments = [word for each in given for word in ("--arg", each)]
        ran = run(tmp_path, str(ADD), *arguments, "--timing-only", "--json", "--force", "-o", "w", *words)
        assert ran.returncode == 0, ran.stderr
        told = json.loads(ran.stdout)
        return told["cycles"], told["launch"]["first"]

    usual, first = cycles(), cycles("--launch", "first")
    assert (usual[1], first[1]) == (False, True)
    assert cycles("--l2", "warm")[0] < usual[0] < first[0]  # what L2 holds is another question


STRUCT = """
#include <pto/pto-inst.hpp>
using namespace pto;
struct Inner { float scale[2]; };
struct Params { int rows; Inner inner; bool on; };
template <typename T> __global__ AICORE void scaled(__gm__ T *x, Params p) {
#if defined(__DAV_VEC__)
    using Row = Tile<TileType::Vec, T, 1, 64, BLayout::RowMajor>;
    using Global = GlobalTensor<T, Shape<1, 1, 1, 1, 64>, Stride<64, 64, 64, 64, 1>>;
    Row a;
    TASSIGN(a, 0);
    for (int row = 0; row < p.rows && p.on; ++row) {
        Global gx(x + row * 64);
        TLOAD(a, gx);
        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        TMULS(a, a, p.inner.scale[1]);
        set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        TSTORE(gx, a);
        set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
        wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
    }
#endif
}
"""


def test_a_template_with_a_struct_by_value(tmp_path: Path) -> None:
    (tmp_path / "scaled.cpp").write_text(STRUCT)
    scaled = insight_trace.kernel(tmp_path / "scaled.cpp", "scaled<float>")
    x = np.arange(128, dtype=np.float32)
    scaled(x, {"rows": 2, "inner": {"scale": [0.0, 3.0]}, "on": True})
    np.testing.assert_array_equal(x, np.arange(128, dtype=np.float32) * 3)


def test_kernel_entry_takes_its_arguments_by_slot() -> None:
    source = ROOT / "examples" / "vector_chain" / "kernels" / "add.cpp"
    a, b = np.full((64, 64), 2.0, np.float32), np.full((64, 64), 5.0, np.float32)
    out = np.zeros_like(a)
    insight_trace.kernel(source)(a, b, out)
    np.testing.assert_array_equal(out, a + b)
