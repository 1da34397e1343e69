"""`insight-trace debug`: commands as flags, their answers against NumPy."""

import json

import numpy as np
import pytest

from insight_trace.__main__ import main
from insight_trace.debug import open_session
from insight_trace.debug.questions import COMMANDS, Questions
from insight_trace.debug.tile_layout import as_double


def answers(capsys, workspace, *words):
    code = main(["debug", str(workspace), *map(str, words), "--json"])
    output = capsys.readouterr()
    assert code == 0, output.err
    return json.loads(output.out)["answers"]


def test_a_tile_is_shown_as_the_matrix_that_it_is(wrong_softmax, capsys):
    found = answers(
        capsys, wrong_softmax[""], "--op", "TROWMAX", "--show", "dst", "--show", "src0", "--tiles"
    )
    peak, tile = np.array(found[1]["values"]), np.array(found[2]["values"])
    assert found[1]["layout"] == "DN"
    assert (peak[:, 0] == tile.max(axis=1)).all()
    assert [each["name"] for each in found[3]["tiles"]] == ["dst", "src0", "src1"]


def test_layouts_of_the_cube_are_undone(workspaces):
    products = 0
    for workspace in [*workspaces("paged_attention"), *workspaces("paged_attention", target="a5")]:
        session = open_session(workspace)
        looks = Questions(session)
        if "TMATMUL" not in {session.op_name(c) for c in range(len(session.operands.calls))}:
            continue
        looks.do("op", ["TMATMUL"])
        dst, left, right = (as_double(looks._shown([name]).valid) for name in ("dst", "src0", "src1"))
        np.testing.assert_allclose(dst, left @ right, rtol=1e-4, atol=1e-4)
        products += 1
    assert products == 4


def test_moving_by_instruction_op_line_and_cycle_goes_there_and_back(wrong_softmax, capsys):
    found = answers(
        capsys, wrong_softmax[""], "--op", "TEXP", "--next-op", "--previous-op", "--next-line", "--previous-line",
        "--step", 2, "--back", 2, "--line", 44, "--cycle", 3000, "--end", "--start",
    )  # fmt: skip
    rows = [each["row"] for each in found]
    ops = [each.get("op") for each in found]
    assert ops[0] == ops[2] == "TEXP"
    assert ops[1] == "TCVT"
    assert rows[6] == rows[4]
    assert found[7]["line"] == 44
    assert found[8]["cycle"] <= 3000
    assert rows[-1] == -1


def test_what_an_op_changed_is_told_and_exported(wrong_softmax, capsys, tmp_path):
    place = tmp_path / "tile.npy"
    found = answers(
        capsys, wrong_softmax[""], "--op", "TCVT", "--diff", "dst", "--stats", "dst", "--export", "dst", place,
        "--changed", "--bytes", "UB", "0", "16",
    )  # fmt: skip
    exported = np.load(place)
    assert found[1]["changed"] == np.count_nonzero(exported)
    assert found[2]["statistics"]["max"] == exported.max() == 1.0
    assert exported.shape == (16, 16)
    assert len(found[5]["hex"]) == 32


def test_breaks_on_a_line_an_op_and_a_write_stop_forward_and_back(wrong_softmax, capsys):
    found = answers(
        capsys, wrong_softmax[""], "--op", "TEXP", "--break", "write", "dst", "--start", "--continue", "--continue",
        "--forget", "--break", "op", "TROWMAX", "--reverse", "--forget", "--break", "line", "44", "--continue",
    )  # fmt: skip
    stops = [each for each in found if each.get("stopped")]
    assert [stop["op"] for stop in stops] == ["TROWEXPANDSUB", "TEXP", "TROWMAX", "TCVT"]


def test_flags_pipes_and_registers_of_a_moment_are_told(wrong_softmax, capsys):
    session = open_session(wrong_softmax[""])
    names = np.array(session.instructions.names)[session.instructions.name]
    first = int(np.flatnonzero(names == "SET_FLAG")[0])
    found = answers(
        capsys, wrong_softmax[""], "--go", first, "--flags", "--step", "--flags", "--pipes", "--registers", "--core", "0"
    )  # fmt: skip
    assert [(flag["from"], flag["to"]) for flag in found[1]["flags"]] == [("MTE2", "VECTOR")]
    assert found[3]["flags"] == []
    assert {pipe["pipe"] for pipe in found[4]["pipes"]} >= {"SCALAR", "MTE2", "VECTOR", "MTE3"}


def test_a_finding_leads_to_the_instruction_that_it_names(wrong_softmax, capsys):
    findings = open_session(wrong_softmax["race"]).recording.findings
    found = answers(capsys, wrong_softmax["race"], "--finding", "1")
    assert found[0]["row"] == findings[0]["places"][-1]["row"]
    assert found[0]["line"] == findings[0]["places"][-1]["line"]


def test_text_fits_a_narrow_window_and_says_what_is_left_out(wrong_softmax, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    assert (
        main(["debug", str(wrong_softmax[""]), "--op", "TEXP", "--show", "--where", "--pipes", "--diff"]) == 0
    )
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 40
    assert any("columns more" in line for line in lines)


@pytest.mark.parametrize(
    ("words", "message"),
    [(["--go", "99999"], "there is no instruction 99999"), (["--go", "x"], "is no instruction"),
     (["--line", "3"], "executed 0 times"), (["--op", "TEXP", "9"], "executed 1 times"),
     (["--cycle", "999999"], "outside the run"), (["--finding", "1"], "0 findings"),
     (["--show", "dst"], "has no tile"), (["--core", "7"], "no core"), (["--break", "x"], "nothing to stop at"),
     (["--continue"], "nothing to stop at"), (["--bytes", "XX", "0", "4"], "no memory"),
     (["--end", "--step"], "has only"), (["--show", "UB", "0", "f99", "2x2"], "no element type"), (["--json"], "flags")],
)  # fmt: skip
def test_a_wrong_request_is_told_in_one_line(wrong_softmax, capsys, words, message):
    assert main(["debug", str(wrong_softmax[""]), *words]) == 2
    assert message in capsys.readouterr().err


def test_a_workspace_without_values_is_refused(wrong_softmax, capsys, tmp_path):
    scene = json.loads((wrong_softmax[""] / "replay.json").read_text())["scene"]["path"]
    words = [
        "replay",
        scene,
        "--func-id",
        "1",
        "--dump-dir",
        str(wrong_softmax[""].parent / "dump"),
        "--timing-only",
    ]
    assert main([*words, "-o", str(tmp_path / "timed")]) == 0
    assert main(["debug", str(tmp_path / "timed"), "--start"]) == 2
    assert "--timing-only" in capsys.readouterr().err


def test_every_command_of_the_prompt_is_a_flag(capsys):
    assert main(["debug", "--help"]) == 0
    text = capsys.readouterr().out
    assert [name for name in COMMANDS if f"--{name}" not in text] == []
