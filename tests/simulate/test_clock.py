"""Schedules that were worked out by hand, on a chip with round numbers (tests/data/chips/round_numbers.toml).

There an instruction is issued every cycle and reaches its pipe two cycles later. A vector instruction of r
repeats ends after r + 10 cycles and lets the next one start after r. A load of 3200 bytes takes 100 cycles and
another 100 for its bytes; loads start 20 cycles apart. Setting a flag takes 3 cycles, seeing it 5; a barrier 7.
"""

from pathlib import Path

import pytest

from insight_trace.chips import load_chip
from insight_trace.errors import InputError
from insight_trace.model import CoreType, Stall
from insight_trace.outcome import Fault, Simulation
from insight_trace.simulate.embedded.program import (
    On,
    Step,
    barrier,
    run_program,
    scalar,
    set_flag,
    signal,
    transfer,
    vector,
    wait_core,
    wait_flag,
)
from insight_trace.simulate.embedded.simulator import EmbeddedOptions

CHIP = Path(__file__).parents[1] / "data" / "chips" / "round_numbers.toml"


def run(*programs: list[Step], kinds: tuple[CoreType, ...] = (), perturb: int = 0) -> Simulation:
    return run_program(
        *programs, kinds=kinds, options=EmbeddedOptions(soc_version=str(CHIP), perturb=perturb)
    )


def times(simulation: Simulation, core: int = 0) -> list[tuple[int, int]]:
    """Start and end of every instruction in program order, without the closing END."""
    assert simulation.failure is None, simulation.failure
    columns = simulation.instructions
    mine = [i for i in range(len(columns)) if columns.core[i] == core]
    return [(int(columns.start[i]), int(columns.end[i])) for i in mine[:-1]]


def stall(simulation: Simulation, row: int) -> Stall:
    return Stall(int(simulation.instructions.stall[row]))


def load(size: int = 3200) -> Step:
    return transfer("MOV_OUT_TO_UB", size)


def test_a_second_buffer_hides_the_second_load_behind_the_first_compute() -> None:
    done = run(
        [
            load(),
            set_flag(On.MTE2, On.V, 0),
            load(),
            set_flag(On.MTE2, On.V, 1),
            wait_flag(On.MTE2, On.V, 0),
            vector(90),
            wait_flag(On.MTE2, On.V, 1),
            vector(90),
        ]
    )
    assert times(done) == [
        (2, 202),  # 100 to get going, 100 for the bytes
        (22, 205),  # taken up when the pipe is free again, raised when the load has ended
        (25, 302),  # its latency overlaps, its bytes wait for the channel until 202
        (45, 305),
        (6, 210),
        (210, 310),
        (300, 310),  # the second load has long been under way: ten cycles instead of 205
        (310, 410),
    ]
    assert stall(done, 2) is Stall.BANDWIDTH
    assert stall(done, 4) is Stall.FLAG


def test_with_one_buffer_the_second_load_waits_for_the_compute() -> None:
    done = run(
        [
            load(),
            set_flag(On.MTE2, On.V),
            wait_flag(On.MTE2, On.V),
            vector(90),
            set_flag(On.V, On.MTE2),
            wait_flag(On.V, On.MTE2),
            load(),
            set_flag(On.MTE2, On.V),
            wait_flag(On.MTE2, On.V),
            vector(90),
        ]
    )
    assert times(done)[3:] == [
        (210, 310),
        (300, 313),
        (25, 318),
        (318, 518),
        (338, 521),
        (303, 526),
        (526, 626),
    ]


def test_a_missing_flag_lets_the_compute_start_before_its_data_is_there() -> None:
    done = run([load(), vector(90)])
    assert times(done) == [(2, 202), (3, 103)]


def test_a_flag_set_twice_is_waited_for_twice_in_the_order_of_the_sets() -> None:
    done = run(
        [
            load(3200),
            set_flag(On.MTE2, On.V),
            load(9600),
            set_flag(On.MTE2, On.V),
            wait_flag(On.MTE2, On.V),
            wait_flag(On.MTE2, On.V),
        ]
    )
    assert times(done)[4:] == [(6, 210), (210, 510)]
    assert list(done.instructions.partner[4:6]) == [1, 3]


