"""How fast the engine is: instructions a second, linearity, memory, and timing alone against arithmetic.

    python benchmarks/engine.py [--gemm 1536]

Processor time of the runner's own process, so that a busy machine does not change the figures; wall time is
printed beside it. Ratios are measured side by side in one run. Nothing fails by time.
"""

from __future__ import annotations

import argparse
import platform
import resource
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

import numpy as np  # noqa: E402

from insight_trace.outcome import Simulation  # noqa: E402
from insight_trace.simulate import simulate  # noqa: E402
from insight_trace.simulate.embedded.toolchain import Toolchain  # noqa: E402

KERNELS = ROOT / "tests" / "data" / "kernels"
BYTES_PER_INSTRUCTION = 64  # of the instruction file, engine/record.hpp


@dataclass(frozen=True)
class Run:
    instructions: int
    processor: float
    wall: float
    cycles: int


def _measured(kernel: str, arguments: dict[int, object], core_type: str, timing_only: bool) -> Run:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    done: Simulation = simulate(
        KERNELS / kernel, arguments, core_type=core_type, timing_only=timing_only, seconds=600.0
    )
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.failure is None, done.failure
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(len(done.instructions), processor, wall, int(done.instructions.end.max()))


def stream(steps: int, timing_only: bool = True) -> Run:
    tile = np.ones((64, 64), np.float32)
    return _measured("stream.cpp", {0: tile, 1: tile, 2: np.zeros_like(tile), 3: steps}, "aiv", timing_only)


def gemm(size: int, timing_only: bool) -> Run:
    halves = np.ones((size, size), np.float16)
    out = np.zeros((size, size), np.float32)
    return _measured(
        "gemm.cpp", {0: halves, 1: halves, 2: out, 3: size, 4: size, 5: size}, "aic", timing_only
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gemm", type=int, default=1536, metavar="N", help="size of the matrix product")
    options = parser.parse_args()
    print(f"{platform.machine()}, {platform.python_version()}, {Toolchain.find().compiler.version}")
    stream(10)  # compiles
    gemm(256, timing_only=True)
    empty = min(stream(1).processor for _ in range(5))
    small = min((stream(20_000) for _ in range(3)), key=lambda run: run.processor)
    large = min((stream(200_000) for _ in range(3)), key=lambda run: run.processor)
    rate = large.instructions / (large.processor - empty)
    ratio = (large.processor - empty) / (small.processor - empty)
    print(
        f"timing only: {large.instructions:,} instructions in {large.processor - empty:.2f} s: {rate / 1e6:.1f} M/s"
    )
    print(f"  with starting the process and reading the result: {large.wall:.2f} s of wall time")
    print(f"  {large.instructions / small.instructions:.1f} x the instructions take {ratio:.1f} x the time")
    print(f"  {BYTES_PER_INSTRUCTION} bytes per instruction")
    quick, full = gemm(options.gemm, timing_only=True), gemm(options.gemm, timing_only=False)
    assert quick.cycles == full.cycles
    assert quick.instructions == full.instructions
    print(
        f"GEMM of {options.gemm}^3: {quick.instructions:,} instructions, timing only {quick.processor:.3f} s, "
        f"with arithmetic {full.processor:.2f} s: {full.processor / quick.processor:.1f} x"
    )
    macs = options.gemm**3 / (full.processor - empty)
    print(f"  {macs / 1e9:.1f} G multiply-adds a second, with all that moves and converts them")


if __name__ == "__main__":
    main()
