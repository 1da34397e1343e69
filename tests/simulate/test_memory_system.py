"""What cores share: L2, the rates of L2 and HBM, the cores themselves; worked out on paper and by invariants."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from insight_trace.chips import load_chip
from insight_trace.model import CoreType, Stall
from insight_trace.outcome import Simulation
from insight_trace.simulate import simulate
from insight_trace.simulate.embedded.program import (
    On,
    Step,
    barrier,
    run_program,
    scalar,
    signal,
    time_instruction,
    transfer,
    vector,
    wait_core,
)
from insight_trace.simulate.embedded.simulator import EmbeddedOptions
from tests.simulate.kernel_text import write_kernel

ROUND = Path(__file__).parents[1] / "data" / "chips" / "round_numbers.toml"
MB = 1 << 20


def chip(folder: Path, **values: float) -> str:
    """The chip of round numbers with some of them changed: `gm_chip_rate=32` is gm.chip_rate."""
    changed = {re.sub("^(cross_core|[a-z0-9]+)_", r"\1.", name): value for name, value in values.items()}
    lines = []
    for line in ROUND.read_text(encoding="utf-8").splitlines():
        name = line.split('"')[1] if line.startswith('"') else ""
        if name in changed:
            continue
        lines.append(line)
        if line == "[value]":
            made = 'kind = "estimate", source = "made up"'
            lines += [f'"{key}" = {{ value = {value}, {made} }}' for key, value in changed.items()]
    path = folder / ("chip-" + "-".join(f"{k}-{v}" for k, v in sorted(changed.items())) + ".toml")
    path.write_text("\n".join(lines), encoding="utf-8")
    return str(path)


def run(*programs: list[Step], blocks: int = 1, **options: object) -> Simulation:
    done = run_program(*programs, blocks=blocks, options=EmbeddedOptions(**options))  # type: ignore[arg-type]
    assert done.failure is None, done.failure
    return done


def ends(done: Simulation, name: str = "MOV_OUT_TO_UB") -> list[int]:
    rows = done.instructions
    return [int(e) for e, n in zip(rows.end, rows.name, strict=True) if rows.names[n] == name]


# --- rates that are shared, on paper: a transfer is issued in 2 cycles, takes 100 and then 32 bytes a cycle


def test_two_cores_share_what_memory_gives_while_both_want_it(tmp_path: Path) -> None:
    soc = chip(tmp_path, gm_chip_rate=32)
    load = [transfer("MOV_OUT_TO_UB", 3200)]
    assert ends(run(load, soc_version=soc, l2="cold")) == [2 + 100 + 100]
    assert ends(run(load, load, soc_version=soc, l2="cold")) == [2 + 100 + 200] * 2


def test_a_core_that_comes_later_shares_only_what_is_left_of_the_first(tmp_path: Path) -> None:
    soc = chip(tmp_path, gm_chip_rate=32)
    first = [transfer("MOV_OUT_TO_UB", 3200)]
    later = [scalar(50), transfer("MOV_OUT_TO_UB", 3200)]
    # 50 cycles alone, 100 at half the rate for both; the second has 50 more to itself
    assert ends(run(first, later, soc_version=soc, l2="cold")) == [2 + 100 + 150, 2 + 100 + 200]


def test_a_core_that_waits_takes_nothing_from_the_others(tmp_path: Path) -> None:
    soc = chip(tmp_path, gm_chip_rate=32)
    idle = [scalar(5000)]
    load = [transfer("MOV_OUT_TO_UB", 3200)]
    assert ends(run(load, idle, idle, idle, soc_version=soc, l2="cold")) == [2 + 100 + 100]


def test_reads_and_writes_are_in_one_pool(tmp_path: Path) -> None:
    soc = chip(tmp_path, gm_chip_rate=32)
    done = run(
        [transfer("MOV_OUT_TO_UB", 3200)],
        [transfer("MOV_UB_TO_OUT", 3200, offset=MB)],
        soc_version=soc,
        l2="cold",
    )
    # the store needs 50 cycles where the load needs 100: alone until then
    assert ends(done, "MOV_UB_TO_OUT") == [2 + 50 + 50 + 100]
    assert ends(done) == [2 + 100 + 75 + 75 - 50 + 50]


def test_loads_and_stores_of_one_core_share_its_port(tmp_path: Path) -> None:
    soc = chip(tmp_path, gm_core_rate=32)
    both = [transfer("MOV_OUT_TO_UB", 3200), transfer("MOV_UB_TO_OUT", 3200, offset=MB)]
    together = run(both, soc_version=soc)
    apart = run(both[:1], both[1:], soc_version=soc)
    assert ends(together)[0] > ends(apart)[0]


def test_the_same_rate_for_all_shows_as_stalls_for_bandwidth(tmp_path: Path) -> None:
    done = run(
        *[[transfer("MOV_OUT_TO_UB", 65536)]] * 4, soc_version=chip(tmp_path, gm_chip_rate=32), l2="cold"
    )
    assert all(Stall(int(s)) is Stall.BANDWIDTH for s in done.instructions.stall[:1])


# --- L2


def test_what_was_read_once_is_in_l2_and_a_miss_waits_longer(tmp_path: Path) -> None:
    soc = chip(tmp_path, l2_capacity=4 * MB, l2_miss_latency=300)
    twice = [transfer("MOV_OUT_TO_UB", 3200), barrier(On.MTE2), transfer("MOV_OUT_TO_UB", 3200)]
    first, second = ends(run(twice, soc_version=soc, l2="cold"))
    assert first == 2 + 300 + 100 + 100
    cold = run(twice, soc_version=soc, l2="cold").memory
    assert cold is not None
    assert cold.asked == 2 * 3200
    assert cold.hits == 3200
    assert cold.fetched == 3200
    assert ends(run(twice, soc_version=soc, l2="warm"))[0] == 2 + 100 + 100
    assert second - first < first


def test_sectors_are_fetched_and_not_whole_lines(tmp_path: Path) -> None:
    soc = chip(tmp_path, l2_capacity=4 * MB)
    memory = run([transfer("MOV_OUT_TO_UB", 32)], soc_version=soc, l2="cold").memory
    assert memory is not None
    assert memory.fetched == 128


def test_written_lines_cost_memory_only_when_they_are_replaced(tmp_path: Path) -> None:
    soc = chip(tmp_path, l2_capacity=2 * MB)
    store = [transfer("MOV_UB_TO_OUT", 64 * 1024, offset=i * 64 * 1024) for i in range(16)]
    load = [transfer("MOV_OUT_TO_UB", 64 * 1024, offset=8 * MB + i * 64 * 1024) for i in range(64)]
    fits = run(store, soc_version=soc, l2="cold").memory
    assert fits is not None
    assert (fits.fetched, fits.written_back) == (0, 0)
    replaced = run([*store, barrier(On.ALL), *load], soc_version=soc, l2="cold").memory
    assert replaced is not None
    assert replaced.written_back == MB


PIECES = st.lists(st.tuples(st.integers(0, 95), st.integers(1, 4), st.booleans()), min_size=1, max_size=40)


def _program(pieces: list[tuple[int, int, bool]], writes: bool) -> list[Step]:
    size = 64 * 1024
    return [
        transfer("MOV_UB_TO_OUT" if write and writes else "MOV_OUT_TO_UB", size * count, offset=place * size)
        for place, count, write in pieces
    ]


@settings(max_examples=15, deadline=None)
@given(PIECES)
def test_every_byte_that_is_read_is_found_or_fetched(pieces: list[tuple[int, int, bool]]) -> None:
    memory = run(_program(pieces, writes=False), l2="cold").memory
    assert memory is not None
    assert memory.hits + memory.fetched == memory.asked


@settings(max_examples=10, deadline=None)
@given(PIECES)
def test_a_larger_cache_never_finds_less(tmp_path_factory, pieces: list[tuple[int, int, bool]]) -> None:
    folder = tmp_path_factory.mktemp("chips")
    found = []
    for capacity in (0, MB, 2 * MB, 3 * MB, 8 * MB):
        soc = chip(folder, l2_capacity=capacity)
        memory = run(_program(pieces, writes=True), soc_version=soc, l2="cold").memory
        assert memory is not None
        found.append(memory.hits)
    assert found == sorted(found)


@settings(max_examples=10, deadline=None)
@given(PIECES)
def test_a_cold_cache_is_never_faster_than_a_warm_one(pieces: list[tuple[int, int, bool]]) -> None:
    program = _program(pieces, writes=True)
    assert run(program, l2="cold").cycles >= run(program, l2="warm").cycles


@settings(max_examples=10, deadline=None)
@given(PIECES)
def test_one_core_alone_is_held_back_by_nobody(tmp_path_factory, pieces: list[tuple[int, int, bool]]) -> None:
    program = _program(pieces, writes=False)
    free = chip(tmp_path_factory.mktemp("chips"))
    held = chip(tmp_path_factory.mktemp("chips"), gm_chip_rate=32, l2_chip_rate=32, gm_core_rate=32)
    assert run(program, soc_version=free).cycles == run(program, soc_version=held).cycles


# --- blocks, waves and launches


def test_blocks_beyond_the_cores_run_in_waves(tmp_path: Path) -> None:
    soc = chip(tmp_path, chip_cube_cores=1, launch_next_block=40)
    one = run([vector(64)], soc_version=soc)
    assert one.launch is not None
    assert one.launch.waves == 1
    took = one.launch.ends[0]
    five = run([vector(64)], blocks=5, soc_version=soc)  # one cluster has two vector cores
    assert five.launch is not None
    assert five.launch.waves == 3
    assert five.launch.starts == (0, 0, took + 40, took + 40, 2 * (took + 40))
    assert five.launch.ends[4] == 2 * (took + 40) + took


def test_l2_keeps_nothing_of_a_load_that_goes_past_it(tmp_path: Path) -> None:
    def memory(hint: str) -> tuple[int, int]:
        load = "copy_gm_to_ubuf((__ubuf__ uint8_t *)0, (__gm__ uint8_t *)at, 0, 1, 128, 0, 0);"
        body = f"""\
    uint64_t at = (uint64_t)data_in(args, 0);
    at += {hint};
    {load}
    pipe_barrier(PIPE_ALL);
    {load}
    pipe_barrier(PIPE_ALL);"""
        done = simulate(
            write_kernel(tmp_path, body), {0: np.zeros(4096, np.float32)}, core_type="aiv", l2="cold"
        )
        assert done.failure is None
        assert done.memory is not None
        return done.memory.fetched, done.memory.hits

    fetched, hits = memory("0")
    # as AscendC's SetL2CacheHint makes an address
    assert memory("uint64_t(1) << 47") == (fetched + 4096, hits - 4096)


def test_a_start_within_a_sector_costs_bandwidth_and_one_on_a_sector_does_not(tmp_path: Path) -> None:
    soc = chip(tmp_path, gm_unaligned_cost=2, gm_unaligned_from=1024, gm_aligned=128)
    on, off, small = (
        ends(run([transfer("MOV_OUT_TO_UB", size, offset=at)], soc_version=soc, l2="warm"))[0]
        for size, at in ((3200, 256), (3200, 64), (640, 64))
    )
    assert off - on == 3200 // 32  # twice the time on the channel
    assert small == on - (3200 - 640) // 32


def test_a_block_starts_on_the_first_core_that_is_free(tmp_path: Path) -> None:
    soc = chip(tmp_path, chip_cube_cores=24)
    done = run([vector(64)], blocks=49, soc_version=soc)
    assert done.launch is not None
    assert max(done.launch.starts[:48]) == 0
    assert done.launch.starts[48] == min(done.launch.ends) + round(load_chip(soc).value("launch.next_block"))


def test_cores_of_a_launched_kernel_start_one_after_the_other(tmp_path: Path) -> None:
    soc = chip(tmp_path, chip_cube_cores=4, launch_skew=30, launch_head=500, launch_tail=20)
    task = run([vector(1)], blocks=3, soc_version=soc).launch
    assert task is not None
    assert (task.starts, task.around) == ((0, 0, 0), 0)
    launched = run([vector(1)], blocks=3, soc_version=soc, launch="kernel").launch
    assert launched is not None
    assert launched.starts == (0, 30, 60)
    assert (launched.before, launched.after) == (500, 20)


def test_code_is_fetched_once_by_each_core_that_a_first_launch_finds_cold(tmp_path: Path) -> None:
    source = write_kernel(tmp_path, "    for (int i = 0; i < 3; ++i) pipe_barrier(PIPE_ALL);")
    fill, blocks = 1000, 3
    soc = chip(tmp_path, chip_cube_cores=1, code_fill=fill, launch_skew=0, launch_next_block=0)

    def times(**options: object) -> list[int]:
        done = simulate(
            source,
            {0: np.zeros(4, np.float32)},
            core_type="aiv",
            block_count=blocks,
            soc_version=soc,
            **options,
        )  # type: ignore[arg-type]
        assert done.failure is None
        assert done.launch is not None
        return [end - start for start, end in zip(done.launch.starts, done.launch.ends, strict=True)]

    known = times(l2="cold")
    assert times(launch="kernel", l2="warm") == times(launch="kernel", l2="cold") == known
    # two vector cores, and the third block finds what the first of its core left
    for state in ("cold", "warm"):
        first = times(launch="first", l2=state)
        assert [more - less for more, less in zip(first, known, strict=True)] == [fill, fill, 0]


def test_a_first_launch_walks_through_the_page_table_once_for_each_page(tmp_path: Path) -> None:
    walk, pages = 70, 4  # of 1 KB: 3200 bytes
    small = chip(
        tmp_path, page_small=1024, page_large_from=1 << 40, page_walk=walk, page_turn=10, code_fill=0
    )
    twice = [transfer("MOV_OUT_TO_UB", 3200), barrier(On.MTE2), transfer("MOV_OUT_TO_UB", 3200)]
    known = ends(run(twice, l2="cold", soc_version=small, launch="kernel"))  # not for the first time
    found = ends(run(twice, l2="cold", soc_version=small, launch="first"))
    assert [more - less for more, less in zip(found, known, strict=True)] == [pages * walk] * 2
    assert ends(run(twice, soc_version=small, l2="cold")) == known  # a task of a run: not the first
    large = chip(tmp_path, page_large=MB, page_large_from=1024, page_walk=walk, page_turn=10, code_fill=0)
    assert ends(run(twice, soc_version=large, launch="first", l2="cold"))[0] == known[0] + walk


def test_loads_in_flight_of_a_core_walk_one_after_the_other(tmp_path: Path) -> None:
    walk, pages = 1000, 4  # of 1 KB
    soc = chip(tmp_path, page_small=1024, page_large_from=1 << 40, page_walk=walk, page_turn=10, code_fill=0)
    both = [transfer("MOV_OUT_TO_UB", 4096), transfer("MOV_OUT_TO_UB", 4096, offset=4096)]
    first, second = ends(run(both, l2="cold", soc_version=soc, launch="first"))
    assert second - first == pytest.approx(pages * walk, abs=30)


def test_walks_of_all_clusters_take_turns(tmp_path: Path) -> None:
    clusters, turn, pages = 4, 100, 4  # a core alone could make a walk every 70 cycles
    soc = chip(
        tmp_path, page_small=1024, page_large_from=1 << 40, page_walk=70, page_turn=turn, code_fill=0,
        launch_skew=0, chip_cube_cores=clusters,
    )  # fmt: skip
    load = [transfer("MOV_OUT_TO_UB", 3200)]
    for blocks in (clusters, 2 * clusters):  # two vector cores of a cluster know the same pages
        last = max(ends(run(load, blocks=blocks, soc_version=soc, launch="first", l2="cold")))
        walks = pages * blocks // 2
        assert last - 200 == pytest.approx(walks * turn, rel=0.1)


def test_nobody_waits_for_the_pages_of_a_store(tmp_path: Path) -> None:
    soc = chip(tmp_path, page_small=1024, page_large_from=1 << 40, page_walk=70, page_turn=10, code_fill=0)
    both = [transfer("MOV_UB_TO_OUT", 3200), barrier(On.MTE3), scalar(1000), transfer("MOV_OUT_TO_UB", 3200)]
    first, later = (run(both, soc_version=soc, launch=launch, l2="cold") for launch in ("first", "kernel"))
    assert ends(first, "MOV_UB_TO_OUT") == ends(later, "MOV_UB_TO_OUT")
    assert ends(first) == ends(later)  # they are known by then


def test_a_later_block_knows_the_pages_that_its_core_has_seen(tmp_path: Path) -> None:
    soc = chip(
        tmp_path, page_small=1024, page_large_from=1 << 40, page_walk=70, page_turn=1, code_fill=0,
        launch_skew=0, launch_next_block=0, chip_cube_cores=1,
    )  # fmt: skip
    done = run([transfer("MOV_OUT_TO_UB", 3200)], blocks=3, soc_version=soc, launch="first", l2="cold").launch
    assert done is not None
    first, _, third = (end - start for start, end in zip(done.starts, done.ends, strict=True))
    assert first - third == pytest.approx(4 * 70, abs=2)


def test_flags_between_the_cores_of_all_blocks_go_through_one_unit(tmp_path: Path) -> None:
    blocks, flags, turn = 4, 3, 1000
    cube, lane = [signal(On.FIX, 1)] * flags, [wait_core(1)] * flags

    def cycles(turn: int) -> int:
        options = EmbeddedOptions(soc_version=chip(tmp_path, cross_core_turn=turn, chip_cube_cores=blocks))
        done = run_program(cube, lane, kinds=[CoreType.AIC, CoreType.AIV], blocks=blocks, options=options)
        assert done.failure is None, done.failure
        return done.cycles

    assert cycles(0) < turn
    assert cycles(turn) == pytest.approx((blocks * flags - 1) * turn, abs=100)


def test_rows_that_l2_does_not_hold_take_longer_the_busier_memory_is(tmp_path: Path) -> None:
    name, rows, held, missed = "MOV_OUT_TO_L1_MULTI_ND2NZ", 64, 2, 6
    soc = Path(chip(tmp_path, l2_capacity=4 * MB, gm_chip_rate=128))
    made = soc.read_text(encoding="utf-8")
    cost = f"latency = 100, rate = 128, per_burst = {held}, missed_burst = {missed}, interval = 1"
    move = f'{name} = {{ {cost}, kind = "estimate", source = "made up" }}'
    soc.write_text(
        re.sub(rf"(?m)^{name} = .*\n", "", made).replace("[move]\n", f"[move]\n{move}\n"), encoding="utf-8"
    )
    load = [transfer(name, 128, rows)]
    assert ends(run(load, soc_version=str(soc), l2="warm"), name) == [2 + 100 + rows * held]
    # alone it asks for 64 of the 128 bytes a cycle that memory gives: half of what a row takes there more
    (alone,) = ends(run(load, soc_version=str(soc), l2="cold"), name)
    assert alone == 2 + 100 + rows * (held + (missed - held) // 2)


def test_what_wants_less_than_its_part_leaves_the_rest_to_the_others(tmp_path: Path) -> None:
    soc = Path(chip(tmp_path, gm_chip_rate=80))
    made = soc.read_text(encoding="utf-8")
    assert "latency = 50, rate = 32" in made  # of stores
    soc.write_text(made.replace("latency = 50, rate = 32", "latency = 50, rate = 64"), encoding="utf-8")
    done = run(
        [transfer("MOV_OUT_TO_UB", 3200)],
        [transfer("MOV_UB_TO_OUT", 6400, offset=MB)],
        soc_version=str(soc),
        l2="cold",
    )
    # the load wants 32 of 80; the store has 64 for its first 50 cycles and then the other 48 of 80
    assert ends(done) == [2 + 100 + 100]
    assert ends(done, "MOV_UB_TO_OUT") == [round(2 + 50 + 50 + 3200 / 48)]


def test_cores_share_what_l2_gives_where_everything_is_found(tmp_path: Path) -> None:
    soc = chip(tmp_path, l2_capacity=4 * MB, l2_chip_rate=32, gm_chip_rate=1)
    mine, other = ([transfer("MOV_OUT_TO_UB", 3200, offset=at)] for at in (0, MB))
    assert ends(run(mine, soc_version=soc, l2="warm")) == [2 + 100 + 100]
    assert ends(run(mine, other, soc_version=soc, l2="warm")) == [2 + 100 + 200] * 2


def test_lines_that_another_core_read_last_take_more_of_what_l2_gives(tmp_path: Path) -> None:
    soc = chip(tmp_path, l2_capacity=4 * MB, l2_chip_rate=64, l2_shared_cost=2)
    load = [transfer("MOV_OUT_TO_UB", 3200)]
    later = [scalar(10), *load]
    # a byte that another core read last takes two of L2's 64: alone a core has its 32 bytes, both together 16 each
    first, second = ends(run(load, later, soc_version=soc, l2="warm"))
    assert first == 2 + 100 + 10 + (3200 - 10 * 32) / 16
    assert second == first + 10
    apart = [transfer("MOV_OUT_TO_UB", 3200, offset=MB)]
    assert ends(run(load, apart, soc_version=soc, l2="warm")) == [2 + 100 + 100] * 2


def test_a_later_wave_finds_what_an_earlier_one_fetched(tmp_path: Path) -> None:
    soc = chip(tmp_path, chip_cube_cores=1, l2_capacity=4 * MB, l2_miss_latency=300, launch_next_block=40)
    done = run([transfer("MOV_OUT_TO_UB", 3200)], blocks=4, soc_version=soc, l2="cold")
    assert done.memory is not None
    assert (done.memory.fetched, done.memory.hits) == (3200, 3 * 3200)
    assert done.launch is not None
    assert done.launch.waves == 2
    took = [end - start for start, end in zip(done.launch.starts, done.launch.ends, strict=True)]
    assert took[0] - took[2] == 300
    assert took[1] == took[2] == took[3]  # what is on its way counts as found


@settings(max_examples=10, deadline=None)
@given(st.lists(PIECES, min_size=2, max_size=3))
def test_several_cores_find_no_more_in_a_cold_cache_and_fetch_no_less(
    programs: list[list[tuple[int, int, bool]]],
) -> None:
    cores = [_program(pieces, writes=True) for pieces in programs]
    cold, warm = run(*cores, l2="cold").memory, run(*cores, l2="warm").memory
    assert cold is not None
    assert warm is not None
    assert cold.asked == warm.asked
    assert cold.hits <= warm.hits
    assert cold.fetched >= warm.fetched
    assert cold.hits + cold.fetched <= cold.asked


# --- what alignment does


def test_a_large_transfer_that_starts_off_512_bytes_is_slower_and_a_small_one_is_not() -> None:
    def timed(size: int, offset: int) -> int:
        return time_instruction(transfer("MOV_OUT_TO_UB", size, offset=offset))

    assert timed(131072, 32) > 1.2 * timed(131072, 0)
    assert timed(131072, 512) == timed(131072, 0)
    assert timed(8192, 32) == timed(8192, 0)


def test_pieces_that_are_not_whole_blocks_cost_whole_blocks() -> None:
    assert time_instruction(transfer("MOV_OUT_TO_UB_ALIGN", 33, 64)) == time_instruction(
        transfer("MOV_OUT_TO_UB_ALIGN", 64, 64)
    )


@pytest.mark.parametrize("preset", ["device", "camodel"])
def test_the_same_run_gives_the_same_times_in_whatever_order_cores_run_on_the_host(preset: str) -> None:
    load = [transfer("MOV_OUT_TO_UB", 65536, offset=i * 65536) for i in range(6)]
    usual = run(*[load] * 5, preset=preset, l2="cold")
    other = run(*[load] * 5, preset=preset, l2="cold", perturb=7)
    for core in range(5):
        mine, theirs = (d.instructions.end[d.instructions.core == core].tolist() for d in (usual, other))
        assert mine == theirs
