"""What cores share: the rate of global memory, from HBM or from L2, and what alignment does to it."""

import pytest

from insight_trace.chips import load_chip
from insight_trace.model import Simulation, Stall
from insight_trace.simulate.embedded.program import run_program, time_instruction, transfer
from insight_trace.simulate.embedded.simulator import EmbeddedOptions

SIZE = 65536


def together(cores: int, **options: bool) -> Simulation:
    load = transfer("MOV_OUT_TO_UB", SIZE)
    return run_program(*[[load]] * cores, options=EmbeddedOptions(**options))  # type: ignore[arg-type]


def cycles(done: Simulation) -> int:
    assert done.failure is None
    return int(done.instructions.end[0] - done.instructions.start[0])


def test_one_core_alone_is_not_held_back_by_the_chip() -> None:
    assert cycles(together(1)) == 746
    assert cycles(together(1, l2_hit=True)) == 746


@pytest.mark.parametrize(("l2_hit", "parameter"), [(False, "gm.chip_rate"), (True, "l2.chip_rate")])
def test_all_cores_together_get_what_the_chip_gives(l2_hit: bool, parameter: str) -> None:
    done = together(48, l2_hit=l2_hit)
    assert cycles(done) == pytest.approx(SIZE * 48 / load_chip().value(parameter), rel=0.01)
    assert Stall(int(done.instructions.stall[0])) is Stall.BANDWIDTH


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
