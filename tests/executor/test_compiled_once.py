"""Ten processes that want the same kernels of an empty cache at the same time compile each of them once."""

import multiprocessing
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace

from insight_trace.cache import Cache
from insight_trace.model import CoreType
from insight_trace.simulate.embedded.compiler import find_compiler
from insight_trace.simulate.embedded.toolchain import Toolchain

EXAMPLES = Path(__file__).parents[2] / "examples"
KERNELS = EXAMPLES / "vector_chain" / "kernels"

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no compiler")


def want_all(cache: str, log: str, barrier) -> None:

    def counted(self, job, *rest):
        with Path(log).open("a") as file:
            file.write(f"{job.source.name}\n")
        return build(self, job, *rest)

    build = Toolchain._build_object
    Toolchain._build_object = counted
    toolchain = replace(Toolchain.find(), cache=Cache(Path(cache)))
    barrier.wait(120)
    for source in sorted(KERNELS.glob("*.cpp")):
        assert toolchain.kernel(source, CoreType.AIV).is_file()


def test_each_kernel_is_compiled_once(tmp_path):
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(10)
    log = tmp_path / "log"
    words = (str(tmp_path / "cache"), str(log), barrier)
    processes = [context.Process(target=want_all, args=words) for _ in range(10)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(300)
        assert process.exitcode == 0
    assert sorted(log.read_text().split()) == sorted(path.name for path in KERNELS.glob("*.cpp"))


@pytest.mark.skipif(not os.environ.get("INSIGHT_TRACE_LONG_TESTS"), reason="set INSIGHT_TRACE_LONG_TESTS=1")
def test_ten_replays_at_once_on_an_empty_cache_compile_every_source_once(tmp_path):
    log, compiler = tmp_path / "log", tmp_path / "compiler"
    real = " ".join(find_compiler().command)
    compiler.write_text(f'#!/bin/sh\necho "$*" >> {log}\nexec {real} "$@"\n')
    compiler.chmod(0o755)
    environment = {**os.environ, "CXX": str(compiler), "INSIGHT_TRACE_CACHE": str(tmp_path / "cache")}
    scene = EXAMPLES / "paged_attention" / "scene.py"
    command = [
        sys.executable,
        "-m",
        "insight_trace",
        "replay",
        str(scene),
        "--case",
        "CaseSmall1",
        "--recipe",
    ]
    processes = []
    for number in range(10):
        words = [
            *command,
            "--kernel",
            ("SF", "QK", "PV", "UP")[number % 4],
            "-o",
            str(tmp_path / f"{number}"),
        ]
        processes.append(subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL))
    assert [process.wait(1200) for process in processes] == [0] * 10
    compiled = Counter(
        word
        for line in log.read_text().splitlines()
        if " -c " in line
        for word in line.split()
        if word.endswith(".cpp")
    )
    assert {path.stem for path in map(Path, compiled)} >= {"softmax", "scores", "values", "update"}
    assert [source for source, times in compiled.items() if times > 1] == []