def test_a_wait_that_comes_before_its_set_in_the_program_holds_what_is_behind_it() -> None:
    done = run([wait_flag(On.MTE2, On.V), vector(10), load(), set_flag(On.MTE2, On.V)])
    assert times(done) == [(2, 212), (212, 232), (4, 204), (24, 207)]
    assert int(done.instructions.partner[0]) == 3
    assert stall(done, 0) is Stall.FLAG


def test_a_full_queue_stops_the_scalar_unit_until_an_instruction_has_left_it() -> None:
    done = run([vector(100) for _ in range(7)] + [scalar(4)])
    columns = done.instructions
    assert list(columns.issue[:7]) == [0, 1, 2, 3, 4, 102, 202]
    assert list(columns.start[:7]) == [2, 102, 202, 302, 402, 502, 602]
    assert [stall(done, row) for row in (4, 5, 6)] == [Stall.PIPE, Stall.QUEUE, Stall.QUEUE]
    assert times(done)[7] == (203, 207)


def test_a_barrier_on_one_pipe_holds_that_pipe_only() -> None:
    done = run([load(), vector(10), barrier(On.V), vector(10), load()])
    assert times(done) == [(2, 202), (3, 23), (13, 30), (30, 50), (22, 302)]
    assert stall(done, 2) is Stall.BARRIER


def test_without_a_barrier_dependent_instructions_overlap() -> None:
    assert times(run([vector(10), vector(10)])) == [(2, 22), (12, 32)]


def test_a_barrier_on_all_pipes_holds_everything_that_follows() -> None:
    done = run([load(), vector(10), barrier(On.ALL), vector(10), load()])
    assert times(done) == [(2, 202), (3, 23), (2, 209), (211, 231), (212, 412)]


def test_a_scalar_wait_stops_issue() -> None:
    done = run(
        [
            load(),
            set_flag(On.MTE2, On.S),
            wait_flag(On.MTE2, On.S),
            scalar(4),
            set_flag(On.S, On.V),
            wait_flag(On.S, On.V),
            vector(10),
        ]
    )
    assert times(done) == [(2, 202), (22, 205), (2, 210), (210, 214), (214, 217), (219, 224), (224, 244)]
    assert stall(done, 2) is Stall.FLAG


def test_stores_without_an_interval_follow_each_other() -> None:
    done = run([transfer("MOV_UB_TO_OUT", 1600), transfer("MOV_UB_TO_OUT", 1600)])
    assert times(done) == [(2, 102), (102, 202)]


@pytest.mark.parametrize("perturb", [0, 1, 2])
def test_a_flag_from_another_core_arrives_on_one_time_axis(perturb: int) -> None:
    done = run(
        [scalar(40), signal(On.S, 3), wait_core(4), scalar(1)],
        [wait_core(3), scalar(5), transfer("MOV_UB_TO_OUT", 1600), signal(On.MTE3, 4)],
        kinds=(CoreType.AIC, CoreType.AIV),
        perturb=perturb,
    )
    # raised at 41, seen 11 later; the store starts at 57 + 2, and the signal drains it
    assert times(done, 1) == [(0, 52), (52, 57), (59, 159), (159, 166)]
    assert times(done, 0) == [(0, 40), (40, 41), (41, 177), (177, 178)]


def test_both_vector_cores_must_raise_a_flag_before_the_cube_core_sees_it() -> None:
    done = run(
        [wait_core(1)],
        [scalar(10), signal(On.S, 1)],
        [scalar(70), signal(On.S, 1)],
        kinds=(CoreType.AIC, CoreType.AIV, CoreType.AIV),
    )
    assert times(done, 0) == [(0, 82)]


def failure_of(*programs: list[Step], kinds: tuple[CoreType, ...] = ()) -> tuple[str, int]:
    failure = run(*programs, kinds=kinds).failure
    assert failure is not None
    assert failure.fault is Fault.KERNEL
    return failure.message, failure.line


def test_a_wait_that_nothing_ends_is_a_deadlock_at_the_line_of_the_wait() -> None:
    message, line = failure_of([vector(1), wait_flag(On.MTE2, On.V, 3), vector(1), vector(1)])
    assert message == (
        "deadlock: pipe V waits for flag MTE2 -> V, event 3, which nothing sets (2 instructions behind it)"
    )
    assert line == 2


