"""Every call that changes a file fails or is the last one, in turn: outputs stay whole or absent, the next run works."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.trust.reader_targets import TARGETS, place

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CORPUS = ROOT / "tests" / "data" / "fuzz"
LONG = bool(os.environ.get("INSIGHT_TRACE_LONG_TESTS"))
SCENE = str(ROOT / "examples" / "vector_chain" / "scene.py")

COMMANDS = {
    "clean": ["clean", str(CORPUS / "trace.json"), "-o", "{}"],
    "view": ["view", str(CORPUS / "trace.json"), "--no-browser", "-o", "{}"],
    "dump export": ["dump", "export", str(CORPUS / "kernel_args_dump.json"), "-o", "{}"],
    "op": ["op", "TADD", "--dtype", "float", "--rows", "64", "--cols", "64"],
    "export": ["export", "{logs}", "-o", "{}"],
    "check": ["check", SCENE, "--sarif", "{}"],
    "capture": ["capture", SCENE, "-o", "{}"],
    "profile": [
        "profile",
        "--build-dir",
        str(ROOT / "examples" / "pypto_run"),
        "--func",
        "square_rows",
        "--output-root",
        "{}",
    ],
    "core-swimlane": ["core-swimlane", "--test", SCENE, "--func-id", "0", "--platform", "a2a3sim"],
    "replay": ["replay", SCENE, "--func-id", "0", "--dump-dir", "{dump}", "--dispatch-id", "0", "-o", "{}"],
}


@pytest.fixture(scope="module")
def shim(tmp_path_factory) -> Path:
    if shutil.which("gcc") is None:
        pytest.skip("no C compiler")
    made = tmp_path_factory.mktemp("shim") / "faults.so"
    words = ["gcc", "-shared", "-fPIC", "-O1", "-w", "-o", str(made), str(HERE / "faults.c"), "-ldl"]
    subprocess.run(words, check=True)
    return made


@pytest.fixture(scope="module")
def dump(tmp_path_factory) -> str:
    place = tmp_path_factory.mktemp("captured") / "dump"
    words = [sys.executable, "-m", "insight_trace", "capture", SCENE, "-o", str(place)]
    subprocess.run(words, check=True, capture_output=True)
    return str(place)


@pytest.fixture
def logs(tmp_path) -> str:
    """What the vendor's simulator leaves of one core."""
    target = TARGETS["camodel_log"]
    path = place(tmp_path / "logs", target)
    path.write_bytes(target.seeds[0])
    return str(path.parent)


@pytest.mark.parametrize("name", COMMANDS if LONG else ("clean", "view", "dump export"))
def test_a_fault_at_any_call_leaves_the_output_whole_or_absent_and_the_next_run_works(
    name, shim, tmp_path, request
):
    words = COMMANDS[name]
    for given in ("dump", "logs"):
        if f"{{{given}}}" in words:
            words = [request.getfixturevalue(given) if word == f"{{{given}}}" else word for word in words]
    points = "all" if LONG else "4"
    driver = [sys.executable, str(HERE / "fault_driver.py"), str(tmp_path / "run"), points, *words]
    environment = {**os.environ, "LD_PRELOAD": str(shim), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(driver, env=environment, capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stderr
    first, *rows = map(json.loads, done.stdout.splitlines())
    assert first["code"] == 0, first
    assert first["calls"] > 3
    assert len(rows) >= 12
    for row in rows:
        told = f"{name}, of {first['calls']} calls: {row}"
        assert "Traceback" not in row["said"], told
        assert "a fault of Insight Trace" not in row["said"], told
        assert row["code"] in (0, 1, 2, -9), told
        assert row["whole"], told
        assert not row["left"], told
        if row["again"] is not None:
            assert row["again"] == 0, told
            assert row["then"], told
