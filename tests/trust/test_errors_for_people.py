"""What goes wrong is one line that names the place, and one that says what to do. Never a traceback."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from insight_trace.__main__ import main
from insight_trace.errors import as_error, next_step, shown
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
    view = ("view", TRACE, "--no-browser", "-o")
    assert "File name too long" in _told(capsys, *view, str(tmp_path / ("x" * 300)))
    (tmp_path / "file").touch()
    said = _told(capsys, *view, str(tmp_path / "file" / "page.html"))
    assert "Not a directory" in said or "File exists" in said
    _told(capsys, "stats", str(tmp_path / "absent.json"))


def test_a_full_device_as_output_is_told_and_a_reader_that_goes_away_is_no_error():
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([*TOOL, "stats", TRACE], stdout=full, stderr=subprocess.PIPE, timeout=120)
    assert done.returncode == 1
    assert b"No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([*TOOL, "stats", TRACE], stdout=writing, stderr=subprocess.PIPE, timeout=120)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


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
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii", "PYTHONCOERCECLOCALE": "0"}
    done = _run(["scene", SCENE], env={**os.environ, **ascii_only})
    assert done.returncode == 0
    assert done.stdout


def test_strange_characters_in_paths_are_shown_escaped(tmp_path, capsys):
    said = _told(capsys, "stats", str(tmp_path / "a\r\x1b[31mb.json"))
    assert "\r" not in said
    assert "\x1b" not in said
    done = _run(["stats", os.fsencode(tmp_path) + b"/\xff\xfe.json"])
    assert done.returncode in (1, 2)


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


def test_long_values_are_cut():
    assert len(shown("x" * 100_000)) <= 200
    assert len(shown("x y " * 100_000)) <= 4000
    assert shown("a\rb\x00") == "a\\rb\\x00"


@pytest.mark.parametrize(
    "words",
    [
        *(["replay", SCENE, "--kernel", "SF", "--recipe", f"--time-limit={value}"]
          for value in ("nan", "inf", "-1", "0", "1e300", "x" * 5000)),
        ["replay", SCENE, "--kernel", "x" * 100_000, "--recipe"],
        ["replay", SCENE, "--func-id", "9" * 5000],
        ["replay", SCENE, "--kernel", "SF", "--recipe", "--block-dim", "100000000"],
        ["replay", SCENE, "--kernel", "SF", "--recipe", "--set-arg", "4=" + "9" * 5000],
        ["x" * 100_000],
        ["dump", "list", "x" * 10_000],
        ["op", "TADD", "--dtype", "float", "--rows", "9" * 5000, "--cols", "1"],
    ],
    ids=lambda words: " ".join(words[-2:])[:50],
)  # fmt: skip
def test_a_value_that_is_none_or_endless_is_not_repeated_whole(tmp_path, monkeypatch, capsys, words):
    monkeypatch.chdir(tmp_path)
    assert main(words) in ((0,) if "--set-arg" in words else (1, 2))
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert "fault of Insight Trace" not in said
    assert len(said) < 6000
    assert "--time-limit" in said or not words[-1].startswith("--time-limit")


# --- files -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", ["stats", "clean", "compare", "export --validate"])
@pytest.mark.parametrize("file", ["trace.json", "visualize_data.bin"])
def test_a_trace_of_another_shape_is_read_or_refused(tmp_path, capsys, words, file):
    event = {"ph": "X", "name": ["a"], "ts": -5, "dur": 1e18, "pid": 1, "tid": [1]}
    text = json.dumps({"traceEvents": [event, {**event, "ts": "now"}, {**event, "ph": []}, 7]}).encode()
    with (tmp_path / file).open("wb") as written:
        if file.endswith(".bin"):
            write_block(written, BlockType.TRACE, text)
        else:
            written.write(text)
    more = [TRACE] if words == "compare" else []
    assert main([*words.split(), str(tmp_path / file), *more]) in (0, 1, 2)
    assert "a fault of Insight Trace" not in capsys.readouterr().err


def test_a_record_of_another_shape_is_refused(tmp_path, capsys):
    (tmp_path / "replay.json").write_text('{"version": 1, "kernels": [7]}')
    said = _told(capsys, "replay", str(tmp_path), "-o", str(tmp_path / "out"))
    assert "a fault of Insight Trace" not in said


@pytest.mark.parametrize("fault", list(Fault))
def test_every_fault_says_what_to_do_next(fault):
    assert next_step(fault)
    assert "time-limit" in next_step(fault, "time")
    assert next_step(fault, log="/some/log") == "more in /some/log"
