"""Text of strangers steers no terminal, breaks no report and is no formula; their workspaces name no files of ours."""

import contextlib
import io
import json
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from insight_trace.__main__ import main
from insight_trace.commands.signals import orderly
from insight_trace.errors import InputError
from insight_trace.limits import cell, steer
from insight_trace.replay.workspace import read_record
from insight_trace.run.baseline import BaselineChange, CaseFigures, KernelFigures, junit_text

EVIL = "K\x1b]0;mine\x07\x1b[2J\u202egnp.exe\x9b31m"


def test_a_command_shows_escapes_and_marks_instead_of_obeying_them():
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), orderly():
        print(f"kernel {EVIL} · ok")
        print("wrong a\x1b[8m.cpp\rright", "a line\r\n", sep="; ", file=err)
        steer(err, "\r\x1b[Kstep …")
    said = out.buffer.getvalue().decode()
    assert "kernel K\\x1b]0;mine\\x07\\x1b[2J\\u202egnp.exe\\x9b31m · ok" in said
    told = err.buffer.getvalue().decode()
    assert told == "wrong a\\x1b[8m.cpp\\rright; a line\r\n\n\r\x1b[Kstep …", (
        "only our own lines are written again"
    )
    assert "write" not in vars(out), "the stream is as it was"


def test_a_command_of_a_scene_with_such_names_prints_none_of_them(tmp_path, capsys):
    scene = tmp_path / "scene.py"
    scene.write_text(f"class C:\n    CALLABLE = {{}}\n    CASES = [{{'name': {EVIL!r}, 'params': {{}}}}]\n")
    main(["scene", str(scene)])
    captured = capsys.readouterr()
    assert not set("\x1b\x07\x9b\u202e") & set(captured.out + captured.err)


def test_a_candidate_cannot_write_the_verdict_of_another(tmp_path, capsys):
    evil = tmp_path / "bad.cpp\nright         1.000  mine\x1b[8m.cpp"
    evil.write_text("asm volatile\n")
    task = Path(__file__).parents[2] / "examples" / "judge" / "axpy.json"
    plain = tmp_path / "task.json"
    plain.write_text(task.read_text().replace('"baseline": "good.cpp"', '"slow": 1.5'))
    assert main(["judge", str(plain), str(evil), "--jobs", "1"]) == 1
    said = capsys.readouterr().out
    assert [line.split()[0] for line in said.splitlines()] == ["forbidden", "to"]
    assert "\x1b" not in said


def test_a_junit_report_is_well_formed_whatever_a_kernel_is_called():
    figures = CaseFigures("s.py", EVIL, "chip", 1, "passed", {EVIL: KernelFigures(1, 1, 1)})
    change = BaselineChange(figures.name, EVIL, "slower", f"<{EVIL}&", True)
    assert ET.fromstring(junit_text([figures], [change])).attrib["failures"] == "1"


@pytest.mark.parametrize("text", ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1"])
def test_a_cell_of_a_table_is_no_formula(text):
    assert str(cell(text))[0] in "'\\"


def test_cells_that_are_numbers_or_plain_stay():
    assert [cell(v) for v in ("-1.5", "+3e-9", "name", "", 4, None)] == ["-1.5", "+3e-9", "name", "", 4, None]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    from tests.replay.test_examples import EXAMPLES

    place = tmp_path_factory.mktemp("elsewhere") / "ws"
    scene = str(EXAMPLES / "vector_chain" / "scene.py")
    assert main(["replay", scene, "--func-id", "0", "-o", str(place), "--json"]) == 0
    return place


@pytest.mark.parametrize("what", ["kernel", "payload", "link"])
def test_a_workspace_from_elsewhere_names_no_file_outside_its_folder(workspace, tmp_path, what):
    secret = tmp_path / "secret"
    secret.write_text("mine")
    place = tmp_path / "ws"
    shutil.copytree(workspace, place, symlinks=True)
    record = json.loads((place / "replay.json").read_text())
    if what == "kernel":
        record["kernels"][0]["copy"] = str(secret)
    elif what == "payload":
        slot = next(s for s in record["arguments"]["slots"] if s.get("content", {}).get("kind") == "recorded")
        slot["content"]["payload"]["path"] = "../secret"
    else:
        copy = place / record["kernels"][0]["copy"]
        copy.unlink()
        copy.symlink_to(secret)
    (place / "replay.json").write_text(json.dumps(record))
    with pytest.raises(InputError, match="names a file outside its folder"):
        read_record(place)
