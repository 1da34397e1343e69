"""Numbers that can be checked by hand, and advice that follows from them."""

import json

import pytest
from hypothesis import given

from insight_trace.chips import roofs_of
from insight_trace.model import Pipe
from insight_trace.recording.busy import pipes
from insight_trace.trace.advice import advise
from insight_trace.trace.bottleneck import focus_of
from insight_trace.trace.stats import stats
from insight_trace.trace.text import stats_data, stats_text
from tests.synthetic_trace import TraceBuilder, flag_detail, matmul_trace, softmax_trace
from tests.trace_strategies import traces


def _small():
    """MTE2 works 0..100, VECTOR waits 20..101 and works 110..150."""
    builder = TraceBuilder()
    builder.add(Pipe.MTE2, "MOV_OUT_TO_UB", 0, 100, moved=2048, stack="k.cpp:5")
    row = builder.add(Pipe.MTE2, "SET_FLAG", 100, 101, detail=flag_detail("MTE2", "VEC", 2), stack="k.cpp:6")
    builder.add(
        Pipe.VECTOR, "WAIT_FLAG", 20, 101, detail=flag_detail("MTE2", "VEC", 2), partner=row, stack="k.cpp:7"
    )
    builder.add(Pipe.VECTOR, "VADD", 110, 150, stack="k.cpp:8")
    return builder.build()


def test_busy_waiting_and_idle_of_a_pipe():
    figures = stats(_small())
    load, vector = figures.pipe("core0.veccore0", "MTE2"), figures.pipe("core0.veccore0", "VECTOR")
    assert (load.busy, load.waiting, load.idle) == (100, 0, 50)
    assert (vector.busy, vector.waiting, vector.idle) == (40, 81, 29)
    assert figures.cycles == 150


def test_a_wait_names_the_pipe_the_event_and_the_line():
    (wait,) = stats(_small()).waits
    assert (wait.pipe, wait.waits_for, wait.event, wait.frame, wait.cycles) == (
        "VECTOR",
        "MTE2",
        "2",
        "k.cpp:7",
        81,
    )


def test_time_under_running_work_is_not_waiting():
    builder = TraceBuilder()
    builder.add(Pipe.MTE2, "MOV_A", 0, 100)
    builder.add(Pipe.MTE2, "WAIT_FLAG", 50, 120, detail=flag_detail("VEC", "MTE2", 0))
    (pipe,) = pipes(builder.build())
    assert (pipe.busy, pipe.waiting) == (100, 20)
    assert stats(builder.build()).waits[0].cycles == 20


@given(traces())
def test_of_every_pipe_busy_waiting_and_idle_make_the_cycles_of_its_core(trace):
    figures = stats(trace)
    cycles = {core.core: core.cycles for core in figures.cores}
    for pipe in figures.pipes:
        assert min(pipe.busy, pipe.waiting, pipe.idle) >= 0
        assert pipe.busy + pipe.waiting + pipe.idle == cycles[pipe.core]
    for core in figures.cores:
        assert 0 <= core.nothing <= core.cycles
        assert 0 <= core.scalar_alone <= core.cycles


def test_advice_on_a_run_whose_path_lies_on_a_core_that_did_nothing_is_about_the_one_that_worked():
    builder = TraceBuilder()
    builder.add(Pipe.CUBE, "MMAD", 0, 10, core="core0.cubecore0")
    builder.add(Pipe.VECTOR, "VADD", 100, 100, core="core0.veccore0")
    trace = builder.build()
    figures = stats(trace)
    assert trace.instructions.cores[trace.instructions.core[figures.path.row[-1]]] == "core0.veccore0"
    focus = focus_of(trace, figures)
    assert focus is not None
    assert focus.core.core == "core0.cubecore0"


@given(traces())
def test_any_trace_has_figures_a_text_and_plain_data(trace):
    figures = stats(trace)
    advice = advise(trace, figures)
    assert stats_text(figures, advice)
    json.dumps(stats_data(trace, figures, advice))
    for item in advice:
        assert 0 <= item.saves <= figures.cycles


def test_traffic_is_bytes_over_the_time_in_which_something_moved():
    (item,) = stats(_small()).traffic
    assert (item.path, item.bytes, item.transfers, item.cycles) == ("GM_TO_UB", 2048, 1, 100)
    assert item.gb_per_s == pytest.approx(2048 * 1850e6 / 100 / 1e9)
    assert item.roof_gb_per_s == roofs_of("Ascend910B1").bandwidth["GM_TO_UB"]


def test_cube_work_stands_against_the_cube_roof():
    (item,) = stats(matmul_trace(6)).arithmetic
    assert item.unit == "cube"
    assert item.operations == 6 * 2 * 128 * 64 * 256
    assert item.roof_giga_per_s == pytest.approx(8192 * 1.85)
    assert item.giga_per_s < item.reachable_giga_per_s


def test_vector_work_counts_repeats_lanes_and_their_use():
    (item,) = stats(softmax_trace(1, cores=1)).arithmetic
    assert item.operations == 64 * 64 * (1 + 1 + 0.5)


def test_hot_lines_carry_their_text():
    lines = {hot.frame: hot for hot in stats(softmax_trace(2, cores=1)).hot_lines}
    assert lines["kernels/aiv_softmax_step.cpp:14"].what == "TEXP(y, y);"


