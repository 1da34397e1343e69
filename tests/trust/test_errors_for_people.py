"""What goes wrong is one line that names the place, and one that says what to do. Never a traceback."""

import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from insight_trace.__main__ import main
from insight_trace.chips.chip_files import read_chip_file
from insight_trace.errors import InputError, as_error, next_step, shown
from insight_trace.insight.container import BlockType, write_block
from insight_trace.outcome import Fault

ROOT = Path(__file__).resolve().parents[2]
SCENE = str(ROOT / "examples" / "paged_attention" / "scene.py")
CORPUS = ROOT / "tests" / "data" / "fuzz"
TRACE = str(CORPUS / "trace.json")
TOOL = [sys.executable, "-m", "insight_trace"]


def _told(capsys, *words: str) -> str:
    code = main(list(words))
    said = capsys.readouterr().err
    assert code in (1, 2), (code, said)
    assert "Traceback" not in said
    assert said.count("\n") <= 40
    assert max(map(len, said.splitlines())) < 2500
    return said


def _run(words: list[str], **given) -> subprocess.CompletedProcess[bytes]:
    done = subprocess.run([*TOOL, *words], capture_output=True, timeout=120, **given)
    assert b"Traceback" not in done.stderr, done.stderr.decode(errors="replace")
    assert b"Exception ignored" not in done.stderr, done.stderr.decode(errors="replace")
    return done


# --- the system ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "hint"),
    [
        (errno.ENOSPC, "make room"), (errno.EROFS, "read-only"), (errno.EACCES, "permissions"),
        (errno.ENAMETOOLONG, "shorten"), (errno.ENOTDIR, "a file stands"), (errno.EDQUOT, "quota"),
        (errno.EMFILE, "ulimit"), (errno.EIO, "device"),
    ],
)  # fmt: skip
def test_an_error_of_the_system_names_the_path_and_what_to_do(number, hint):
    error = as_error(OSError(number, "x", "/some/place"))
    assert error.where == "/some/place"
    assert hint in error.hint
    assert error.exit_code == 1


def test_a_full_disk_while_a_result_is_written_is_told_with_its_path(tmp_path, capsys, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(tmp_path / "page.html"))

    monkeypatch.setattr(os, "fsync", full)
    said = _told(capsys, "view", TRACE, "-o", str(tmp_path / "page.html"), "--no-browser")
    assert "page.html: No space left on device" in said
    assert "make room" in said
    assert not list(tmp_path.iterdir())


def test_a_name_too_long_a_file_in_the_way_and_a_missing_file_are_told(tmp_path, capsys):
    assert "File name too long" in _told(
        capsys, "view", TRACE, "-o", str(tmp_path / ("x" * 300)), "--no-browser"
    )
    (tmp_path / "file").touch()
    said = _told(capsys, "view", TRACE, "-o", str(tmp_path / "file" / "page.html"), "--no-browser")
    assert "Not a directory" in said or "File exists" in said
    _told(capsys, "stats", str(tmp_path / "absent.json"))


def test_a_full_device_as_output_is_told():
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([*TOOL, "stats", TRACE], stdout=full, stderr=subprocess.PIPE, timeout=120)
    assert done.returncode == 1
    assert b"No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_reader_that_goes_away_is_no_error():
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([*TOOL, "stats", TRACE], stdout=writing, stderr=subprocess.PIPE, timeout=120)
    os.close(writing)
    assert done.stderr == b""
    assert done.returncode == 0


def test_closed_streams_are_no_error(tmp_path):
    words = " ".join(map(repr, [*TOOL, "stats", TRACE]))
    for closed in (">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"):
        assert subprocess.run(["/bin/sh", "-c", f"exec {words} {closed}"], timeout=120).returncode == 0


def test_a_working_folder_that_is_gone_is_told(tmp_path):
    place = tmp_path / "gone"
    place.mkdir()
    command = 'rmdir "$PWD" && exec "$@"'
    words = ["/bin/sh", "-c", command, "sh", *TOOL, "scene", "scene.py"]
    done = subprocess.run(words, cwd=place, capture_output=True, timeout=120)
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr


def test_a_terminal_without_our_signs_gets_question_marks():
    environment = {
        **os.environ,
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONIOENCODING": "ascii",
        "PYTHONCOERCECLOCALE": "0",
    }
    done = _run(["scene", SCENE], env=environment)
    assert done.returncode == 0
    assert done.stdout


def test_strange_characters_in_paths_are_shown_escaped(tmp_path, capsys):
    said = _told(capsys, "stats", str(tmp_path / "a\r\x1b[31mb.json"))
    assert "\r" not in said
    assert "\x1b" not in said
    done = _run(["stats", os.fsencode(tmp_path) + b"/\xff\xfe.json"])
    assert done.returncode in (1, 2)


def test_an_interruption_at_any_moment_is_one_line(tmp_path):
    for delay in (0.0, 0.05, 0.1, 0.2, 0.4):
        process = subprocess.Popen(
            [*TOOL, "replay", SCENE, "--kernel", "SF", "--recipe", "-o", str(tmp_path / "out"), "--force"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path,
        )  # fmt: skip
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=120)
        # before the first line of ours runs, the interpreter itself speaks
        if b"insight_trace/" in said or b"insight-trace" in said:
            assert b"Traceback" not in said, said.decode()
        assert process.returncode in (0, 130, -signal.SIGINT, 1)
        assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]


def test_an_interruption_that_an_import_turned_into_another_error_is_one_line():
    of_an_import = (
        "import insight_trace.__main__\n"
        "class Interrupted:\n"
        "    def __set_name__(self, owner, name):\n"
        "        raise KeyboardInterrupt\n"
        "class Made:\n"
        "    attribute = Interrupted()\n"
    )
    done = subprocess.run([sys.executable, "-c", of_an_import], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "insight-trace: interrupted\n")


