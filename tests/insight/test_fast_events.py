"""Events of the usual form are read by column, and say what they say when read one by one."""

from __future__ import annotations

import io
import warnings
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from insight_trace.insight import events as events_module
from insight_trace.insight.check_events import EventCheck, check_timeline
from insight_trace.insight.read_columns import EventColumns, KnownEvents

HEAD = b'{"profilingType":"op","traceEvents":['
WORDS = [
    "ADD",
    "a,b",
    "x:y",
    "n\n",
    'q"',
    "b\\",
    "é",
    "",
    "{}",
    "},{",
    '":',
    "\x7f",
    "MTE2",
    "CACHEMISS",
    "\x01",
]
TEXTS = st.sampled_from(WORDS) | st.text(max_size=6)
TIMES = st.floats(0, 1e6, width=32)
PLACES = {"pid": st.sampled_from(["core0", "core1"]) | TEXTS, "tid": st.sampled_from(["SCALAR", "CACHEMISS"])}
FLAGS = st.sampled_from(["SET_FLAG", "WAIT_FLAG", "SET_INTRA_BLOCK", "OTHER"])
ARGS = st.fixed_dictionaries(
    {"code": TEXTS, "detail": TEXTS, "pc_addr": st.sampled_from(["0x10", "0x2f"])},
    optional={"process_bytes": st.sampled_from(["64", "x"])},
)
SLICES = st.fixed_dictionaries(
    {"args": ARGS, "cname": TEXTS, "dur": TIMES, "name": TEXTS, "ph": st.just("X"), **PLACES, "ts": TIMES}
)
IDS = st.sampled_from(["core0_0", "core0_1", "core0_2", "core0_3", "7"])
BEGINS = st.fixed_dictionaries(
    {"args": ARGS, "cname": TEXTS, "id": IDS, "name": FLAGS, "ph": st.just("B"), **PLACES, "ts": TIMES}
)
ENDS = st.fixed_dictionaries(
    {"args": st.just({}), "cname": TEXTS, "id": IDS, "name": FLAGS, "ph": st.just("E"), **PLACES, "ts": TIMES}
)
FLOWS = st.fixed_dictionaries(
    {"cat": TEXTS, "id": IDS, "name": st.just("flow"), "ph": st.sampled_from("st"), **PLACES, "ts": TIMES}
)
ANY = st.lists(SLICES | BEGINS | ENDS | FLOWS, min_size=1, max_size=12)


def _gathered(document: bytes, monkeypatch: pytest.MonkeyPatch, *, known: bool) -> tuple[object, ...]:
    """Everything that was gathered, from windows so small that there are many."""
    with monkeypatch.context() as patch:
        patch.setattr(events_module, "WINDOW", 900)
        if not known:
            patch.setattr(KnownEvents, "take", lambda *_: 0)
        gathered = EventColumns()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            gathered.read(io.BytesIO(document), 0, len(document), "test")
    rows, ends, pairs = gathered.flags.whole()
    columns = [column.tolist() for column in gathered.columns()]
    flags = [column.tolist() for column in gathered.flag_columns(rows)]
    tables = [list(table) for table in (gathered.cores, gathered.lanes, gathered.names)]
    details = [gathered.detail, [gathered.flags.detail[row] for row in rows.tolist()]]
    more = [list(gathered.stacks), list(gathered.addresses), gathered.unread, gathered.flags.halves]
    return (columns, flags, tables, details, more, ends.tolist(), pairs.tolist())


@settings(max_examples=100, deadline=None)
@given(st.lists(ANY, min_size=1, max_size=4))
def test_both_ways_of_reading_gather_the_same(several: list[list[dict[str, object]]]) -> None:
    document = HEAD + msgspec.json.encode([event for part in several for event in part])[1:] + b"}"
    with pytest.MonkeyPatch.context() as patch:
        assert _gathered(document, patch, known=True) == _gathered(document, patch, known=False)


def _judged(
    path: Path, document: bytes, monkeypatch: pytest.MonkeyPatch, *, whole: bool, known: bool
) -> list[str]:
    path.write_bytes(document)
    with monkeypatch.context() as patch:
        patch.setattr(events_module, "WINDOW", 900)
        if not known:
            patch.setattr(EventCheck, "take", lambda *_: 0)
        check = check_timeline(path, 0, len(document), "test", whole=whole, sample=False)
    return sorted(map(str, check.broken))


