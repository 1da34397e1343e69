"""What a second core of the host brings to blocks of one kernel, and to kernels of a pool (`run`, `gate`, `replay --all`).

    python -m benchmarks host_cores [--rounds 7] [--depth 4096]

Wall time, one way and the other in turns, and the median of the quotients of neighbours. A machine that others use gives
less than two cores: beside each stands what it gave in the same turns to a loop that shares nothing. CPU is the time of all
processes together; where it is the same, the second core costs nothing.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from insight_trace.executor import Local, required
from insight_trace.simulate import simulate

ROOT = Path(__file__).resolve().parent.parent
GEMM = ROOT / "tests" / "data" / "kernels" / "gemm.cpp"
_BLOCKS, _KERNELS = 24, 40
_STEPS = 10_000_000  # of the loop


def _processor() -> float:
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def _loop() -> None:
    for _ in range(_STEPS):
        pass


def _loops(together: int) -> None:
    """The loop twice, one after the other or together."""
    for _ in range(2 // together):
        processes = [multiprocessing.get_context("fork").Process(target=_loop) for _ in range(together)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()


def _in_turns(what: str, size: str, call: Callable[[int], object], rounds: int) -> Gain:
    turns = []
    for _ in range(rounds):
        one, two, alone, both = _seconds(call, 1), _seconds(call, 2), _seconds(_loops, 1), _seconds(_loops, 2)
        turns.append((one, two, alone, both))
    return Gain(what, size, turns)


def _seconds(call: Callable[[int], object], cores: int) -> tuple[float, float]:
    """Wall and processor time."""
    began, used = time.perf_counter(), _processor()
    call(cores)
    return time.perf_counter() - began, _processor() - used


@dataclass(frozen=True)
class Gain:
    """What every turn took, wall and processor: on one core, on two, and so the loop that shares nothing."""

    what: str
    size: str
    turns: list[tuple[tuple[float, float], ...]]

    @property
    def text(self) -> str:
        gain = statistics.median(one[0] / two[0] for one, two, _, _ in self.turns)
        machine = statistics.median(alone[0] / both[0] for _, _, alone, both in self.turns)
        (one, two), (alone, both) = (
            [statistics.median(turn[core][which] for turn in self.turns) for core in (0, 1)]
            for which in (0, 1)
        )
        return (
            f"{gain:.2f} x: {one:.2f} s, {two:.2f} s · CPU {alone:.2f} s, {both:.2f} s"
            f" · a loop that shares nothing {machine:.2f} x"
        )


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
    gain = _in_turns(f"{_BLOCKS} blocks of a matmul", f"{m} x {depth} x {n}", run, rounds)
    assert len(outputs) == 1
    return gain


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
        found.add(tuple(sorted(required(Local(processes).run(run_mixed, range(_KERNELS), tuple)))))

    run(1)
    gain = _in_turns("mixed kernels in the pool", f"{_KERNELS} kernels", run, rounds)
    assert len(found) == 1
    return gain


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--depth", type=int, default=4096)
    options = parser.parse_args()
    print(f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}")
    for gain in (blocks(options.rounds, options.depth), kernels(options.rounds)):
        print(f"{gain.what}, {gain.size}: {gain.text}")


if __name__ == "__main__":
    main()
