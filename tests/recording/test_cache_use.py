"""What transfers asked of L2: told of each, and the same in sum as the run says."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from insight_trace.errors import InputError
from insight_trace.model import Confidence, Launch, MemoryUse, Trace
from insight_trace.outcome import Simulation
from insight_trace.recording import cache_use, empty, open_recording, save
from insight_trace.recording.cache_use import REQUEST
from insight_trace.replay.pipeline import make_trace, recording_of
from insight_trace.simulate.embedded.op_script import run_op
from insight_trace.simulate.embedded.program import On, Step, barrier, run_program, transfer
from insight_trace.simulate.embedded.simulator import EmbeddedOptions
from insight_trace.trace.stats import stats
from insight_trace.trace.text import stats_data, stats_text
from tests.simulate.op_harness import glob, tile

KB = 1024


def run(*programs: list[Step], **options: object) -> Simulation:
    done = run_program(*programs, options=EmbeddedOptions(**options))  # type: ignore[arg-type]
    assert done.failure is None, done.failure
    return done


def test_a_transfer_tells_its_requests_and_what_was_missing() -> None:
    again = [
        transfer("MOV_OUT_TO_UB", 4 * KB),
        barrier(On.MTE2),
        transfer("MOV_OUT_TO_UB", 8 * KB),
        transfer("MOV_UB_TO_OUT", 32, offset=64 * KB),
    ]
    use = cache_use(run(again, l2="cold").instructions)
    assert use is not None
    assert use.asked.tolist() == [32, 64, 1]
    assert use.missed.tolist() == [32, 32, 1]
    assert use.hits.tolist() == [0, 32, 0]
    assert use.writes.tolist() == [False, False, True]
    warm = cache_use(run(again, l2="warm").instructions)
    assert warm is not None
    assert not warm.missed.any()


def test_a_trace_of_others_does_not_say() -> None:
    assert cache_use(empty()) is None


PIECES = st.lists(
    st.tuples(st.integers(0, 200), st.integers(1, 6000), st.integers(1, 4), st.booleans()),
    min_size=1,
    max_size=12,
)


@settings(max_examples=15, deadline=None)
@given(st.lists(PIECES, min_size=1, max_size=3))
def test_hits_and_misses_of_all_transfers_are_those_of_the_run(programs) -> None:
    steps = [
        [
            transfer(
                "MOV_UB_TO_OUT" if write else "MOV_OUT_TO_UB",
                32 * (size // 32 + 1),
                bursts,
                offset=32 * place,
            )
            for place, size, bursts, write in pieces
        ]
        for pieces in programs
    ]
    done = run(*steps, l2="cold")
    use = cache_use(done.instructions)
    assert use is not None
    assert done.memory is not None
    assert (use.hits >= 0).all()
    assert (use.missed >= 0).all()
    assert len(use.rows) == sum(map(len, steps))
    assert REQUEST * int(use.asked.sum()) == done.memory.asked
    assert REQUEST * int(use.hits.sum()) == done.memory.hits
    reads = ~use.writes
    assert REQUEST * int(use.missed[reads].sum()) <= done.memory.fetched


def test_a_recording_keeps_launch_memory_and_interval(tmp_path) -> None:
    done = run([transfer("MOV_OUT_TO_UB", 64 * KB)] * 3, l2="cold", launch="first")
    trace = make_trace(done)
    save(recording_of(done, trace), tmp_path / "recording")
    read = open_recording(tmp_path).trace
    assert (read.launch, read.memory, read.confidence) == (done.launch, done.memory, trace.confidence)
    assert read.confidence is not None
    assert read.confidence.low < done.cycles < read.confidence.high
    header = tmp_path / "recording" / "recording.json"
    text = header.read_text()
    header.write_text(text.replace('"waves":1', '"waves":"many"'))
    with pytest.raises(InputError, match="Launch"):
        open_recording(tmp_path)


def test_figures_say_what_l2_had_of_every_path_and_what_is_around_the_kernel() -> None:
    steps = [transfer("MOV_OUT_TO_UB", 64 * KB), barrier(On.MTE2), transfer("MOV_OUT_TO_UB", 64 * KB)]
    trace = make_trace(run([*steps, transfer("MOV_UB_TO_OUT", 32 * KB)], l2="cold", launch="first"))
    figures = stats(trace)
    paths = {item.path: (item.requests, item.missed) for item in figures.traffic}
    assert paths == {"GM_TO_UB": (1024, 512), "UB_TO_GM": (256, 0)}
    data = stats_data(trace, figures, ())
    assert data["memory"]["hits"] == 64 * KB + 32 * KB
    assert data["launch"]["in_kernel"] == figures.cycles
    assert data["launch"]["around"] == data["launch"]["before"] + data["launch"]["after"] > 0
    assert data["expected_cycles"]["low"] < figures.cycles < data["expected_cycles"]["high"]
    text = stats_text(figures, ())
    for line in ("expect     ", "us in the kernel · ", "MB asked of L2, 60% found", "50% of it in L2"):
        assert line in text
    foreign = replace(trace, launch=None, memory=None, confidence=None)
    assert stats_data(foreign, stats(foreign), ())["launch"] is None


def test_what_is_around_a_kernel_is_told_apart_from_it() -> None:
    """On paper: four cores, six blocks; two cores have a second one and the last ends at 230."""
    launch = Launch(500, 20, 2, (0, 0, 0, 0, 100, 110), (90, 100, 160, 170, 200, 230))
    # the four cores have nothing left to do at 160, 170, 200, 230
    assert launch.waits_for_last == 230 - (160 + 170 + 200 + 230) / 4
    trace = Trace(run([transfer("MOV_OUT_TO_UB", 32)]).instructions, 1000.0, launch=launch)
    trace = replace(trace, memory=MemoryUse(1000, 250, 750, 0), confidence=Confidence(100, 0.25, "vector"))
    text = stats_text(stats(trace), ())
    assert "0.500 before it and 0.020 after it" in text
    assert "2 waves of blocks" in text
    assert "cores wait 0.040 us for the last one" in text
    assert "expect     80 to 125 cycles" in text
    assert np.isclose(launch.around, 520)


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_rows_that_lie_apart_fetch_every_sector_that_they_touch_and_take_longer(target):
    def load(step):
        rows = glob(np.zeros(16 * step, np.float32), (16, 8), (step, 1))
        options = EmbeddedOptions(target=target, l2="cold")
        done = run_op("TLOAD", [tile(np.zeros((16, 8), np.float32)), rows], options).simulation
        assert done.failure is None, done.failure
        return done

    dense, apart = load(8), load(128)  # rows of 32 bytes, one behind the other or 512 bytes apart
    assert (dense.memory.fetched, apart.memory.fetched) == (512, 16 * 128)
    assert apart.cycles > dense.cycles
