"""Kernels of a profile in processes of this machine: the same bytes, also when one of the processes is killed."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parent.parent.parent / "examples" / "pypto_build"

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no compiler")

# a program of its own: where tests run there are threads, and copies of the process are not made
_PROGRAM = """
import os, signal, sys
from pathlib import Path
from insight_trace.profile import local_runner
from insight_trace.profile import ProfileRequest, run_profile

made, ran = [], []
start, run = local_runner.in_processes, local_runner.LocalRunner.run

def started(runner, jobs):
    many = start(runner, jobs)
    if many is not None:
        made.append(many)
        for process in list(many._pool._processes.values())[: int(sys.argv[2])]:
            os.kill(process.pid, signal.SIGKILL)
    return many

local_runner.in_processes = started
local_runner.LocalRunner.run = lambda self, kernel, places: ran.append(kernel.name) or run(self, kernel, places)

def results(jobs):
    request = ProfileRequest(Path(sys.argv[1]), funcs=("vector_add", "matmul_64"), jobs=jobs, synthetic=True,
                             output_root=Path(sys.argv[3]) / str(jobs))
    done = run_profile(request)
    assert done.exported == 2, done.rows
    return {str(p.relative_to(done.root)): p.read_bytes() for p in (done.root / "funcs").rglob("*") if p.is_file()}

alone = results(1)
assert not made
many = results(2)
assert sorted(ran) == ["matmul_64", "vector_add"]
assert [name for name in alone if alone[name] != many.get(name)] == []
assert alone.keys() == many.keys()
"""


@pytest.mark.parametrize("killed", [0, 1])
def test_two_processes_leave_what_one_leaves(killed, tmp_path):
    shutil.copytree(EXAMPLE, tmp_path / "build")
    words = [sys.executable, "-c", _PROGRAM, str(tmp_path / "build"), str(killed), str(tmp_path / "out")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