def test_a_set_behind_a_full_queue_is_a_deadlock() -> None:
    program = [wait_flag(On.MTE2, On.V), *[vector(1)] * 4, set_flag(On.MTE2, On.V)]
    message, line = failure_of(program)
    assert "pipe V waits for flag MTE2 -> V, event 0" in message
    assert "3 instructions behind it" in message
    assert line == 1
    fits = [wait_flag(On.MTE2, On.V), *[vector(1)] * 3, set_flag(On.MTE2, On.V)]
    assert run(fits).failure is None


def test_a_barrier_on_all_pipes_before_the_set_is_a_deadlock() -> None:
    message, line = failure_of([wait_flag(On.MTE2, On.V), barrier(On.ALL), set_flag(On.MTE2, On.V)])
    assert "pipe V waits for flag MTE2 -> V" in message
    assert line == 1


def test_a_scalar_wait_that_nothing_ends_is_a_deadlock() -> None:
    message, line = failure_of([wait_flag(On.V, On.S, 2)])
    assert message == "deadlock: the scalar unit waits for flag V -> S, event 2, which nothing sets"
    assert line == 1


def test_a_scalar_wait_behind_a_pipe_that_waits_names_the_pipe() -> None:
    message, _ = failure_of([wait_flag(On.MTE2, On.V), set_flag(On.V, On.S), wait_flag(On.V, On.S)])
    assert "pipe V waits for flag MTE2 -> V" in message


def test_cores_that_wait_for_each_other_are_all_named() -> None:
    message, _ = failure_of(
        [wait_core(1), signal(On.S, 2)],
        [scalar(1), wait_core(2), signal(On.S, 1)],
        kinds=(CoreType.AIC, CoreType.AIV),
    )
    cube, vector_core = message.removeprefix("deadlock: ").split("; ")
    assert cube.startswith("core0.cubecore0 waits for")
    assert "flag 1 " in cube
    assert cube.endswith("at op:1")
    assert vector_core.startswith("core0.veccore0 waits for")
    assert "flag 2 " in vector_core
    assert vector_core.endswith("at op:2")


def test_flags_between_other_pipes_and_events_do_not_meet() -> None:
    message, _ = failure_of([set_flag(On.MTE2, On.V, 1), wait_flag(On.MTE2, On.V, 0), vector(1)])
    assert "event 0, which nothing sets" in message
    message, _ = failure_of([set_flag(On.MTE2, On.V), wait_flag(On.MTE2, On.MTE3), vector(1)])
    assert "pipe MTE3 waits for flag MTE2 -> MTE3" in message


def test_a_flag_that_nobody_waits_for_is_reported() -> None:
    assert len(run([set_flag(On.V, On.MTE3, 5)]).findings) == 1
    assert not run([set_flag(On.V, On.MTE3, 5), wait_flag(On.V, On.MTE3, 5)]).findings


def test_a_chip_without_a_clock_or_without_a_source_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "chip.toml"
    path.write_text('name = "X"\nbase = "a2a3"\n')
    with pytest.raises(InputError, match=r"no clock\.mhz, chip\.cube_cores"):
        load_chip(str(path))
    path = tmp_path / "other.toml"
    path.write_text('name = "X"\nbase = "a2a3"\n[value]\n"clock.mhz" = { value = 1, kind = "guess" }\n')
    with pytest.raises(InputError, match=r"clock\.mhz needs a kind"):
        load_chip(str(path))
    with pytest.raises(InputError, match="cannot be read"):
        load_chip(str(tmp_path / "absent.toml"))


def test_a_flag_that_costs_nothing_to_set_is_set_all_the_same(tmp_path: Path) -> None:
    chip = tmp_path / "free_flags.toml"
    text = CHIP.read_text(encoding="utf-8")
    free = text.replace('"flag.set" = { value = 3,', '"flag.set" = { value = 0,')
    assert free != text
    chip.write_text(free, encoding="utf-8")
    program = [vector(0), set_flag(On.V, On.MTE3, 0), wait_flag(On.V, On.MTE3, 0), vector(10)]
    done = run_program(program, options=EmbeddedOptions(soc_version=str(chip)))
    found = times(done)
    assert found[1][0] <= found[1][1] <= found[2][1]