@settings(max_examples=60, deadline=None)
@given(st.lists(ANY, min_size=1, max_size=4), st.booleans())
def test_both_ways_of_reading_break_the_same_rules(
    tmp_path_factory: pytest.TempPathFactory, several: list[list[dict[str, object]]], whole: bool
) -> None:
    """Of a core's own trace, too, where processes and threads are numbers."""
    path = tmp_path_factory.mktemp("judged") / "trace.json"
    flat = [event if whole else event | {"pid": 10, "tid": 1} for part in several for event in part]
    document = HEAD + msgspec.json.encode(flat)[1:] + b"}"
    with pytest.MonkeyPatch.context() as patch:
        fast, slow = (_judged(path, document, patch, whole=whole, known=known) for known in (True, False))
    assert fast == slow


def test_checks_take_a_cores_own_trace_and_what_names_lanes_many_events_at_a_time() -> None:
    event = (
        b'{"args":{"code":"","detail":"XD:X1=0x2,","pc_addr":"0x10"},"cname":"startup",'
        b'"dur":0.5,"name":"ADD","ph":"X","pid":10,"tid":1,"ts":1.5}'
    )
    named = b'{"args":{"name":"MTE2"},"name":"process_name","ph":"M","pid":60,"tid":0}'
    assert EventCheck("test", whole=False).take(b",".join((event, named, event))) == 3
    late = b'{"name":"ADD","ph":"X","pid":10,"tid":1,"ts":1.5,"args":{}}'
    for odd in (late, b'{"args":{}}', b'{"args":{},"ph":"f"}', b'{"args":{},"ph":"X","pid":1}', b"7"):
        assert EventCheck("test", whole=False).take(event + b"," + odd) == 0


def test_the_usual_form_is_taken_whole() -> None:
    event = (
        b'{"args":{"code":"a.cpp:1\\nb.cpp:2","detail":"XD:X1=0x2,","pc_addr":"0x10"},"cname":"startup",'
        b'"dur":0.5,"name":"ADD","ph":"X","pid":"core0","tid":"SCALAR","ts":1.5}'
    )
    begin = (
        event.replace(b'"dur":0.5', b'"id":"core0_1"').replace(b'"X"', b'"B"').replace(b"ADD", b"SET_FLAG")
    )
    gathered = EventColumns()
    assert KnownEvents(gathered).take(event + b"," + begin + b"," + event) == 3
    assert gathered.detail == ["XD:X1=0x2,"] * 2
    assert list(gathered.stacks) == ["a.cpp:1\nb.cpp:2"]
    assert gathered.flags.begun[1] == {"core0_1": 0}


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_damaged_events_are_refused_or_are_right_json(data: st.DataObject) -> None:
    event = bytearray(
        b'{"args":{"code":"a","detail":"d","pc_addr":"0x10"},"cname":"c","dur":0.5,"name":"ADD",'
        b'"ph":"X","pid":"core0","tid":"SCALAR","ts":1.5}'
    )
    place = data.draw(st.integers(0, len(event) - 1))
    event[place] = data.draw(st.sampled_from(b'"\\:,{}[]0x1.-e \x00\xff'))
    text = bytes(event) + b"," + bytes(event)
    gathered = EventColumns()
    if KnownEvents(gathered).take(text) == 0:
        return
    decoded = msgspec.json.decode(b"[" + text + b"]")
    assert [each["args"]["detail"] for each in decoded] == gathered.detail
    columns = gathered.columns()
    assert [each["ts"] for each in decoded] == columns[5].tolist()
    assert [each["dur"] for each in decoded] == columns[6].tolist()


def test_real_timelines_are_read_the_same_both_ways(shared_data: Path) -> None:
    documents = sorted(shared_data.glob("camodel/**/trace.json"))
    assert documents
    with pytest.MonkeyPatch.context() as patch:
        for path in documents:
            text = path.read_bytes()
            assert _gathered(text, patch, known=True) == _gathered(text, patch, known=False)
