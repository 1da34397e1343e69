"""Small kernels whose time is published: each within a quarter of it, from parameters that other publications set."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from insight_trace.chips import load_chip
from insight_trace.outcome import Simulation
from insight_trace.simulate import simulate
from tests.simulate.kernel_text import write_kernel

CLOSE = 0.25
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def run(source: Path, arguments: dict[int, object], target: str = "a2a3", **options: object) -> Simulation:
    done = simulate(source, arguments, target=target, **options)  # type: ignore[arg-type]
    assert done.failure is None, done.failure
    return done


@pytest.fixture(scope="module")
def probes() -> ModuleType:
    """benchmarks/probes.py, which prints the same as a table."""
    before = list(sys.path)
    try:
        spec = importlib.util.spec_from_file_location("probes", BENCHMARKS / "probes.py")
        assert spec
        assert spec.loader
        module = importlib.util.module_from_spec(spec)
        sys.modules["probes"] = module
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path[:] = before


@pytest.mark.parametrize(
    "name",
    ["loads a2a3", "loads a5", "scalar sum a2a3", "scalar sum a5", "additions", "short functions", "product 64",
     "product 128"],
)  # fmt: skip
def test_a_small_kernel_is_within_a_quarter_of_its_published_time(tmp_path, probes, name):
    probe = probes.PROBES[name]
    assert probe.ours(probe.run(tmp_path)) == pytest.approx(probe.published, rel=CLOSE)


def test_whole_number_arithmetic_of_a_kernel_takes_time(tmp_path, probes):
    """A division takes 20 cycles and a product 2 in the vendor's model: 100,000 rounds are more than a million."""
    done = probes.PROBES["arithmetic"].run(tmp_path)
    source = tmp_path / "kernel.cpp"
    assert 1e6 < done.cycles < 1e7
    rows = done.instructions
    longest = int(np.argmax(rows.end - rows.start))
    assert rows.names[rows.name[longest]] == "SCALAR_CODE"
    assert int(rows.end[longest] - rows.start[longest]) > 0.95 * done.cycles
    line = 1 + source.read_text().splitlines().index(
        next(line for line in source.read_text().splitlines() if "the loop" in line)
    )
    assert rows.stacks[rows.stack[longest]] == f"{source}:{line}"


def test_additions_to_the_same_block_come_one_after_the_other(tmp_path):
    """asc-devkit: a block of 512 bytes serves one core at a time; atomic_add_perf: 43 ns each on a 950."""
    cores, adds = 16, 32
    body = f"""\
    LineTile tile;
    TASSIGN(tile, 0);
    Line line(data_in(args, 0) + %s * 64);
    set_atomic_f32();
    set_atomic_add();
    for (int i = 0; i < {adds}; ++i) TSTORE(line, tile);
    set_atomic_none();
    pipe_barrier(PIPE_ALL);"""
    apart, together = (
        run(
            write_kernel(tmp_path, body % where, name=f"{name}.cpp"), {0: np.zeros(64 * 8 * cores, np.float32)},
            core_type="aiv", block_count=cores, timing_only=True,
        ).cycles
        for name, where in (("apart", "get_block_idx() * 8"), ("together", "0"))
    )  # fmt: skip
    turn = load_chip(target="a2a3").value("l2.atomic_turn")
    assert together >= cores * adds * turn
    assert together == pytest.approx(cores * adds * turn, rel=CLOSE)
    assert apart < together / 4
