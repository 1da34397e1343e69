"""What a second core of the host brings to blocks of one kernel, and to kernels of a pool (`run`, `gate`, `replay --all`).

    python -m benchmarks host_cores [--rounds 3] [--depth 4096]

Wall time, one way and the other in turns, the best of each: a busy machine changes it. CPU is the time of all processes
together; where it is the same, the second core costs nothing.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from insight_trace.batch.local_pool import run_jobs
from insight_trace.simulate import simulate

ROOT = Path(__file__).resolve().parent.parent
GEMM = ROOT / "tests" / "data" / "kernels" / "gemm.cpp"
_BLOCKS, _KERNELS = 24, 40


def _processor() -> float:
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def _best(call: Callable[[int], object], rounds: int) -> tuple[list[float], list[float]]:
    """Wall and processor time on one core and on two."""
    walls, processors = [[], []], [[], []]  # type: tuple[list[list[float]], list[list[float]]]
    for turn in range(2 * rounds):
        began, used = time.perf_counter(), _processor()
        call(1 + turn % 2)
        walls[turn % 2].append(time.perf_counter() - began)
        processors[turn % 2].append(_processor() - used)
    return [min(each) for each in walls], [min(each) for each in processors]


@dataclass(frozen=True)
class Gain:
    """Seconds on one core of the host and on two, the best of some."""

    what: str
    size: str
    walls: list[float]
    processors: list[float]

    @property
    def text(self) -> str:
        (one, two), (alone, both) = self.walls, self.processors
        return f"{one / two:.2f} x: {one:.2f} s, {two:.2f} s · CPU {alone:.2f} s, {both:.2f} s"


def blocks(rounds: int, depth: int) -> Gain:
    random = np.random.default_rng(0)
    m, n = 1536, 3072
    left = random.standard_normal((m, depth)).astype(np.float16)
    right = random.standard_normal((depth, n)).astype(np.float16)
    slots = {0: left, 1: right, 2: np.zeros((m, n), np.float32), 3: m, 4: n, 5: depth}
    outputs = set()

    def run(cores: int) -> None:
        done = simulate(GEMM, slots, core_type="aic", block_count=_BLOCKS, seconds=600.0, host_cores=cores)
        assert done.failure is None, done.failure
        outputs.add((done.outputs[2].tobytes(), done.instructions.end.tobytes()))

    run(1)
    best = _best(run, rounds)
    assert len(outputs) == 1
    return Gain(f"{_BLOCKS} blocks of a matmul", f"{m} x {depth} x {n}", *best)


def _mixed(number: int) -> tuple[str, str, int, dict[int, object]]:
    """The number-th of some kernels: source, core, blocks and arguments."""
    if number % 4 == 0:
        size = 256 * (2 + number % 3)
        halves = np.full((size, size), 0.5, np.float16)
        out = np.zeros((size, size), np.float32)
        return (
            "tests/data/kernels/gemm.cpp",
            "aic",
            2,
            {0: halves, 1: halves, 2: out, 3: size, 4: size, 5: size},
        )
    if number % 4 == 1:
        rows = np.ones((48 * 16, 64), np.float32)
        return (
            "examples/spmd_multiblock/kernels/scale.cpp",
            "aiv",
            48,
            {0: rows, 1: rows.copy(), 2: float(number)},
        )
    tile = np.full((64, 64), number, np.float32)
    steps = 1000 * (1 + number % 5)
    return "tests/data/kernels/stream.cpp", "aiv", 1, {0: tile, 1: tile, 2: np.zeros_like(tile), 3: steps}


def run_mixed(number: int) -> tuple[int, int]:
    source, core, blocks, slots = _mixed(number)
    done = simulate(ROOT / source, slots, core_type=core, block_count=blocks, host_cores=1)
    assert done.failure is None, done.failure
    return int(done.instructions.end.max()), len(done.instructions)


def kernels(rounds: int) -> Gain:
    found = set()

    def run(processes: int) -> None:
        found.add(tuple(sorted(run_jobs(run_mixed, range(_KERNELS), processes))))

    run(1)
    best = _best(run, rounds)
    assert len(found) == 1
    return Gain("mixed kernels in the pool", f"{_KERNELS} kernels", *best)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--depth", type=int, default=4096)
    options = parser.parse_args()
    print(f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}")
    for gain in (blocks(options.rounds, options.depth), kernels(options.rounds)):
        print(f"{gain.what}, {gain.size}: {gain.text}")


if __name__ == "__main__":
    main()
