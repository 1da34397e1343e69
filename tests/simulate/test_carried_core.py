"""A wheel's compiled core: taken where it fits, compiled again where it does not; the demo needs nothing else."""

import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import pytest

from insight_trace.cache import Cache
from insight_trace.errors import JobError
from insight_trace.simulate.embedded import toolchain as toolchain_module
from insight_trace.simulate.embedded.carried_core import MANIFEST
from insight_trace.simulate.embedded.compiler import Compiler
from insight_trace.simulate.embedded.engine_objects import RUNNER
from insight_trace.simulate.embedded.toolchain import Toolchain, sanitizers

ROOT = Path(__file__).resolve().parents[2]
LONG = bool(os.environ.get("INSIGHT_TRACE_LONG_TESTS"))
ANSWERS = "#!/bin/sh\nexit 2\n"  # as a runner without a job does

pytestmark = pytest.mark.skipif(bool(sanitizers()), reason="a core with sanitizers is never carried")


def carry(folder: Path, program: str = ANSWERS, **differs: object) -> Path:
    """A folder as a wheel has it, with `program` for the runner."""
    manifest = {"machine": platform.machine(), "glibc": "2.17", "programs": {"runner": RUNNER.content()}}
    (folder / MANIFEST).write_text(json.dumps({**manifest, **differs}))
    (folder / "runner").write_text(program)
    return folder


def without_compiler(tmp_path: Path) -> Toolchain:
    return Toolchain(Compiler(("false",), "no compiler at all"), Cache(tmp_path / "cache"))


def test_a_core_that_fits_is_used_and_nothing_is_compiled(tmp_path, monkeypatch):
    monkeypatch.setattr(toolchain_module, "CARRIED", carry(tmp_path))
    runner = without_compiler(tmp_path).runner()
    assert runner.read_text() == ANSWERS
    assert os.access(runner, os.X_OK)


@pytest.mark.parametrize(
    "differs",
    [
        {"machine": "riscv64"},
        {"glibc": "9.99"},
        {"programs": {"runner": "compiled from other sources"}},
        {"programs": {}},
        {"programs": None},
        {"glibc": "new"},
    ],
)
def test_a_core_that_does_not_fit_is_compiled_here(tmp_path, monkeypatch, differs):
    monkeypatch.setattr(toolchain_module, "CARRIED", carry(tmp_path, **differs))
    with pytest.raises(JobError, match="failed"):  # by a compiler that is none
        without_compiler(tmp_path).runner()


@pytest.mark.parametrize("program", ["#!/bin/sh\nexit 127\n", "#!/no/such/loader\n", "no program"])
def test_a_core_that_does_not_start_is_compiled_here(tmp_path, monkeypatch, program):
    monkeypatch.setattr(toolchain_module, "CARRIED", carry(tmp_path, program))
    with pytest.raises(JobError, match="failed"):
        without_compiler(tmp_path).runner()


def test_a_core_for_an_emulated_machine_is_not_taken_from_the_wheel(tmp_path, monkeypatch):
    monkeypatch.setattr(toolchain_module, "CARRIED", carry(tmp_path))
    compiler = Compiler(("false",), "none", emulator=("qemu-aarch64",))
    with pytest.raises(JobError, match="failed"):
        Toolchain(compiler, Cache(tmp_path / "cache")).runner()


@pytest.mark.skipif(not LONG, reason="builds two wheels and an environment: INSIGHT_TRACE_LONG_TESTS")
def test_a_wheel_is_the_same_twice_and_its_demo_runs_from_any_folder(tmp_path):
    wheels = []
    for place in ("first", "second"):
        command = [sys.executable, str(ROOT / "tools" / "build_wheel.py"), "-o", str(tmp_path / place)]
        subprocess.run(command, check=True)
        (wheel,) = (tmp_path / place).glob("insight_trace-*.whl")
        wheels.append(wheel)
    assert wheels[0].name == wheels[1].name
    assert "manylinux" in wheels[0].name
    assert wheels[0].read_bytes() == wheels[1].read_bytes()

    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "env")], check=True)
    binaries = tmp_path / "env" / "bin"
    subprocess.run([binaries / "pip", "install", "--quiet", str(wheels[0])], check=True)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    environment = {**os.environ, "INSIGHT_TRACE_CACHE": str(tmp_path / "cache")}
    environment.pop("PYTHONPATH", None)
    begun = time.perf_counter()
    done = subprocess.run(
        [binaries / "insight-trace", "demo"], cwd=elsewhere, env=environment, capture_output=True, text=True
    )
    print(f"demo from a wheel, empty cache: {time.perf_counter() - begun:.1f} s")
    assert done.returncode == 0, done.stderr
    assert "golden passed" in done.stdout
    # the cache has the two programs, and no object file of the engine
    kinds = {entry.name for entry in (tmp_path / "cache").iterdir()}
    assert {"runner", "capture-runner"} <= kinds
    assert "object" not in kinds
