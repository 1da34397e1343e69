"""Two traces: what changed, and only that."""

import json

from hypothesis import given

from insight_trace.model import Pipe
from insight_trace.trace.compare import compare, match
from insight_trace.trace.compare_text import comparison_data, comparison_text
from tests.synthetic_trace import TraceBuilder, matmul_trace, softmax_trace
from tests.trace_strategies import traces


@given(traces())
def test_a_trace_equals_itself(trace):
    result = compare(trace, trace)
    assert result.total.delta == 0
    assert len(result.matches.added) == len(result.matches.removed) == 0
    assert not result.matches.moved.any()
    assert all(change.delta == 0 for change in (*result.pipes, *result.instructions, *result.lines))
    assert result.fidelity.mean_error == 0


@given(traces(), traces())
def test_added_and_removed_and_matched_make_both_traces(before, after):
    result = compare(before, after)
    counted = [
        len(trace.instructions)
        - int(sum(p in (Pipe.CACHEMISS, Pipe.USERMARK) for p in trace.instructions.pipe))
        for trace in (before, after)
    ]
    named = [
        sum(
            trace.instructions.names[n] == "BAR" and p in (Pipe.CACHEMISS, Pipe.USERMARK)
            for n, p in zip(trace.instructions.name, trace.instructions.pipe, strict=True)
        )
        for trace in (before, after)
    ]
    matches = result.matches
    assert len(matches.before) + len(matches.removed) == counted[0] + named[0]
    assert len(matches.after) + len(matches.added) == counted[1] + named[1]
    assert len(set(matches.before.tolist())) == len(matches.before)
    json.dumps(comparison_data(result), allow_nan=False)
    assert comparison_text(result)


def _sequence(*names, slow=()):
    builder = TraceBuilder()
    for place, name in enumerate(names):
        builder.add(Pipe.VECTOR, name, place * 10, place * 10 + (9 if name in slow else 5), stack="k.cpp:1")
    return builder.build()


def test_an_instruction_that_came_is_added_and_one_that_went_is_removed():
    before, after = _sequence("A", "B", "C"), _sequence("A", "X", "C", "C")
    matches = match(before, after)
    names = [after.instructions.names[after.instructions.name[row]] for row in matches.added]
    assert names == ["X", "C"]
    gone = [before.instructions.names[before.instructions.name[row]] for row in matches.removed]
    assert gone == ["B"]


def test_an_instruction_that_changed_places_is_moved_and_its_neighbours_are_not():
    before, after = _sequence("A", "B", "C", "D"), _sequence("B", "C", "D", "A")
    matches = match(before, after)
    moved = [
        before.instructions.names[before.instructions.name[row]] for row in matches.before[matches.moved]
    ]
    assert moved == ["A"]


def test_what_came_went_or_moved_is_named_with_its_place():
    result = compare(_sequence("A", "B", "C"), _sequence("C", "A", "X"))
    assert [place.name for place in result.added] == ["X"]
    assert [place.name for place in result.removed] == ["B"]
    (moved,) = result.moved
    assert (moved.pipe, moved.core, moved.frame) == ("VECTOR", "core0.veccore0", "k.cpp:1")
    assert "added      X on VECTOR of core0.veccore0 at 20, k.cpp:1" in comparison_text(result)
    assert comparison_data(result)["places"]["removed"][0]["name"] == "B"


def test_the_largest_change_comes_first():
    result = compare(_sequence("A", "B", "C"), _sequence("A", "B", "C", slow=("B",)))
    assert (result.instructions[0].what, result.instructions[0].delta) == ("B", 4)
    assert (result.lines[0].what, result.lines[0].delta) == ("k.cpp:1", 4)


def test_a_second_buffer_is_seen_in_the_total_and_in_the_waits():
    text = comparison_text(
        compare(softmax_trace(8, cores=1), softmax_trace(8, cores=1, buffers=2, conflict=0))
    )
    assert text.startswith("total      6,182 → 3,367 cycles · faster -45.5 % · 1.84×")
    assert "WAIT_FLAG" in text


def test_a_model_is_measured_against_its_reference():
    builder, model = TraceBuilder(), TraceBuilder()
    for place, cycles in enumerate((10, 20, 40)):
        builder.add(Pipe.VECTOR, "VADD", place * 100, place * 100 + cycles, core="core7.veccore1")
        model.add(Pipe.VECTOR, "VADD", place * 90, place * 90 + cycles * 11 // 10, core="core0.veccore0")
    result = compare(builder.build(), model.build())
    assert result.fidelity.instructions == 3
    assert abs(result.fidelity.mean_error - 0.1) < 1e-9
    assert result.fidelity.correlation > 0.999
    assert "core7.veccore1 with core0.veccore0" in result.notes[0]


def test_different_kernels_and_clocks_are_noted():
    assert "not two runs of one kernel" in compare(softmax_trace(2), matmul_trace(2)).notes[-1]
    one, two = _sequence("A"), TraceBuilder(mhz=1800.0)
    two.add(Pipe.VECTOR, "A", 0, 5)
    assert "clocks differ" in compare(one, two.build()).notes[0]
