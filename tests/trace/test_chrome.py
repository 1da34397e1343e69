"""The clean trace as JSON that Chrome's viewer, Perfetto and MindStudio Insight read."""

import io
import json

import numpy as np
from hypothesis import given
from msgspec.structs import replace

from insight_trace.model import Counter, Pipe
from insight_trace.recording.kinds import Kind, kinds
from insight_trace.trace.chrome import write_chrome
from insight_trace.trace.clean import clean, whole
from insight_trace.trace.run_folder import CleanForm, write_clean
from tests.synthetic_trace import TraceBuilder, softmax_trace
from tests.trace_strategies import traces


def _events(trace, **options):
    file = io.BytesIO()
    count = write_chrome(clean(trace, **options), file)
    events = json.loads(file.getvalue())["traceEvents"]
    assert len(events) == count
    return events


@given(traces())
def test_every_kept_instruction_is_written_with_all_that_it_says(trace):
    cleaned = clean(trace)
    slices = [event for event in _events(trace) if event["ph"] == "X"]
    instructions = trace.instructions
    assert len(slices) == len(cleaned.rows)
    for event, row in zip(slices, cleaned.rows.tolist(), strict=True):
        assert event["name"] == instructions.names[instructions.name[row]]
        assert event["args"]["detail"] == instructions.detail[row]
        assert event["args"]["code"] == instructions.stacks[instructions.stack[row]]
        assert int(event["args"]["pc_addr"], 16) == instructions.pc[row]
        assert event["args"]["start_cycle"] == instructions.start[row]
        assert event["args"]["cycles"] == max(0, instructions.end[row] - instructions.start[row])
        assert 0 <= instructions.start[row] / trace.mhz - event["ts"] < 1.001e-3
        assert event["dur"] >= 0


@given(traces())
def test_in_whole_nanoseconds_too_no_slice_reaches_into_the_next(trace):
    """Viewers cut or round times to nanoseconds, start and duration apart."""
    last: dict[int, int] = {}
    for event in _events(trace, keep_scalar=True):
        if event["ph"] == "X":
            start, length = round(event["ts"] * 1000.0), round(event["dur"] * 1000.0)
            assert abs(event["ts"] * 1000.0 - start) < 1e-6
            assert last.get(event["tid"], start) <= start
            last[event["tid"]] = start + length


@given(traces())
def test_each_arrow_is_one_start_and_one_end_that_lie_on_slices(trace):
    events = _events(trace)
    starts = {event["id"]: event for event in events if event["ph"] == "s"}
    ends = {event["id"]: event for event in events if event["ph"] == "f"}
    assert len(starts) == len(ends) == len(clean(trace).arrows.producer)
    slices = [event for event in events if event["ph"] == "X"]
    for number, start in starts.items():
        assert start["name"] == ends[number]["name"]
        for point in (start, ends[number]):
            assert any(
                s["tid"] == point["tid"] and s["ts"] - 1e-9 <= point["ts"] <= s["ts"] + s["dur"] + 1e-9
                for s in slices
            )


def test_cores_and_lanes_are_numbers_with_names():
    events = _events(softmax_trace(2))
    names = {event["args"]["name"] for event in events if event["name"] in ("process_name", "thread_name")}
    lanes = ("MTE2 GM→UB", "VECTOR", "MTE3 UB→GM")
    assert {"core0", *(f"vector {core} {lane}" for core in (0, 1) for lane in lanes)} <= names
    assert all(isinstance(event["pid"], int) and isinstance(event.get("tid", 0), int) for event in events)
    assert len({event["tid"] for event in events if event["ph"] == "X"}) == 6


def test_insight_finds_the_kind_of_trace_before_its_events():
    file = io.BytesIO()
    write_chrome(clean(softmax_trace(1)), file)
    head = file.getvalue().split(b"[", 1)[0]
    assert b'"profilingType":"op"' in head


def test_an_empty_trace_is_valid_json():
    assert _events(TraceBuilder().build()) == []


def test_the_same_trace_gives_the_same_bytes_packed_or_not():
    for form in (
        CleanForm(),
        CleanForm(gzip=True),
        CleanForm(perfetto=True),
        CleanForm(perfetto=True, gzip=True),
    ):
        first, second = io.BytesIO(), io.BytesIO()
        for file in (first, second):
            write_clean(clean(softmax_trace(3)), file, form)
        assert first.getvalue() == second.getvalue()
        assert (first.getvalue()[:2] == b"\x1f\x8b") is form.gzip


@given(traces())
def test_the_whole_trace_has_every_instruction_once_and_the_counters_on_request(trace):
    counter = Counter("GM_TO_UB", np.array([0.001, 1.0]), np.array([5.0, 0.0]))
    trace = replace(trace, counters=(counter,))
    file, bare = io.BytesIO(), io.BytesIO()
    write_chrome(whole(trace), file, counters=True)
    write_chrome(whole(trace), bare)
    events = json.loads(file.getvalue())["traceEvents"]
    columns = trace.instructions
    executed = np.flatnonzero(kinds(columns) != Kind.MISS)
    slices = [(event["name"], event["args"]["start_cycle"]) for event in events if event["ph"] == "X"]
    rows = zip(columns.name[executed].tolist(), columns.start[executed].tolist(), strict=True)
    assert sorted(slices) == sorted((columns.names[name], start) for name, start in rows)
    points = [(event["ts"], event["args"]["MB/s"]) for event in events if event["ph"] == "C"]
    assert points == [(0.001, 5.0), (1.0, 0.0)]
    assert not {event["pid"] for event in events if event["ph"] == "X"} & {
        event["pid"] for event in events if event["ph"] == "C"
    }
    assert not any(event["ph"] == "C" for event in json.loads(bare.getvalue())["traceEvents"])


def test_bytes_are_said_only_where_some_were_moved():
    builder = TraceBuilder()
    builder.add(Pipe.MTE2, "MOV", 0, 9, moved=64)
    builder.add(Pipe.VECTOR, "VADD", 0, 9)
    slices = [event for event in _events(builder.build()) if event["ph"] == "X"]
    assert [event["args"].get("process_bytes") for event in slices] == ["64", None]
