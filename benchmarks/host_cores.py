"""What a second core of the host brings: blocks of one kernel, and dispatches of a bulk replay.

    python -m benchmarks host_cores [--rounds 3] [--depth 4096]

Wall time, one way and the other in turns, the best of each: a busy machine changes it. CPU is the time of all processes
together; where it is the same, the second core costs nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import insight_trace
from insight_trace.simulate import simulate

ROOT = Path(__file__).resolve().parent.parent
ATTENTION = ROOT / "examples" / "paged_attention" / "scene.py"
GEMM = ROOT / "tests" / "data" / "kernels" / "gemm.cpp"
_BLOCKS, _DISPATCHES = 24, 40


def _processor() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


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


def dispatches(rounds: int) -> Gain:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        insight_trace.capture(ATTENTION, "CaseWide", output=folder / "dump")
        words = [sys.executable, "-m", "insight_trace", "replay", str(ATTENTION), "--case", "CaseWide"]
        words += ["--dump-dir", str(folder / "dump"), "--all", "--sample", str(_DISPATCHES), "-o"]
        tables = set()

        def run(processes: int) -> None:
            out = folder / f"out{len(list(folder.iterdir()))}"
            subprocess.run(
                [*words, str(out), "--jobs", str(processes)], check=True, stdout=subprocess.DEVNULL
            )
            tables.add(json.dumps(json.loads((out / "summary.json").read_text())["dispatches"]))

        run(1)
        best = _best(run, rounds)
        assert len(tables) == 1
        return Gain("`replay --all`, paged attention", f"{_DISPATCHES} dispatches", *best)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--depth", type=int, default=4096)
    options = parser.parse_args()
    print(f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}")
    for gain in (blocks(options.rounds, options.depth), dispatches(options.rounds)):
        print(f"{gain.what}, {gain.size}: {gain.text}")


if __name__ == "__main__":
    main()
