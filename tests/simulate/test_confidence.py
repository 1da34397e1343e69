"""How far a total can be trusted, and who says so."""

import json
from pathlib import Path

import pytest

from insight_trace.__main__ import main
from insight_trace.chips import load_chip
from insight_trace.model import CoreType, Trace
from insight_trace.simulate.embedded.confidence import MODEL_ERROR, confidence, kernel_kind, model_spread
from insight_trace.simulate.embedded.program import multiply, run_program, scalar, transfer, vector

EXAMPLE = Path(__file__).parents[2] / "examples" / "paged_attention" / "scene.py"


def test_a_total_lies_within_its_interval_which_has_a_kind() -> None:
    done = run_program([vector(64)] * 20)
    told = confidence(done, load_chip())
    assert told.low < done.cycles < told.high
    assert told.kind == "vector"
    assert "90 % interval" in told.text


def test_what_rests_on_estimates_is_told_with_a_wider_interval() -> None:
    measured = confidence(run_program([vector(64, "VADDS")] * 20), load_chip())
    estimated = confidence(run_program([vector(64, "VTRANSPOSE")] * 20), load_chip())
    assert estimated.spread > 1.5 * measured.spread


def test_kinds_of_kernels_have_the_errors_that_were_found_on_published_ones() -> None:
    cube = run_program([multiply(64, 64, 64)], kinds=[CoreType.AIC])
    assert kernel_kind(cube.instructions.cores) == "cube"
    assert kernel_kind(("core0.cubecore0", "core0.veccore0")) == "mix"
    assert (
        model_spread(["core0.veccore0"])
        <= model_spread(["core0.cubecore0"])
        < model_spread(["core0.cubecore0", "core0.veccore0"])
    )
    assert set(MODEL_ERROR) == {"cube", "vector", "mix"}
    assert confidence(cube, load_chip()).spread >= model_spread(["core0.cubecore0"])


def test_a_run_without_instructions_has_an_interval_too() -> None:
    assert confidence(run_program([]), load_chip()).spread > 0


def test_a_replay_tells_the_interval_the_launch_and_the_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = tmp_path / "dump"
    assert main(["capture", str(EXAMPLE), "--case", "CaseSmall1", "-o", str(dump)]) == 0
    command = ["replay", str(EXAMPLE), "--case", "CaseSmall1", "--func-id", "1", "--dump-dir", str(dump)]
    capsys.readouterr()
    assert main([*command, "-o", str(tmp_path / "a"), "--json", "--launch", "kernel"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["expected_cycles"]["low"] < told["cycles"] < told["expected_cycles"]["high"]
    assert told["launch"]["before"] == load_chip().value("launch.head")
    assert told["memory"]["hits"] + told["memory"]["fetched"] <= told["memory"]["asked"]
    assert main([*command, "-o", str(tmp_path / "b"), "--l2", "trace"]) == 0
    text = capsys.readouterr().out
    assert "expect     " in text
    assert "memory     " in text
    assert main([*command, "-o", str(tmp_path / "c"), "--l2", "warm", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cycles"] <= told["cycles"]


def test_a_comparison_says_when_a_difference_is_smaller_than_the_models_error() -> None:
    from insight_trace.replay.pipeline import make_trace
    from insight_trace.trace.compare import compare

    def trace(count: int) -> Trace:
        return make_trace(run_program([vector(64)] * count))

    near, far = compare(trace(100), trace(101)), compare(trace(100), trace(150))
    assert any("smaller than what totals of vector kernels are off" in note for note in near.notes)
    assert not far.notes
    assert not compare(trace(100), trace(100)).notes


def test_transfers_alone_are_trusted_as_their_numbers_are() -> None:
    done = run_program([transfer("MOV_OUT_TO_UB", 65536)] * 4)
    assert 0.03 < confidence(done, load_chip()).spread < 0.25


def test_a_run_says_what_of_it_no_published_kernel_has_tried_and_is_trusted_less() -> None:
    """Nearly all of it is done by the scalar unit."""
    plain = confidence(run_program([vector(200, "VADDS")] * 20), load_chip())
    scalars = confidence(run_program([scalar(200)] * 20), load_chip())
    assert plain.rests_on == ()
    assert "wider because" not in plain.text
    (why,) = scalars.rests_on
    assert "scalar unit" in why
    assert why in scalars.text
    assert scalars.spread > plain.spread
