"""Ranges that a kernel's author marked: in the recording, in the figures, in Insight, and for nothing."""

import json
from pathlib import Path

import numpy as np
import pytest

from insight_trace.insight import open_trace, validate, write_insight_directory
from insight_trace.model import CoreType, Kernel, Pipe, Trace
from insight_trace.recording.kinds import Kind, kinds
from insight_trace.recording.store import open_recording
from insight_trace.recording.user_marks import marked_ranges
from insight_trace.replay.pipeline import make_trace, recording_of
from insight_trace.trace.advice import advise
from insight_trace.trace.stats import stats
from insight_trace.trace.text import stats_data, stats_text
from tests.simulate.dispatching import KERNELS, kernel, run
from tests.synthetic_trace import TraceBuilder

ROUNDS = 3


def _simulation(source: str | Path, **options):
    slots = [np.zeros((64, 64), np.float32), np.zeros((64, 64), np.float32), ROUNDS]
    done = run([kernel(source, CoreType.AIV)], slots, [1], **options)
    assert done.failure is None, done.failure
    return done


@pytest.fixture(scope="module", params=["a2a3", "a5"])
def simulation(request):
    return _simulation("marked.cpp", target=request.param)


def test_nested_and_repeated_ranges_cover_what_is_in_them(simulation):
    stream = simulation.instructions
    ranges = marked_ranges(stream)
    names = [each.name for each in ranges]
    assert names == ["Mark 0x1", "Mark 0x2", "Mark 0x3"] * ROUNDS + ["Mark 0x4"]
    for each in ranges:
        assert stream.pipe[each.start] == Pipe.USERMARK
        assert stream.names[stream.name[each.start]] == each.name
        inside = np.arange(each.start + 1, each.stop)
        work = inside[np.isin(kinds(stream)[inside], (Kind.WORK, Kind.SET, Kind.WAIT))]
        assert stream.start[each.start] == stream.start[work].min()
        assert stream.end[each.start] == stream.end[work].max()
    stamps = [row for row in range(len(stream)) if stream.names[stream.name[row]] == "MarkStamp13"]
    assert len(stamps) == 1


def test_phases_add_up_to_the_total(simulation):
    trace = Trace(simulation.instructions, simulation.mhz, simulation.soc_version)
    figures = stats(trace)
    found = {phase.name: phase for phase in figures.phases}
    assert list(found) == ["Mark 0x1", "Mark 0x2", "Mark 0x3", "Mark 0x4", "outside"]
    assert sum(phase.cycles for phase in figures.phases) == figures.cycles
    assert [phase.entered for phase in figures.phases] == [ROUNDS] * 3 + [1, 0]
    assert found["Mark 0x2"].cycles > found["Mark 0x3"].cycles > 0  # loads take longer than additions
    assert sum(phase.instructions for phase in figures.phases) == len(trace.instructions)
    advice = advise(trace, figures)
    assert "phases     Mark 0x1:" in stats_text(figures, advice)
    assert sum(phase["cycles"] for phase in stats_data(trace, figures, advice)["phases"]) == figures.cycles


def test_marks_cost_nothing(simulation, tmp_path):
    target = "a5" if simulation.soc_version.startswith("Ascend950") else "a2a3"
    quiet = tmp_path / "quiet.cpp"
    quiet.write_text(f"#define QUIET\n#line 1\n{(KERNELS / 'marked.cpp').read_text()}")
    without = _simulation(quiet, target=target)
    assert without.cycles == simulation.cycles
    assert marked_ranges(without.instructions) == []
    assert stats(Trace(without.instructions, without.mhz, without.soc_version)).phases == ()


