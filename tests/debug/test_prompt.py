"""The prompt of `insight-trace debug` in a real terminal: keys, completion, a narrow window."""

import shutil
import subprocess
import sys
import time

import pytest

from insight_trace.debug import open_session
from insight_trace.debug.prompt import completions, execute
from insight_trace.debug.questions import Questions


class Terminal:
    """A tmux of our own, with keys in and the screen out."""

    def __init__(self, socket, command, width=100, height=30):
        self._tmux = ["tmux", "-S", str(socket), "-f", "/dev/null"]
        size = ["-x", str(width), "-y", str(height)]
        subprocess.run([*self._tmux, "new-session", "-d", "-s", "t", *size, command], check=True, timeout=30)

    def keys(self, *keys):
        subprocess.run([*self._tmux, "send-keys", "-t", "t", *keys], check=True, timeout=30)

    def screen(self):
        shown = subprocess.run(
            [*self._tmux, "capture-pane", "-p", "-t", "t"],
            check=True,
            capture_output=True,
            text=True,
            timeout=30,
        )
        return shown.stdout

    def wait_for(self, text, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            screen = self.screen()
            if text in screen:
                return screen
            time.sleep(0.1)
        raise AssertionError(f"{text!r} did not come:\n{screen}")

    def close(self):
        subprocess.run([*self._tmux, "kill-server"], check=False, timeout=30)


@pytest.fixture
def terminal(tmp_path):
    if shutil.which("tmux") is None:
        pytest.skip("tmux is absent")
    opened = []

    def start(workspace, **size):
        command = f"{sys.executable} -m insight_trace debug {workspace}; sleep 60"
        opened.append(Terminal(tmp_path / f"s{len(opened)}", command, **size))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


def test_keys_completion_and_history_work_in_a_terminal(wrong_softmax, terminal):
    shown = terminal(wrong_softmax[""])
    shown.wait_for("(-1)")
    shown.keys("op TROWM", "Tab", "Enter")
    shown.wait_for("of TROWMAX")
    shown.keys("sh", "Tab", "d", "Tab", "Enter")
    shown.wait_for("valid 16x1")
    shown.keys("previous-o", "Tab", "Enter")
    shown.wait_for("of TMULS")
    shown.keys("Up", "Up", "Up", "Enter")  # the first command again
    shown.wait_for("(25)")
    shown.keys("nonsense", "Enter")
    shown.wait_for("there is no command 'nonsense'")
    shown.keys("C-d")
    time.sleep(0.5)
    assert "Traceback" not in shown.screen()


def test_a_narrow_window_shows_whole_lines(wrong_softmax, terminal):
    shown = terminal(wrong_softmax[""], width=44, height=50)
    shown.wait_for("(-1)")
    shown.keys("op TEXP", "Enter")
    shown.wait_for("of TEXP")
    shown.keys("show", "Enter")
    screen = shown.wait_for("columns more")
    rows = [line for line in screen.splitlines() if line.strip().startswith("15 ")]
    assert rows, screen


def test_completion_offers_what_fits_there(wrong_softmax):
    looks = Questions(open_session(wrong_softmax[""]))
    assert "show" in completions(looks, "s", [])
    assert completions(looks, "TROW", ["op"]) == ["TROWEXPANDSUB", "TROWMAX", "TROWSUM"]
    execute(looks, "op TROWMAX", 80)
    assert completions(looks, "", ["show"])[:3] == ["BT", "FB", "GM"]
    assert completions(looks, "s", ["diff"]) == ["src0", "src1"]
    assert completions(looks, "w", ["break"]) == ["write"]
    assert completions(looks, "u", ["bytes"]) == ["UB"]
    assert completions(looks, "core0", ["core"]) == ["core0.veccore0"]


def test_every_line_gets_an_answer_and_quit_none(wrong_softmax):
    looks = Questions(open_session(wrong_softmax[""]))
    assert execute(looks, "", 80) == []
    assert execute(looks, "q", 80) is None
    assert "cannot be read" in execute(looks, "show 'x", 80)[0]
    assert any("next-op" in line for line in execute(looks, "help", 80))
    execute(looks, "op TEXP", 80)
    assert "TEXP" in execute(looks, "why dst[0,0]", 80)[0]
    assert "outside" in execute(looks, "why dst[99,0]", 80)[0]
