"""Small kernels whose time is published: each within a quarter of it, from parameters that other publications set."""

from pathlib import Path

import numpy as np
import pytest

from insight_trace.chips import load_chip
from insight_trace.outcome import Simulation
from insight_trace.simulate import simulate
from tests.simulate.kernel_text import write_kernel

CLOSE = 0.25


def run(source: Path, arguments: dict[int, object], target: str = "a2a3", **options: object) -> Simulation:
    done = simulate(source, arguments, target=target, **options)  # type: ignore[arg-type]
    assert done.failure is None, done.failure
    return done


@pytest.mark.parametrize(("target", "cores", "cycles"), [("a2a3", 48, 20.6), ("a5", 64, 39.4)])
def test_loads_of_128_bytes_overlap_as_far_as_the_chip_has_them_in_flight(tmp_path, target, cores, cycles):
    """asc-devkit data_copy, 302 MB in rows of 128 bytes: 548 us on 48 cores of a 910B1, 881 us on 64 of a 950."""
    loads = 512
    source = write_kernel(
        tmp_path,
        f"""\
    using Row = GlobalTensor<float, Shape<1, 1, 1, 1, 32>, Stride<32, 32, 32, 32, 1>>;
    using RowTile = Tile<TileType::Vec, float, 1, 32, BLayout::RowMajor, 1, 32>;
    RowTile tile;
    TASSIGN(tile, 0);
    __gm__ float *from = data_in(args, 0) + get_block_idx() * {loads} * 32;
    for (int i = 0; i < {loads}; ++i) {{
        Row row(from + i * 32);
        TLOAD(tile, row);
    }}
    pipe_barrier(PIPE_ALL);""",
    )
    done = run(
        source, {0: np.zeros(cores * loads * 32, np.float32)}, target,
        core_type="aiv", block_count=cores, timing_only=True,
    )  # fmt: skip
    assert done.cycles / loads == pytest.approx(cycles, rel=CLOSE)


@pytest.mark.parametrize(("target", "cycles"), [("a2a3", 34.0), ("a5", 30.2)])
def test_a_sum_element_by_element_takes_what_the_scalar_unit_takes_for_it(tmp_path, target, cycles):
    """asc-devkit add_high_performance, case 0: halves by GetValue and SetValue, 910B1 and 950PR."""
    count = 512
    source = write_kernel(
        tmp_path,
        f"""\
    using Row = Tile<TileType::Vec, half, 1, {count}, BLayout::RowMajor, 1, {count}>;
    Row x, y, z;
    TASSIGN(x, 0);
    TASSIGN(y, {2 * count});
    TASSIGN(z, {4 * count});
    for (int i = 0; i < {count}; ++i) z.SetValue(i, x.GetValue(i) + y.GetValue(i));""",
    )
    done = run(source, {0: np.zeros(4, np.float32)}, target, core_type="aiv")
    assert done.cycles / count == pytest.approx(cycles, rel=CLOSE)


def test_whole_number_arithmetic_of_a_kernel_takes_time(tmp_path):
    """A division takes 20 cycles and a product 2 in the vendor's model: 100,000 rounds are more than a million."""
    rounds = 100_000
    source = write_kernel(
        tmp_path,
        f"""\
    auto *numbers = reinterpret_cast<__gm__ int32_t *>(data_in(args, 0));
    int32_t a = numbers[0], b = numbers[1];
    for (int i = 0; i < {rounds}; ++i) a = ((a ^ i) * 3) / (b + 1) + i % (b + 2); // the loop
    numbers[0] = a;""",
    )
    done = run(source, {0: np.array([5, 6], np.int32)}, core_type="aiv")
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


def test_short_functions_of_a_950_overlap(tmp_path):
    """Back to back they take 18 (msopprof, a card) to 26 cycles (cann-samples, the vendor's model) beside their loops."""
    pairs = 64
    source = write_kernel(
        tmp_path,
        f"""\
    using Row = Tile<TileType::Vec, float, 1, 16, BLayout::RowMajor, 1, 16>;
    Row a, b;
    TASSIGN(a, 0);
    TASSIGN(b, 1024);
    for (int i = 0; i < {pairs}; ++i) {{
        TADDS(b, a, 1.0f);
        TMULS(a, b, 2.0f);
    }}""",
    )
    done = run(source, {0: np.zeros(4, np.float32)}, "a5", core_type="aiv")
    assert done.cycles / pairs == pytest.approx(45.5, rel=CLOSE)
