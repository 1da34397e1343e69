"""The way back from a wrong number: the lines that made it, and the one that made it wrong."""

import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from insight_trace.__main__ import main
from insight_trace.arguments.buffers import view_of
from insight_trace.debug import open_session
from insight_trace.debug.fixes import bits_of
from insight_trace.debug.tile_calls import TileCalls
from insight_trace.dump.load import load_dump
from insight_trace.simulate.embedded.journaling import OperandChange

SOFTMAX = Path(__file__).resolve().parents[2] / "examples" / "paged_attention" / "kernels" / "softmax.cpp"


def line_of(text):
    return next(n for n, line in enumerate(SOFTMAX.read_text().splitlines(), 1) if text in line)


def said(capsys, *words):
    code = main([str(word) for word in words])
    return code, capsys.readouterr()


def answer(capsys, *words):
    code, output = said(capsys, *words, "--json")
    assert code == 0, output.err
    return json.loads(output.out)


def test_the_first_suspect_of_a_wrong_kernel_is_its_wrong_line_and_the_fix_is_exact(wrong_softmax, capsys):
    found = answer(capsys, "why", wrong_softmax["wrong tile"], "--first-mismatch")
    assert [one["slot"] for one in found["wrong"]] == [3]
    first = found["suspects"][0]
    assert (first["op"], first["line"]) == ("TROWSUM", line_of("TROWSUM"))
    assert first["exact"]
    assert "operand 1" in first["fix"]


@pytest.mark.parametrize(
    ("mistake", "op", "line", "meant"),
    [("wrong op", "TROWSUM", "TROWMAX", "TROWMAX"), ("nan", "TLOG", "TEXP", "TEXP")],
)
def test_a_wrong_op_is_found_by_trying_others_of_its_class(wrong_softmax, capsys, mistake, op, line, meant):
    found = answer(capsys, "why", wrong_softmax[mistake], "--first-mismatch")
    first = found["suspects"][0]
    assert (first["op"], first["line"]) == (op, line_of(line))
    assert first["fix"] == f"{meant} instead of {op}"
    assert first["exact"]


def test_a_wrong_rounding_mode_is_found_though_every_difference_is_tolerated(wrong_softmax, capsys):
    found = answer(capsys, "why", wrong_softmax["truncated"], "--first-mismatch")
    first = found["suspects"][0]
    assert (first["op"], first["line"]) == ("TCVT", line_of("TCVT(rounded"))
    assert first["exact"]
    code, output = said(capsys, "why", wrong_softmax["truncated"], "--first-mismatch", "--seconds", 0)
    assert code == 0
    assert "TCVT" in output.out


def test_an_element_is_followed_back_through_every_line_to_the_inputs(wrong_softmax, capsys):
    found = answer(capsys, "why", wrong_softmax[""], "1[3,5]")
    ops = [link["op"] for link in found["chain"]]
    assert ops == ["TSTORE", "TCVT", "TEXP", "TROWEXPANDSUB", "TROWMAX", "TMULS", "TLOAD"]
    assert found["inputs"] == {"0": 16}  # the whole row, for its maximum
    worst = max(found["chain"], key=lambda link: link["introduced_error"] or 0)
    assert worst["op"] == "TCVT"
    values = [link["value"] for link in found["chain"]]
    assert values[0] == values[1] == found["value"]
    of_tile = answer(capsys, "why", wrong_softmax[""], f"{found['chain'][2]['row']}:dst[3,5]")
    assert [link["op"] for link in of_tile["chain"]] == ops[2:]
    assert of_tile["value"] == values[2]


def test_where_a_nan_is_born_is_said(wrong_softmax, capsys):
    found = answer(capsys, "why", wrong_softmax["nan"], "1[3,5]")
    assert [link["op"] for link in found["chain"] if link["born"]] == ["TLOG"]
    stopped = answer(capsys, "debug", wrong_softmax["nan"], "--break", "nan", "--continue")
    assert stopped["answers"][-1]["op"] == "TLOG"
    assert stopped["answers"][-1]["line"] == line_of("TEXP")


