"""What an AscendC kernel over asc-devkit's headers costs: the first one, the second, and its simulation beside a PTO kernel.

    python benchmarks/ascendc_speed.py --asc-devkit PATH [--steps 4000]

Processor time of the processes that are started, so that a busy machine does not change the figures; wall time is
printed beside it. The first kernel begins with an empty cache: the engine, the headers for each kind of core, the kernel.
Nothing fails by time.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

import numpy as np  # noqa: E402

from insight_trace.simulate import simulate  # noqa: E402

SAMPLE = "examples/01_simd_cpp_api/00_introduction/01_add/add_tpipe_tque"
BUILD_AND_RUN = (
    "mkdir -p build && cd build && cmake .. >/dev/null && make >/dev/null && "
    "python3 ../scripts/gen_data.py && ./demo"
)  # as tests/data/kernels/stream.cpp: the same loads, additions and stores, ordered by queues
STREAM = """\
#include <cstdint>
#include "tensor.h"
#include "kernel_operator.h"
using namespace AscendC;

constexpr uint32_t kCount = 64 * 64;
inline __aicore__ GlobalTensor<float> matrix_at(int64_t slot) {
    auto *tensor = reinterpret_cast<__gm__ Tensor *>(slot);
    GlobalTensor<float> made;
    made.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(tensor->buffer.addr) + tensor->start_offset);
    return made;
}
extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    auto left = matrix_at(args[0]), right = matrix_at(args[1]), out = matrix_at(args[2]);
    TPipe pipe;
    TQue<TPosition::VECIN, 2> lefts, rights;
    TQue<TPosition::VECOUT, 2> sums;
    pipe.InitBuffer(lefts, 2, kCount * sizeof(float));
    pipe.InitBuffer(rights, 2, kCount * sizeof(float));
    pipe.InitBuffer(sums, 2, kCount * sizeof(float));
    for (int64_t step = 0; step < args[3]; ++step) {
        auto a = lefts.AllocTensor<float>(), b = rights.AllocTensor<float>();
        DataCopy(a, left, kCount);
        DataCopy(b, right, kCount);
        lefts.EnQue(a);
        rights.EnQue(b);
        a = lefts.DeQue<float>();
        b = rights.DeQue<float>();
        auto sum = sums.AllocTensor<float>();
        Add(sum, a, b, kCount);
        sums.EnQue(sum);
        lefts.FreeTensor(a);
        rights.FreeTensor(b);
        sum = sums.DeQue<float>();
        DataCopy(out, sum, kCount);
        sums.FreeTensor(sum);
    }
}
"""


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def kernels(checkout: Path) -> None:
    """The first kernel with an empty cache, then another one."""
    with tempfile.TemporaryDirectory() as place:
        environment = {
            **os.environ, "XDG_CACHE_HOME": f"{place}/cache", "INSIGHT_TRACE_ASCENDC": str(checkout),
            "PYTHONPATH": str(ROOT / "src"), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }  # fmt: skip
        for name in ("first", "second"):
            folder = Path(shutil.copytree(checkout / SAMPLE, Path(place) / name))
            source = folder / "add_tpipe_tque.asc"
            source.write_text(source.read_text(encoding="utf-8") + f"// {name}\n", encoding="utf-8")
            before, began = _children(), time.perf_counter()
            words = [sys.executable, "-m", "insight_trace", "exec", "--trace", "none", "--", "sh", "-c"]
            done = subprocess.run(
                [*words, BUILD_AND_RUN], cwd=folder, env=environment, capture_output=True, text=True
            )
            assert done.returncode == 0, done.stdout + done.stderr
            print(
                f"{name} kernel, built and run: {_children() - before:5.1f} s of CPU, "
                f"{time.perf_counter() - began:5.1f} s by the clock"
            )


def speed(checkout: Path, steps: int) -> None:
    """Simulation of the same loads, additions and stores: ordered by queues of AscendC, and by flags of a PTO kernel."""
    os.environ["INSIGHT_TRACE_ASCENDC"] = str(checkout)
    tile = np.ones((64, 64), np.float32)
    with tempfile.TemporaryDirectory() as place:
        kernel = Path(place) / "stream.cpp"
        kernel.write_text(STREAM)
        for name, source in (("PTO", ROOT / "tests/data/kernels/stream.cpp"), ("AscendC", kernel)):
            given = {0: tile, 1: tile, 2: np.zeros_like(tile)}
            simulate(source, {**given, 3: 1}, core_type="aiv")  # compiles it
            before = _children()
            done = simulate(source, {**given, 3: steps}, core_type="aiv", seconds=600.0)
            used = _children() - before
            assert done.failure is None, done.failure
            count = len(done.instructions)
            print(
                f"{name:8} {steps} steps: {used:.2f} s of CPU, {count} instructions, {used / count * 1e6:.2f} us each"
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--asc-devkit", type=Path, required=True, metavar="PATH", help="the checkout")
    parser.add_argument("--steps", type=int, default=4000, metavar="N", help="of the simulated loop")
    options = parser.parse_args()
    checkout = options.asc_devkit.resolve()
    speed(checkout, options.steps)
    kernels(checkout)


if __name__ == "__main__":
    main()
