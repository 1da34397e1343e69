"""Ten processes that want the same kernels of an empty cache at the same time compile each of them once."""

import multiprocessing
import shutil
from pathlib import Path

import pytest

from insight_trace.model import CoreType
from insight_trace.simulate.embedded.cache import Cache
from insight_trace.simulate.embedded.toolchain import Toolchain

KERNELS = Path(__file__).parents[2] / "examples" / "vector_chain" / "kernels"

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no compiler")


def want_all(cache: str, log: str, barrier) -> None:
    import dataclasses

    def counted(self, what, source, *rest):
        with Path(log).open("a") as file:
            file.write(f"{source.name}\n")
        return build(self, what, source, *rest)

    build = Toolchain._build_object
    Toolchain._build_object = counted
    toolchain = dataclasses.replace(Toolchain.find(), cache=Cache(Path(cache)))
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