def test_two_kernels_part_at_the_line_that_was_changed(wrong_softmax, capsys):
    for mistake, op in (("wrong tile", "TROWSUM"), ("truncated", "TCVT")):
        found = answer(capsys, "diverge", wrong_softmax[""], wrong_softmax[mistake])
        assert found["first"]["a"]["op"] == op
        assert found["first"]["differ"] > 0
    found = answer(capsys, "diverge", wrong_softmax[""], wrong_softmax["nan"])
    assert (found["only_a"], found["only_b"]) == (0, 0)
    assert (found["first"]["a"]["op"], found["first"]["b"]["op"]) == ("TEXP", "TLOG")
    assert found["origin"]["given"][0] == "TEXP in A, TLOG in B"
    code, output = said(capsys, "diverge", wrong_softmax[""], wrong_softmax["nan"])
    assert f"line {line_of('TEXP')}: TEXP in A, TLOG in B" in output.out
    same = answer(capsys, "diverge", wrong_softmax[""], wrong_softmax[""])
    assert same["first"] is None
    code, output = said(capsys, "diverge", wrong_softmax[""], wrong_softmax["wrong tile"])
    assert code == 0
    assert "softmax.cpp" in output.out
    assert "operand 1: address" in output.out


def test_another_order_parts_where_a_wait_is_missing_and_nowhere_else(tmp_path, capsys):
    chain = tmp_path / "chain"
    shutil.copytree(SOFTMAX.parents[2] / "vector_chain", chain)
    kernel = chain / "kernels" / "add.cpp"
    text = kernel.read_text()
    for name, changed in (
        ("right", text),
        ("wrong", re.sub(r"wait_flag\(PIPE_MTE2, PIPE_V.*\n", "\n", text)),
    ):
        kernel.write_text(changed)
        replay = [
            "replay",
            chain / "scene.py",
            "--func-id",
            0,
            "-o",
            tmp_path / name,
            "--simulator",
            "embedded",
        ]
        assert said(capsys, *replay)[0] == 0
    assert changed != text
    seen = 13  # an order in which the missing wait is seen
    for order in (1, seen):
        found = answer(capsys, "diverge", tmp_path / "right", "--order", order)
        assert (found["parted"], found["races"]) == ([], [])
    found = answer(capsys, "diverge", tmp_path / "wrong", "--order", seen)
    load, add, flag = (
        next(n for n, line in enumerate(changed.splitlines(), 1) if text in line)
        for text in ("TLOAD(", "TADD(", "set_flag(PIPE_MTE2, PIPE_V")
    )
    assert {tuple(race["lines"]) for race in found["races"]} == {(load, add, flag)}
    assert [(one["slot"], one["stored_by"]["op"]) for one in found["parted"]] == [(2, "TSTORE")]
    code, output = said(capsys, "diverge", tmp_path / "wrong", "--order", seen)
    assert code == 0
    assert "race" in output.out


def test_a_replay_parts_from_a_dump_at_the_store_of_the_first_wrong_element(wrong_softmax, capsys, tmp_path):
    dump = wrong_softmax[""].parent / "dump"
    found = answer(capsys, "diverge", wrong_softmax["wrong tile"], dump)
    assert [(one["slot"], one["input"], one["differ"]) for one in found["parted"]] == [(3, False, 16)]
    assert found["parted"][0]["stored_by"]["op"] == "TSTORE"
    assert found["inputs"] >= 1
    same = answer(capsys, "diverge", wrong_softmax[""], dump)
    assert (same["parted"], same["outputs"]) == ([], 3)
    code, output = said(capsys, "diverge", wrong_softmax["wrong tile"], dump)
    assert code == 0
    assert "stored by" in output.out
    assert "insight-trace why" in output.out
    same_kernel = [d.dispatch_id for d in load_dump(dump).dispatches if tuple(d.func_ids) == (1,)]
    other = next(number for number in same_kernel if number != found["dispatch"])
    elsewhere = answer(capsys, "diverge", wrong_softmax[""], dump, "--dispatch-id", other)
    assert elsewhere["parted"][0]["input"]
    for words, message in (
        ([], "give either"), ([dump, "--order", 1], "give either"), ([tmp_path], ""),
        ([dump, "--dispatch-id", 9999], "9999"), ([wrong_softmax[""], "--dispatch-id", 1], "is for a dump"),
    ):  # fmt: skip
        code, output = said(capsys, "diverge", wrong_softmax[""], *words)
        assert code == 2
        assert message in output.err


