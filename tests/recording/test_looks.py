"""What looks say of a replayed run is what the simulator's own columns say, to the cycle."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import asdict

from insight_trace.errors import RequestError
from insight_trace.insight.reader import open_trace
from insight_trace.insight.throughput import throughput_counters
from insight_trace.insight.writer import write_insight_directory
from insight_trace.model import Trace
from insight_trace.recording.store import Recording, save
from insight_trace.recording.stream import COLUMNS
from insight_trace.replay.pipeline import recording_of
from insight_trace.simulate.embedded.program import (
    On,
    barrier,
    run_program,
    set_flag,
    transfer,
    vector,
    wait_flag,
)
from insight_trace.trace.clean import clean
from insight_trace.trace.compare import compare
from insight_trace.trace.stats import stats
from tests.synthetic_trace import softmax_trace

PAIRS = [(On.MTE2, On.V), (On.V, On.MTE3), (On.MTE3, On.MTE2), (On.V, On.MTE2), (On.MTE2, On.MTE3)]


@st.composite
def programs(draw):
    """Loads, arithmetic and stores, with flags that are always set before they are waited for."""
    steps = []
    for _ in range(draw(st.integers(1, 12))):
        kind = draw(st.sampled_from(["load", "store", "vector", "flags", "barrier"]))
        if kind == "load":
            steps.append(transfer("MOV_OUT_TO_UB_ALIGN", draw(st.integers(1, 64)) * 32))
        elif kind == "store":
            steps.append(transfer("MOV_UB_TO_OUT_ALIGN", draw(st.integers(1, 64)) * 32))
        elif kind == "vector":
            steps.append(vector(draw(st.integers(1, 40)), draw(st.sampled_from(["VADD", "VEXP", "VMUL"]))))
        elif kind == "barrier":
            steps.append(barrier(draw(st.sampled_from([On.V, On.ALL]))))
        else:
            source, target = draw(st.sampled_from(PAIRS))
            event = draw(st.integers(0, 3))
            steps += [set_flag(source, target, event), wait_flag(source, target, event)]
    return steps


def plain(figures):
    """Statistics without the columns that hold arrays."""
    facts = asdict(figures)
    path = facts.pop("path")
    return facts, [column.tolist() for column in (path.row, path.begin, path.end, path.idle)]


@settings(max_examples=12)
@given(st.lists(programs(), min_size=1, max_size=2))
def test_every_look_at_a_replay_gives_the_simulators_own_figures(tmp_path_factory, lists):
    simulation = run_program(*lists)
    assert simulation.failure is None, simulation.failure
    counters = throughput_counters(simulation.instructions, simulation.mhz)
    own = Trace(simulation.instructions, simulation.mhz, simulation.soc_version, {}, counters)
    folder = tmp_path_factory.mktemp("run")
    write_insight_directory(own, folder, recording=recording_of(simulation, own))
    read = open_trace(folder)
    assert read.origin == "recording"
    for name in COLUMNS:
        assert np.array_equal(getattr(own.instructions, name), getattr(read.instructions, name)), name
    assert np.array_equal(own.instructions.operands.times, read.instructions.operands.times)
    assert plain(stats(own)) == plain(stats(read))
    left, right = clean(own), clean(read)
    assert left.rows.tolist() == right.rows.tolist()
    assert left.dropped == right.dropped
    same = compare(own, read)
    assert same.total.before == same.total.after == stats(own).cycles
    assert (same.added, same.removed, same.moved) == ((), (), ())


def test_a_recording_of_something_else_is_no_recording(tmp_path):
    with pytest.raises(RequestError, match="without operands"):
        save(Recording(softmax_trace()), tmp_path / "recording")