def test_marks_cost_on_request_what_a_device_issues_for_them(simulation):
    """A write of the scalar unit and a NOP for each pipe, at either end."""
    target = "a5" if simulation.soc_version.startswith("Ascend950") else "a2a3"
    paid = _simulation("marked.cpp", target=target, mark_cost=True)
    ends = 2 * (3 * ROUNDS + 1) + 1  # the last start has no stop
    columns = paid.instructions
    spent = np.flatnonzero(columns.name == columns.names.index("NOP"))
    assert len(spent) == len(columns) - len(simulation.instructions) == ends * (1 + 3)
    assert set(columns.pipe[spent].tolist()) == {Pipe.SCALAR}
    assert set((columns.end - columns.start)[spent].tolist()) == {1}
    assert paid.cycles > simulation.cycles
    assert [each.name for each in marked_ranges(paid.instructions)] == [
        each.name for each in marked_ranges(simulation.instructions)
    ]
    figures = stats(Trace(paid.instructions, paid.mhz, paid.soc_version))
    assert sum(phase.cycles for phase in figures.phases) == figures.cycles


def test_marks_come_back_from_the_recording_and_stand_in_insight(simulation, tmp_path):
    trace = make_trace(simulation)
    kernels = [Kernel("marked", KERNELS / "marked.cpp", CoreType.AIV)]
    directory = write_insight_directory(trace, tmp_path, recording=recording_of(simulation, trace, kernels))
    assert validate(directory) == []
    again = open_recording(directory.parent)
    assert marked_ranges(again.instructions) == marked_ranges(trace.instructions)
    assert stats(again.trace).phases == stats(trace).phases
    events = json.loads((directory / "trace.json").read_text())["traceEvents"]
    marks = [event for event in events if event["ph"] == "X" and event["tid"] == "USERMARK"]
    ranges = [event for event in marks if event["name"].startswith("Mark 0x")]
    assert [event["name"] for event in ranges] == [each.name for each in marked_ranges(trace.instructions)]
    for event in ranges:
        # as the vendor's exporter writes them: no id, the lines of both ends
        assert set(event) == {"args", "cname", "dur", "name", "ph", "pid", "tid", "ts"}
        assert set(event["args"]) == {"trace_start", "trace_stop"}
        assert "marked.cpp:" in event["args"]["trace_start"]
        assert event["cname"] == "rail_load"
    read = open_trace(directory / "visualize_data.bin")
    assert sum(read.instructions.pipe == Pipe.USERMARK) == len(marks)


def test_marks_of_a_timeline_that_others_wrote_are_phases_by_their_time():
    builder = TraceBuilder()
    builder.add(Pipe.USERMARK, "Mark 0x1", 100, 500)
    builder.add(Pipe.USERMARK, "Mark 0x2", 200, 300)
    for begin in range(0, 600, 100):
        builder.add(Pipe.VECTOR, "VADD", begin, begin + 100)
    figures = stats(builder.build())
    found = {phase.name: (phase.entered, phase.cycles) for phase in figures.phases}
    assert found == {"Mark 0x1": (1, 300), "Mark 0x2": (1, 100), "outside": (0, 200)}
    assert figures.cycles == 600


def test_the_vendors_marks_are_phases_that_add_up(shared_data):
    figures = stats(open_trace(shared_data / "camodel" / "910B" / "expected_simulator"))
    assert [(phase.name, phase.entered) for phase in figures.phases] == [("Mark 0x1", 2), ("outside", 0)]
    assert sum(phase.cycles for phase in figures.phases) == figures.cycles


def test_a_mark_has_the_form_of_the_vendors_own(simulation, shared_data, tmp_path):
    """The same keys in the same order with the same kinds, in the timeline and in the core's own trace."""
    directory = write_insight_directory(make_trace(simulation), tmp_path)
    theirs = shared_data / "camodel" / "910B" / "expected_simulator"
    for ours, expected in (
        (directory / "trace.json", theirs / "trace.json"),
        (directory / "core0.veccore0" / "trace.json", theirs / "core0.veccore0" / "trace.json"),
    ):
        mine, vendors = (
            next(
                event
                for event in json.loads(path.read_text())["traceEvents"]
                if event["name"].startswith("Mark 0x") and event["ph"] == "X"
            )
            for path in (ours, expected)
        )
        assert list(mine) == list(vendors)
        assert list(mine["args"]) == list(vendors["args"])
        for key in ("cname", "name", "ph", "pid", "tid"):
            assert mine[key] == vendors[key]
        assert {key: type(value) for key, value in mine.items()} == {
            key: type(value) for key, value in vendors.items()
        }