def test_one_buffer_is_answered_with_a_second_one_first():
    trace = softmax_trace(8, cores=1)
    first = advise(trace, stats(trace))[0]
    assert first.topic == "buffer"
    assert first.simulated
    assert "MTE2 waits 46 % for VECTOR on event 0" in first.text
    assert "a second buffer saves" in first.text
    assert first.frame == "kernels/aiv_softmax_step.cpp:9"


def test_following_the_first_advice_brings_what_it_promises():
    before, after = softmax_trace(40, cores=1), softmax_trace(40, cores=1, buffers=2)
    promise = advise(before, stats(before))[0].saves
    gained = stats(before).cycles - stats(after).cycles
    assert promise == pytest.approx(gained, rel=0.25)


def test_bank_conflicts_are_named_with_their_line_and_vanish_with_them():
    trace = softmax_trace(8, cores=1, conflict=1)
    bank = next(item for item in advise(trace, stats(trace)) if item.topic == "bank")
    assert bank.frame.endswith(":15")
    assert bank.saves == 8 * 64
    trace = softmax_trace(8, cores=1, conflict=0)
    assert not [item for item in advise(trace, stats(trace)) if item.topic == "bank"]


def _waiting(pipe, source_pipe, source, target, *, other_core=False):
    builder = TraceBuilder()
    core = "core0.cubecore0" if other_core else "core0.veccore0"
    builder.add(source_pipe, "WORK", 0, 500, core=core)
    row = builder.add(source_pipe, "SET_FLAG", 500, 501, core=core, detail=flag_detail(source, target, 0))
    builder.add(
        pipe, "WAIT_FLAG", 10, 502, partner=row, detail=flag_detail(source, target, 0), stack="k.cpp:4"
    )
    builder.add(pipe, "WORK", 502, 800)
    builder.add(Pipe.VECTOR, "VADD", 800, 810)
    trace = builder.build()
    return "\n".join(advice.text for advice in advise(trace, stats(trace)))


def test_a_waiting_scalar_unit_a_late_one_and_a_late_core_get_advice_of_their_own():
    assert "nothing is issued meanwhile" in _waiting(Pipe.SCALAR, Pipe.MTE2, "MTE2", "SCALAR")
    assert "the scalar unit is late" in _waiting(Pipe.MTE2, Pipe.SCALAR, "SCALAR", "MTE2")
    text = _waiting(Pipe.VECTOR, Pipe.FIXP, "FIXP", "VEC", other_core=True)
    assert text.startswith("FIXPIPE of the cube core works 100 % of the time")
    assert "VECTOR of core0.veccore0 waits 62 % for FIXPIPE of core0.cubecore0 at k.cpp:4" in text


def test_a_kernel_that_waits_for_its_own_end_gets_no_advice_about_it():
    builder = TraceBuilder()
    builder.add(Pipe.SCALAR, "ADD", 0, 10)
    builder.add(Pipe.MTE3, "MOV_UB_TO_OUT", 10, 500)
    row = builder.add(Pipe.MTE3, "SET_FLAG", 500, 501, detail=flag_detail("MTE3", "SCALAR", 7))
    builder.add(Pipe.SCALAR, "WAIT_FLAG", 11, 502, partner=row, detail=flag_detail("MTE3", "SCALAR", 7))
    trace = builder.build()
    figures = stats(trace)
    assert figures.waits[0].last
    assert not [item for item in advise(trace, figures) if item.topic == "wait"]
    assert ", for the end" in stats_text(figures, ())


def test_time_at_a_barrier_asks_for_flags():
    builder = TraceBuilder()
    builder.add(Pipe.MTE2, "MOV", 0, 300)
    builder.add(Pipe.VECTOR, "BAR", 0, 300, stack="k.cpp:9")
    builder.add(Pipe.VECTOR, "VADD", 300, 600)
    trace = builder.build()
    advice = next(item for item in advise(trace, stats(trace)) if item.topic == "barrier")
    assert advice.text.startswith("VECTOR stands 50 % at a barrier at k.cpp:9: flags between the pipes")
    assert advice.saves == 300


def test_a_kernel_at_its_limit_is_told_so():
    builder = TraceBuilder()
    builder.add(Pipe.CUBE, "MMAD", 0, 1000, core="core0.cubecore0")
    trace = builder.build()
    (only,) = advise(trace, stats(trace))
    assert only.topic == "bound"
    assert "CUBE works 100 %" in only.text


def test_a_scalar_kernel_is_told_to_hoist():
    builder = TraceBuilder()
    for step in range(100):
        builder.add(Pipe.SCALAR, "ADD", step, step + 1)
    trace = builder.build()
    first = advise(trace, stats(trace))[0].text
    assert first.startswith("SCALAR works 100 % of the time")
    assert "fewer scalar instructions" in first


def test_an_empty_trace_says_that_nothing_ran():
    trace = TraceBuilder().build()
    assert "nothing ran" in stats_text(stats(trace), advise(trace, stats(trace)))


def test_a_chip_without_roofs_of_its_own_is_held_against_another_and_says_so():
    assert roofs_of("Ascend910B3").exact
    assert roofs_of("Ascend910B4-1").chip == "910B4"
    stand_in = roofs_of("Ascend910_9392")
    assert (stand_in.chip, stand_in.exact) == ("910B1", False)
    assert not roofs_of("").exact
