"""Synchronisation that orders nothing is named with its price, and leaving it out changes nothing but the time."""

from pathlib import Path

import numpy as np
import pytest

from insight_trace import simulate
from insight_trace.__main__ import main
from insight_trace.outcome import Simulation
from insight_trace.recording.store import save
from insight_trace.simulate.embedded.checking import findings_of
from insight_trace.simulate.embedded.runner import RunnerResult
from tests.simulate.kernel_text import write_kernel
from tests.synthetic_recording import mix_recording

# Three slots in flight: load, add in place, store. The flags order everything; the two barriers order nothing more,
# as when ids run out and a planner falls back on them.
PIPELINE = """\
    Line in(data_in(args, 0)), out(data_in(args, 1));
    constexpr int kTurns = 24;
    for (int i = 0; i < kTurns; ++i) {
        const event_t slot = static_cast<event_t>(i % 3);
        LineTile tile;
        TASSIGN(tile, 0x1000 * (i % 3));
        Line from(data_in(args, 0) + 64 * i), to(data_in(args, 1) + 64 * i);
        if (i >= 3) wait_flag(PIPE_MTE3, PIPE_MTE2, slot);
        TLOAD(tile, from);
        set_flag(PIPE_MTE2, PIPE_V, slot);
        wait_flag(PIPE_MTE2, PIPE_V, slot);
BARRIER
        TADDS(tile, tile, 1.0f);
        set_flag(PIPE_V, PIPE_MTE3, slot);
        wait_flag(PIPE_V, PIPE_MTE3, slot);
BARRIER
        TSTORE(to, tile);
        if (i + 3 < kTurns) set_flag(PIPE_MTE3, PIPE_MTE2, slot);
    }"""


def _run(folder: Path, body: str, name: str, **options) -> Simulation:
    source = write_kernel(folder, body, name=name)
    values = {0: np.arange(24 * 64, dtype=np.float32), 1: np.zeros(24 * 64, np.float32)}
    result = simulate(source, values, core_type="aiv", **options)
    assert result.failure is None, str(result.failure)
    return result


@pytest.fixture(scope="module")
def slow(tmp_path_factory) -> tuple[Path, Simulation]:
    folder = tmp_path_factory.mktemp("redundant")
    return folder, _run(
        folder, PIPELINE.replace("BARRIER", "        pipe_barrier(PIPE_ALL);"), "slow.cpp", check=True
    )


def test_barriers_that_order_nothing_are_named_with_their_price(slow):
    _, run = slow
    idle = [finding for finding in run.findings if finding.category == "redundant-sync"]
    barriers = [finding for finding in idle if finding.places[0].instruction == "BAR"]
    assert len(barriers) == 2, [str(finding) for finding in run.findings]
    assert all(finding.count == 24 and finding.cycles is not None for finding in barriers)


def test_leaving_out_what_is_redundant_brings_the_cycles_back(slow):
    folder, run = slow
    best = _run(folder, PIPELINE.replace("BARRIER\n", ""), "best.cpp")
    lines = tuple(
        (place.file, place.line)
        for finding in run.findings
        if finding.category == "redundant-sync"
        for place in finding.places
    )
    values = {0: np.arange(24 * 64, dtype=np.float32), 1: np.zeros(24 * 64, np.float32)}
    without = simulate(folder / "slow.cpp", values, core_type="aiv", left_out=lines, check=True)
    possible, gained = run.cycles - best.cycles, run.cycles - without.cycles
    assert possible > 0
    assert gained >= 0.9 * possible
    assert without.outputs[1].tobytes() == run.outputs[1].tobytes()
    assert not [f for f in without.findings if f.category.startswith("race")], [
        str(f) for f in without.findings
    ]


def test_the_checker_changes_neither_instructions_nor_cycles(slow):
    folder, run = slow
    plain = _run(folder, PIPELINE.replace("BARRIER", "        pipe_barrier(PIPE_ALL);"), "slow.cpp")
    for column in ("core", "pipe", "name", "start", "end", "issue", "stall"):
        one, other = getattr(plain.instructions, column), getattr(run.instructions, column)
        assert np.array_equal(one, other), column
    assert plain.outputs[1].tobytes() == run.outputs[1].tobytes()


@pytest.mark.parametrize(("cycles", "said"), [(5000, True), (0, False), (None, False)])
def test_stats_say_what_idle_synchronisation_costs(tmp_path, capsys, cycles, said):
    place = {"file": "/src/add.cpp", "line": 7, "instruction": "BAR", "pipe": "V", "core": "", "row": -1}
    note = {"category": "redundant-sync", "severity": "note", "message": "idle", "cycles": cycles}
    save(
        mix_recording(1, 3, findings=({**note, "places": [place]}, {**note, "places": []})), tmp_path / "kept"
    )
    assert main(["stats", str(tmp_path / "kept")]) == 0
    sentence = "the barrier at add.cpp:7 orders nothing for these inputs and costs 5,000 cycles"
    assert (sentence in capsys.readouterr().out) is said


def test_a_long_run_says_how_much_of_its_synchronisation_was_tried():
    instructions = mix_recording(1, 3).instructions
    (note,) = findings_of(RunnerResult(tried=(4, 9)), instructions, ())
    assert note.category == "sync-untried"
    assert note.message.startswith("4 of 9 flags and barriers were tried")
    assert findings_of(RunnerResult(tried=(9, 9)), instructions, ()) == ()
