"""How much of a run rests on estimates."""

import pytest

from insight_trace.chips import load_chip
from insight_trace.simulate.embedded.estimates import estimate_share
from insight_trace.simulate.embedded.program import On, barrier, run_program, scalar, vector
from tests.simulate.example_runs import run_example


def test_a_measured_instruction_rests_on_nothing() -> None:
    share = estimate_share(run_program([vector(64)]), load_chip())
    assert share.share == 0
    assert share.estimates == ()


def test_an_estimated_instruction_counts_with_its_whole_time() -> None:
    done = run_program([vector(20, "VMADDRELU"), vector(64)])  # 24 + 20 x 6; measured: 26 + 64
    share = estimate_share(done, load_chip())
    assert [(e.parameter, e.instructions, e.cycles) for e in share.estimates] == [
        ("vector.VMADDRELU.any", 1, 144)
    ]
    end = 1  # of the program
    assert share.share == pytest.approx(144 / (144 + 90 + end))
    assert share.text.endswith("of the time rests on estimates")


def test_a_barrier_counts_with_its_own_cost_not_with_what_it_waits_for() -> None:
    share = estimate_share(run_program([vector(255), barrier(On.V), scalar(5)]), load_chip())
    assert [(e.parameter, e.cycles) for e in share.estimates] == [("barrier.cost", 1)]


def test_an_example_says_what_it_rests_on() -> None:
    share = estimate_share(run_example("chain add"), load_chip())
    assert 0 < share.share < 0.05
    assert {"flag.latency"} <= {e.parameter for e in share.estimates}
    assert all(e.source for e in share.estimates)
