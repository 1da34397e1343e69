"""Small kernels whose time is published, whole kernels and whole runs of the same list, in one table.

    python benchmarks/probes.py [--simpler PATH]

Rows of whole kernels come from `benchmarks/whole_kernels.json`. Whole runs need a checkout of simpler and torch, and
are left out without them. `set` names the parameter of a chip's file that the publication has set; nothing: none.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT), str(ROOT / "benchmarks")]

from tests.simulate.kernel_text import write_kernel  # noqa: E402

from insight_trace.outcome import Simulation  # noqa: E402
from insight_trace.simulate import simulate  # noqa: E402

CLOSE = 0.25


@dataclass(frozen=True)
class Probe:
    """One kernel, how often it does what is measured, and the cycles (or microseconds) that each takes in print."""

    name: str
    source: str  # where it is published
    body: str
    arguments: dict[int, Any]
    times: int
    published: float
    unit: str = "cycles"
    set: str = ""
    target: str = "a2a3"
    core: str = "aiv"
    blocks: int = 1
    chip: str | None = None
    launch: str | None = None
    least: bool = False  # the publication says: more than that

    def run(self, folder: Path) -> Simulation:
        done = simulate(
            write_kernel(folder, self.body), self.arguments, target=self.target, core_type=self.core,
            block_count=self.blocks, timing_only=self.blocks > 1, soc_version=self.chip, launch=self.launch,
        )  # fmt: skip
        assert done.failure is None, done.failure
        return done

    def ours(self, done: Simulation) -> float:
        cycles = done.cycles / self.times
        return cycles / done.mhz if self.unit == "us" else cycles


def _loads(target: str, cores: int, cycles: float, micros: int) -> Probe:
    loads = 512
    body = f"""\
    using Row = GlobalTensor<float, Shape<1, 1, 1, 1, 32>, Stride<32, 32, 32, 32, 1>>;
    using RowTile = Tile<TileType::Vec, float, 1, 32, BLayout::RowMajor, 1, 32>;
    RowTile tile;
    TASSIGN(tile, 0);
    __gm__ float *from = data_in(args, 0) + get_block_idx() * {loads} * 32;
    for (int i = 0; i < {loads}; ++i) {{
        Row row(from + i * 32);
        TLOAD(tile, row);
    }}
    pipe_barrier(PIPE_ALL);"""
    return Probe(
        f"TLOADs of 128 bytes, {cores} cores", f"asc-devkit data_copy: 302 MB in {micros} us", body,
        {0: np.zeros(cores * loads * 32, np.float32)}, loads, cycles, target=target, blocks=cores,
    )  # fmt: skip


def _scalar_sum(target: str, cycles: float) -> Probe:
    count = 512
    body = f"""\
    using Row = Tile<TileType::Vec, half, 1, {count}, BLayout::RowMajor, 1, {count}>;
    Row x, y, z;
    TASSIGN(x, 0);
    TASSIGN(y, {2 * count});
    TASSIGN(z, {4 * count});
    for (int i = 0; i < {count}; ++i) z.SetValue(i, x.GetValue(i) + y.GetValue(i));"""
    return Probe(
        "z[i] = x[i] + y[i] in UB, half, each", "asc-devkit add_high_performance, case 0", body,
        {0: np.zeros(4, np.float32)}, count, cycles, target=target,
    )  # fmt: skip


def _short_functions() -> Probe:
    pairs = 64
    body = f"""\
    using Row = Tile<TileType::Vec, float, 1, 16, BLayout::RowMajor, 1, 16>;
    Row a, b;
    TASSIGN(a, 0);
    TASSIGN(b, 1024);
    for (int i = 0; i < {pairs}; ++i) {{
        TADDS(b, a, 1.0f);
        TMULS(a, b, 2.0f);
    }}"""
    return Probe(
        "two vector ops of 1 x 16, a pair", "42 to 49: msopprof (a card), cann-samples (the vendor's model)", body,
        {0: np.zeros(4, np.float32)}, pairs, 45.5, set="`function.call`", target="a5",
    )  # fmt: skip


def _product(n: int, micros: float) -> Probe:
    """The first task of a run on its core: the run brings its code, and buffers whose pages nobody knows."""
    body = f"""\
    using Square = GlobalTensor<bfloat16_t, Shape<1, 1, 1, {n}, {n}>, Stride<{n * n}, {n * n}, {n * n}, {n}, 1>>;
    using Sums = GlobalTensor<float, Shape<1, 1, 1, {n}, {n}>, Stride<{n * n}, {n * n}, {n * n}, {n}, 1>>;
    using Boxes = Tile<TileType::Mat, bfloat16_t, {n}, {n}, BLayout::ColMajor, {n}, {n}, SLayout::RowMajor, 512>;
    Square a((__gm__ bfloat16_t *)data_in(args, 0)), b((__gm__ bfloat16_t *)data_in(args, 1));
    Sums c(data_in(args, 2));
    Boxes first, second;
    TileLeft<bfloat16_t, {n}, {n}, {n}, {n}> left;
    TileRight<bfloat16_t, {n}, {n}, {n}, {n}> right;
    TileAcc<float, {n}, {n}, {n}, {n}> sum;
    TASSIGN(first, 0);
    TASSIGN(second, {2 * n * n});
    TASSIGN(left, 0);
    TASSIGN(right, 0);
    TASSIGN(sum, 0);
    TLOAD(first, a);
    TLOAD(second, b);
    set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    TMOV(left, first);
    TMOV(right, second);
    set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    TMATMUL(sum, left, right);
    set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    TSTORE(c, sum);
    pipe_barrier(PIPE_ALL);"""
    square = np.zeros((n, n), ml_dtypes.bfloat16)
    return Probe(
        f"one product {n}³ on one core, bfloat16", "pypto pull request 1912: a task, as the swimlane has it",
        body, {0: square, 1: square, 2: np.zeros((n, n), np.float32)}, 1, micros, "us", core="aic",
        chip="Ascend910B2", launch="first",
    )  # fmt: skip


def _additions() -> Probe:
    cores, adds = 16, 32
    body = f"""\
    LineTile tile;
    TASSIGN(tile, 0);
    Line line(data_in(args, 0));
    set_atomic_f32();
    set_atomic_add();
    for (int i = 0; i < {adds}; ++i) TSTORE(line, tile);
    set_atomic_none();
    pipe_barrier(PIPE_ALL);"""
    return Probe(
        f"atomic adds of {cores} cores into one block, each", "asc-devkit atomic_add_perf: 43 ns", body,
        {0: np.zeros(64, np.float32)}, cores * adds, 71.0, set="`l2.atomic_turn`", target="a5", blocks=cores,
    )  # fmt: skip


def _arithmetic() -> Probe:
    body = """\
    auto *numbers = reinterpret_cast<__gm__ int32_t *>(data_in(args, 0));
    int32_t a = numbers[0], b = numbers[1];
    for (int i = 0; i < 100000; ++i) a = ((a ^ i) * 3) / (b + 1) + i % (b + 2); // the loop
    numbers[0] = a;"""
    return Probe(
        "100,000 rounds of xor, mul, div, mod", "more than 10⁶: a division takes 20 in the vendor's model", body,
        {0: np.array([5, 6], np.int32)}, 1, 1e6, set="`scalar.divide`", least=True,
    )  # fmt: skip


PROBES = {
    "loads a2a3": _loads("a2a3", 48, 20.6, 548),
    "loads a5": _loads("a5", 64, 39.4, 881),
    "scalar sum a2a3": _scalar_sum("a2a3", 34.0),
    "scalar sum a5": _scalar_sum("a5", 30.2),
    "arithmetic": _arithmetic(),
    "additions": _additions(),
    "short functions": _short_functions(),
    "product 64": _product(64, 2.94),
    "product 128": _product(128, 6.42),
}
# Of benchmarks/whole_kernels.json, by kernel and case.
WHOLE = (
    ("flash attention, torch", "128 x 4096"), ("flash attention, 12/2025", "128 x 4096"),
    ("flash attention", "1024 x 1024"), ("GEMM half", "1536³"), ("GEMM half", "3072³"),
)  # fmt: skip


def rows(simpler: Path | None) -> Iterator[tuple[str, str, float, float, bool, str, str]]:
    """What, unit, ours, published, whether it is more than that, what it has set, source."""
    for probe in PROBES.values():
        with tempfile.TemporaryDirectory(prefix="probe-") as folder:
            ours = probe.ours(probe.run(Path(folder)))
        name = f"{probe.name} ({'950' if probe.target == 'a5' else '910B'})"
        yield name, probe.unit, ours, probe.published, probe.least, probe.set, probe.source
    points = json.loads((ROOT / "benchmarks" / "whole_kernels.json").read_text(encoding="utf-8"))
    for kernel, case in WHOLE:
        row = next(row for row in points if (row["kernel"], row["case"]) == (kernel, case))
        fit = "see accuracy.md" if row["role"] == "fit" else ""
        yield f"{kernel}, {case}", "us", row["us"], row["published_us"], False, fit, "docs/accuracy.md"
    if simpler is not None:
        from whole_runs import RUNS, micros_of

        for run in RUNS[:3]:
            set_ = run.set and f"`schedule.{run.set}`"
            yield (
                f"{run.scene} {run.case}",
                "us",
                micros_of(run, simpler),
                run.micros,
                False,
                set_,
                "simpler 694",
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--simpler", type=Path, metavar="PATH", help="a checkout of simpler")
    print("| probe | ours | published | ratio | set | source |")
    print("|---|---:|---:|---:|---|---|")
    far = 0
    for name, unit, ours, published, least, set_, source in rows(parser.parse_args().simpler):
        far += ours < published if least else abs(ours / published - 1) > CLOSE
        print(
            f"| {name} | {ours:,.1f} {unit} | {'> ' * least}{published:,.1f} | {ours / published:.2f} | {set_} | {source} |",
            flush=True,
        )
    print(f"\n{far} further off than {CLOSE:.0%}")


if __name__ == "__main__":
    main()