def test_runs_with_changes_side_by_side_are_those_made_one_by_one(wrong_softmax):
    session = open_session(wrong_softmax[""])
    tensors = [tensor for tensor in session.arguments.tensors if tensor.is_output]
    calls = TileCalls(session)
    scaled = next(calls[n] for n in range(len(calls)) if calls[n].op == "TMULS")
    variants = [
        (), (OperandChange(scaled.number, scaled.numbers[0][0], "scalar", bits_of(3.0, scaled.numbers[0][1].type)),),
        (OperandChange(scaled.number, 0, "address", 1 << 30),),
    ]  # fmt: skip
    plain, changed, failed = session.run_variants(variants, tensors, 10.0, 60.0)
    assert failed is None
    for found, changes in ((plain, variants[0]), (changed, variants[1])):
        run = session.run(changes)
        for tensor in tensors:
            assert found[tensor.slot].tobytes() == view_of(tensor, run.buffers[tensor.slot]).tobytes()
    assert plain[1].tobytes() != changed[1].tobytes()
    assert session.run_variants(variants[:1], tensors, 10.0, -1.0) == [None]  # no time to begin one


def test_two_chips_part_nowhere_where_their_arithmetic_is_the_same(workspaces, capsys):
    for one, other in zip(workspaces("vector_chain"), workspaces("vector_chain", target="a5"), strict=True):
        assert answer(capsys, "diverge", one, other)["first"] is None


@pytest.mark.parametrize(
    ("element", "message"),
    [("1[16,0]", "outside slot 1"), ("1[0]", "has 2 dimensions"), ("9[0,0]", "slot 9 holds no tensor"),
     ("4[0]", "holds no tensor"), ("x", "is no element"), ("99999:dst[0,0]", "there is no instruction")],
)  # fmt: skip
def test_an_element_that_is_not_there_is_told(wrong_softmax, capsys, element, message):
    code, output = said(capsys, "why", wrong_softmax[""], element)
    assert code == 2
    assert message in output.err


def test_nothing_to_compare_with_and_nothing_wrong_are_told(wrong_softmax, capsys, tmp_path):
    code, output = said(capsys, "why", wrong_softmax[""], "--first-mismatch")
    assert code == 2
    assert "is what was recorded" in output.err
    code, output = said(capsys, "why", wrong_softmax[""])
    assert code == 2
    record = json.loads((wrong_softmax[""] / "replay.json").read_text())
    assert said(capsys, "replay", record["scene"]["path"], "--kernel", "SF", "--recipe", "--fill", "random", "-o",
                tmp_path / "made_up")[0] == 0  # fmt: skip
    code, output = said(capsys, "why", tmp_path / "made_up", "--first-mismatch")
    assert code == 2
    assert "nothing was recorded of the outputs" in output.err
    code, output = said(capsys, "why", tmp_path / "made_up", "1[0,0]")
    assert "is made up" in output.err


def test_a_kernel_that_has_changed_since_is_said_and_the_recorded_one_is_shown(wrong_softmax, capsys):
    session = open_session(wrong_softmax["truncated"])
    source = Path(session.record["kernels"][0]["source"])
    text = source.read_text()
    source.write_text(text + "\n// later\n")
    try:
        code, output = said(capsys, "why", wrong_softmax["truncated"], "1[3,5]")
    finally:
        source.write_text(text)
    assert code == 0
    assert "has changed since this replay" in output.err


def test_injected_faults_are_found_by_the_tool_that_injects_them(capsys, monkeypatch, tmp_path):
    root = Path(__file__).resolve().parents[2]
    monkeypatch.syspath_prepend(str(root / "tools"))
    import inject_faults

    scene, out = root / "examples" / "paged_attention" / "scene.py", tmp_path / "faults.json"
    arguments = ["inject_faults", "--scene", str(scene), "--faults", "2", "--seed", "3", "--json", str(out)]
    monkeypatch.setattr(sys, "argv", arguments)
    assert inject_faults.main() == 0
    results = json.loads(out.read_text())["results"]
    assert len(results) == 8
    assert len({(r["kernel"], r["line"], r["fault"]) for r in results}) == 8
    assert [r for r in results if not 1 <= r["rank"] <= 3 or not r["diverge"]] == []
    assert "4 kernels, seed 3" in capsys.readouterr().out
