"""What we generate for the vendor's toolkit, built and run unchanged by the stand-ins of `insight-trace exec`."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOL = f'"{sys.executable}" -m insight_trace'

pytestmark = pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed")


def in_environment(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    """A shell's line where compiler, libraries and msprof are those of exec."""
    words = [sys.executable, "-m", "insight_trace", "exec", "--trace", "none", "--", "sh", "-c", line]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=900)


def shape_of(directory: Path) -> list[str]:
    """Names of an Insight directory, without the times in them."""
    found = (str(path.relative_to(directory)) for path in directory.rglob("*"))
    return sorted(re.sub(r"_20\d+", "", name) for name in found)


def insight_directory(place: Path) -> Path:
    (found,) = place.glob("**/OPPROF_*/simulator")
    return found


def test_a_replay_of_a_mix_through_msprof_is_built_run_and_verified_and_has_the_shape_of_ours(
    tmp_path: Path,
) -> None:
    scene = ROOT / "examples" / "mixed_example" / "scene.py"
    asked = f'replay "{scene}" --func-id 0,1,2'
    vendor = in_environment(
        tmp_path, f'{TOOL} {asked} --simulator msprof -o vendor --pto-isa-root "$ASCEND_HOME_PATH"'
    )
    assert vendor.returncode == 0, vendor.stdout + vendor.stderr
    record = json.loads((tmp_path / "vendor" / "replay.json").read_text())
    assert record["simulator"] == "msprof"
    assert [(one["slot"], one["status"]) for one in record["outputs"]] == [
        (slot, "verified") for slot in (2, 5, 8)
    ]
    ours = subprocess.run(
        f"{TOOL} {asked} --preset camodel -o ours", shell=True, cwd=tmp_path, capture_output=True, text=True
    )
    assert ours.returncode == 0, ours.stderr
    shape = shape_of(insight_directory(tmp_path / "ours" / "insight_export"))
    assert shape_of(insight_directory(tmp_path / "vendor" / "insight_export")) == shape
    # the script that goes with the workspace, on the machine with CANN that this is not
    for name in ("build", "msprof_collect", "insight_export", "outputs"):
        shutil.rmtree(tmp_path / "vendor" / name)
    again = in_environment(tmp_path, "vendor/run_collect.sh")
    assert again.returncode == 0, again.stdout + again.stderr
    assert shape_of(insight_directory(tmp_path / "vendor" / "insight_export")) == shape
    assert sorted(path.name for path in (tmp_path / "vendor" / "outputs").iterdir()) == [
        f"slot{slot:02}.bin" for slot in (2, 5, 8)
    ]


def profile(folder: Path, *options: str) -> dict[str, dict[str, str]]:
    build = ROOT / "examples" / "pypto_build"
    line = f'{TOOL} profile --build-dir "{build}" --simulator msprof --target a2a3 --output-root runs --name run '
    ran = in_environment(folder, line + " ".join(options))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (manifest,) = folder.glob("runs/run_*/manifest_export.csv")
    with manifest.open(newline="") as file:
        return {row["func"]: row for row in csv.DictReader(file)}


def right_products(row: dict[str, str]) -> None:
    """The trace is whole, and of the kernel's own instructions."""
    simulator = Path(row["trace_json"]).parent
    assert row["status"] == "exported"
    assert (simulator / "visualize_data.bin").stat().st_size > 0
    assert json.loads((simulator / "trace.json").read_text())


@pytest.mark.skipif(
    not os.environ.get("INSIGHT_TRACE_LONG_TESTS"), reason="half a minute: INSIGHT_TRACE_LONG_TESTS=1"
)
def test_a_profile_through_msprof_is_generated_built_and_exported(tmp_path: Path) -> None:
    rows = profile(tmp_path, "--func", "vector_add", '--pto-isa-root "$ASCEND_HOME_PATH"')
    right_products(rows["vector_add"])
    # its host part reads, launches and waits: what the kernel wrote is in a trace of the launch
    case = Path(rows["vector_add"]["case_dir"])
    (application,) = Path(rows["vector_add"]["build_dir"]).glob("vector_add*_sim")
    ran = subprocess.run(
        [
            sys.executable,
            "-m",
            "insight_trace",
            "exec",
            "-o",
            str(tmp_path / "traced"),
            "--",
            str(application),
        ],
        cwd=case,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    (workspace,) = (tmp_path / "traced").iterdir()
    x, y = (np.fromfile(case / f"{name}.bin", np.float32) for name in ("v1", "v2"))
    np.testing.assert_array_equal(np.fromfile(workspace / "inputs" / "slot02.after.bin", np.float32), x + y)


def test_what_ptoas_generates_for_a_kernel_is_built_run_and_exported(
    tmp_path: Path, ptoas_checkout: Path, pto_isa_checkout: Path
) -> None:
    roots = f'--ptoas-root "{ptoas_checkout}" --pto-isa-root "{pto_isa_checkout}"'
    rows = profile(tmp_path, "--func", "matmul_64", roots)
    right_products(rows["matmul_64"])
    case = Path(rows["matmul_64"]["case_dir"])
    a, b = (
        np.fromfile(next(case.rglob(f"{name}.bin")), ml_dtypes.bfloat16).reshape(64, 64).astype(np.float32)
        for name in ("v1", "v2")
    )
    made = np.fromfile(next(case.rglob("v3.bin")), np.float32).reshape(64, 64)
    np.testing.assert_allclose(made, a @ b, rtol=1e-4, atol=1e-4)