# --- requests --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "0", "1e300", "x" * 5000])
def test_a_time_limit_that_is_none_is_refused(capsys, value):
    said = _told(capsys, "replay", SCENE, "--kernel", "SF", "--recipe", f"--time-limit={value}")
    assert "--time-limit" in said
    assert len(said) < 6000


def test_long_values_are_cut():
    assert len(shown("x" * 100_000)) <= 200
    assert len(shown("x y " * 100_000)) <= 4000
    assert shown("a\rb\x00") == "a\\rb\\x00"


@pytest.mark.parametrize(
    "words",
    [
        ["replay", SCENE, "--kernel", "x" * 100_000, "--recipe"],
        ["replay", SCENE, "--func-id", "9" * 5000],
        ["replay", SCENE, "--kernel", "SF", "--recipe", "--block-dim", "100000000"],
        ["replay", SCENE, "--kernel", "SF", "--recipe", "--set-arg", "4=" + "9" * 5000],
        ["x" * 100_000],
        ["dump", "list", "x" * 10_000],
        ["op", "TADD", "--dtype", "float", "--rows", "9" * 5000, "--cols", "1"],
    ],
)
def test_a_long_value_is_not_repeated_whole(capsys, words):
    code = main(words)
    said = capsys.readouterr().err
    assert code in (0, 1, 2)
    assert "Traceback" not in said
    assert "fault of Insight Trace" not in said
    assert len(said) < 6000


# --- files -----------------------------------------------------------------------------------------------

EVENT = {"ph": "X", "name": "VADD", "ts": 0, "dur": 1, "pid": 1, "tid": 1}
BAD_TRACES = {
    "a list for ph": [{**EVENT, "ph": []}],
    "a list for the name": [{**EVENT, "name": ["a"]}],
    "a time of 1e18": [{**EVENT, "ts": 1e18}, {**EVENT, "ts": 1e18, "dur": 1e18}],
    "a negative time": [{**EVENT, "ts": -5, "dur": -1}],
    "a thread that is a list": [{**EVENT, "tid": [1]}],
    "numbers as text": [{**EVENT, "ts": "now"}],
    "an event that is a number": [7],
}
BAD_TEXTS = {
    "2,000 deep": '{"traceEvents": [{"ph": "X", "args": ' + "[" * 2000 + "]" * 2000 + "}]}",
    "5,000 digits": '{"traceEvents": [{"ph": "X", "name": "a", "ts": ' + "9" * 5000 + ', "dur": 1, "pid": 1, "tid": 1}]}',
    "NaN": '{"traceEvents": [{"ph": "X", "name": "a", "ts": NaN, "dur": 1, "pid": 1, "tid": 1}]}',
    "nothing": "",
    "an array": "[]",
    "null": "null",
}  # fmt: skip


@pytest.mark.parametrize("file", ["trace.json", "visualize_data.bin"])
@pytest.mark.parametrize("name", [*BAD_TRACES, *BAD_TEXTS])
def test_a_trace_of_any_shape_is_read_or_refused(tmp_path, capsys, name, file):
    path = tmp_path / file
    text = BAD_TEXTS[name] if name in BAD_TEXTS else json.dumps({"traceEvents": BAD_TRACES[name]})
    with path.open("wb") as written:
        if path.suffix == ".bin":
            write_block(written, BlockType.TRACE, text.encode())
        else:
            written.write(text.encode())
    for words in (
        ["stats", str(path)],
        ["clean", str(path)],
        ["compare", str(path), TRACE],
        ["export", "--validate", str(path)],
    ):
        assert main(words) in (0, 1, 2)
        assert "a fault of Insight Trace" not in capsys.readouterr().err, words


RECORDS = ["[]", "7", "null", '"x"', "{}", '{"version": 1}', '{"version": [1]}', "[" * 5000, '{"version": 1e400}',
           '{"version": 1, "kernels": {}, "scene": [], "case": 5}', '{"version": 1, "kernels": [7]}']  # fmt: skip


@pytest.mark.parametrize("text", RECORDS)
def test_a_record_of_any_shape_is_refused(tmp_path, capsys, text):
    (tmp_path / "replay.json").write_text(text)
    assert "a fault of Insight Trace" not in _told(
        capsys, "replay", str(tmp_path), "-o", str(tmp_path / "out")
    )


def test_a_damaged_array_and_numbers_of_thousands_of_digits_are_refused(tmp_path, capsys):
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\x01\x00v\x00{'descr': (((((")
    said = _told(
        capsys, "dump", "diff", str(CORPUS / "args_dump.json"), str(tmp_path / "a.npy"), "--index", "0"
    )
    assert "fault of Insight Trace" not in said
    kernel = tmp_path / "k.cpp"
    kernel.write_text('extern "C" void kernel_entry(long *args) { args[' + "9" * 5000 + "] = 1; }")
    said = _told(capsys, "replay", SCENE, "--kernel-source", str(kernel), "--recipe")
    assert "fault of Insight Trace" not in said


@pytest.mark.parametrize("fault", list(Fault))
def test_every_fault_says_what_to_do_next(fault):
    assert next_step(fault)
    assert "time-limit" in next_step(fault, "time")
    assert next_step(fault, log="/some/log") == "more in /some/log"


def test_a_chip_with_a_number_too_large_for_a_float_is_refused(tmp_path):
    text = (ROOT / "src" / "insight_trace" / "chips" / "ascend910b1.toml").read_text()
    path = tmp_path / "chip.toml"
    path.write_text(re.sub(r"= \d+(\.\d+)?\b", "= " + "9" * 400, text, count=1))
    with pytest.raises(InputError):
        read_chip_file(path)
