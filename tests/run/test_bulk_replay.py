"""Every dispatch of a dump, or a sample of all kinds of them, is replayed, verified and told in one table."""

import csv
import json
from collections import Counter
from pathlib import Path

import pytest

from insight_trace.__main__ import main
from insight_trace.dump.load import load_dump
from insight_trace.run.bulk_replay import sampled
from insight_trace.run.calibration import same_form

SCENE = Path(__file__).parents[2] / "examples" / "paged_attention" / "scene.py"


@pytest.fixture(scope="module")
def dump(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dump") / "small"
    assert main(["capture", str(SCENE), "--case", "CaseSmall1", "-o", str(folder)]) == 0
    return folder


def test_all_dispatches_are_verified_and_told_in_one_table(dump, tmp_path, capsys):
    words = ["replay", str(SCENE), "--case", "CaseSmall1", "--dump-dir", str(dump), "--all", "--jobs", "2"]
    assert main([*words, "-o", str(tmp_path / "all")]) == 0
    said = capsys.readouterr().out
    assert "12 dispatches · 0 wrong" in said
    with (tmp_path / "all" / "summary.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["dispatch_id"]) for row in rows] == list(range(12))
    assert {row["verdict"] for row in rows} == {"verified"}
    assert Counter(row["kernel"] for row in rows) == {"QK": 3, "SF": 3, "PV": 3, "UP": 3}
    summary = json.loads((tmp_path / "all" / "summary.json").read_text())
    assert [entry["verified"] for entry in summary["kernels"]] == [3, 3, 3, 3]
    assert ("summary.parquet" in said) == (not (tmp_path / "all" / "summary.parquet").exists())
    capsys.readouterr()
    # nothing is run again
    assert main([*words, "-o", str(tmp_path / "all"), "--json"]) == 0
    assert main([*words, "-o", str(tmp_path / "all")]) == 0
    assert "12 known before" in capsys.readouterr().out


def test_one_kernel_and_a_sample_are_chosen(dump, tmp_path, capsys):
    words = ["replay", str(SCENE), "--case", "CaseSmall1", "--dump-dir", str(dump), "--jobs", "1", "--json"]
    assert main([*words, "--all", "--func-id", "1", "-o", str(tmp_path / "sf")]) == 0
    (entry,) = json.loads(capsys.readouterr().out)["kernels"]
    assert (entry["kernel"], entry["verified"]) == ("SF", 3)
    assert main([*words, "--sample", "5", "-o", str(tmp_path / "five")]) == 0
    entries = json.loads(capsys.readouterr().out)["kernels"]
    assert sum(entry["dispatches"] for entry in entries) == 5
    assert len(entries) == 4


def test_a_wrong_output_is_a_mismatch_with_its_dispatch(dump, tmp_path, capsys):
    import shutil

    shutil.copytree(dump, tmp_path / "dump")
    loaded = load_dump(tmp_path / "dump")
    victim = next(d for d in loaded.dispatches if d.func_ids == (1,))
    after = next(a.after for a in victim.arguments if getattr(a, "after", None) is not None)
    with after.path.open("r+b") as file:
        file.seek(after.offset)
        file.write(b"\x41\x41\x41\x41")
    words = ["replay", str(SCENE), "--case", "CaseSmall1", "--dump-dir", str(tmp_path / "dump"), "--all"]
    assert main([*words, "--jobs", "1", "-o", str(tmp_path / "all"), "--func-id", "1"]) == 1
    assert f"mismatch   dispatch {victim.dispatch_id} SF" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--all"], "replay dispatches of a dump"),
        (["--all", "--dump-dir", "D", "--dispatch-id", "3"], "choose their dispatches"),
        (["--sample", "0", "--dump-dir", "D"], "at least one"),
    ],
)
def test_what_does_not_go_together_is_refused(words, said, capsys):
    assert main(["replay", str(SCENE), "--case", "CaseSmall1", *words]) == 2
    assert said in capsys.readouterr().err


def test_a_sample_has_every_form_before_it_has_one_twice(dump):
    dispatches = load_dump(dump).dispatches
    forms = {same_form(d) for d in dispatches}
    for count in range(1, len(dispatches) + 3):
        chosen = sampled(dispatches, count)
        assert len(chosen) == min(count, len(dispatches))
        assert len({d.dispatch_id for d in chosen}) == len(chosen)
        assert len({same_form(d) for d in chosen}) == min(count, len(forms))
